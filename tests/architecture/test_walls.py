"""The house rules hold for this project."""

import subprocess
from pathlib import Path

import pytest

from architecture import checks, rules

ROOT = Path(__file__).parents[2]
TREE = checks.modules(ROOT / "src" / "brickwork")


@pytest.mark.parametrize(
    "check",
    [
        checks.direction,
        checks.cycles,
        checks.doors,
        checks.inner_imports,
        checks.births,
        checks.long_files,
        checks.long_functions,
        checks.suppressions,
        checks.module_state,
    ],
)
def test_rule(check):
    complaints = check(TREE)
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    ("count", "budget"),
    [
        (checks.tuned_constants, rules.TUNED_CONSTANTS),
        (checks.model_constants, rules.MODEL_CONSTANTS),
        (checks.tuned_comparisons, rules.TUNED_COMPARISONS),
    ],
)
def test_tuned_numbers_become_fewer(count, budget):
    found = count(TREE)
    more = f"{len(found)} numbers, {budget} allowed: take a number from `Target`, or derive it\n"
    assert len(found) <= budget, more + "\n".join(found)


def test_exemptions_from_the_count_are_of_something():
    names = {f"{module.name}:{name}" for module in TREE for name in checks.constants(module)}
    assert not [pattern for pattern in rules.NOT_TUNED if not checks.fnmatch_any(names, pattern)]


def test_every_room_has_a_layer():
    assert {module.room for module in TREE} - rules.PUBLIC <= set(rules.LAYERS)


def test_files_of_tests_benchmarks_and_examples_keep_their_length():
    folders = [ROOT / name for name in ("tests", "benchmarks", "examples")]
    complaints = [text for folder in folders for text in checks.long_files(checks.modules(folder))]
    assert not complaints, "\n".join(complaints)


def test_no_vague_module_names():
    vague = {"utils", "helpers", "common", "misc", "core", "base", "manager"}
    assert not [module.name for module in TREE if vague & set(module.name.split("."))]


def test_every_module_says_what_lives_in_it():
    assert not [module.name for module in TREE if not checks.ast.get_docstring(module.tree)]


def test_tracked_files_name_no_machine_and_no_registry():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    complaints = checks.machine_words([ROOT / name for name in listed.stdout.splitlines()], ROOT)
    assert not complaints, "\n".join(complaints)
