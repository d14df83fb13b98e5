"""The mutants of a marked function: each condition once, as code that runs, with the probe that tests are chosen by."""

from types import FunctionType

from tests.mutate.mutants import PROBE, instrumented, marked_functions, mutants

SOURCE = '''
class Judge:
    @legality
    def allows(self, loop, nodes):
        """Whether a loop is fit."""
        if loop.claimed and not loop.body:
            return False
        bounds = (loop.start, loop.stop)
        if any(node in bounds for node in nodes if node > 0):
            return loop.width < 4
        match loop.kind:
            case int() | str():
                return isinstance(loop.kind, int | bool)
            case _:
                return True

    def pays(self, loop):
        return loop.width > 4
'''


def found(tmp_path):
    (tmp_path / "judge.py").write_text(SOURCE)
    (function,) = marked_functions(tmp_path)
    return function


def test_each_condition_has_its_mutants_once(tmp_path):
    function = found(tmp_path)
    whole = "loop.claimed and (not loop.body)"
    kept = "any((node in bounds for node in nodes if node > 0))"
    kinds = "match loop.kind: case int() | str(); case _"
    assert {(item.before, item.after) for item in mutants(function)} == {
        (whole, "True"),
        (whole, "False"),
        (whole, "not loop.body"),
        (whole, "loop.claimed"),
        ("(loop.start, loop.stop)", "(loop.stop,)"),
        ("(loop.start, loop.stop)", "(loop.start,)"),
        (kept, "True"),
        (kept, "False"),
        (kept, kept.replace("any", "all")),
        ("node > 0", "True"),
        ("node > 0", "False"),
        ("node > 0", "node >= 0"),
        ("loop.width < 4", "True"),
        ("loop.width < 4", "False"),
        ("loop.width < 4", "loop.width <= 4"),
        ("int() | str()", "str()"),
        ("int() | str()", "int()"),
        (kinds, "match loop.kind: case _"),
        ("isinstance(loop.kind, int | bool)", "True"),
        ("isinstance(loop.kind, int | bool)", "False"),
        ("int | bool", "int"),
        ("int | bool", "bool"),
    }


class Loop:
    claimed, body, start, stop, width, kind = True, (1,), 0, 5, 4, "name"


def run(code, probe=None):
    return FunctionType(code, {PROBE: probe})(None, Loop, [5])


def test_mutants_run_and_probes_say_which_tests_may_notice_them(tmp_path):
    function = found(tmp_path)
    seen = set()

    def probe(number, place, value):
        seen.add((number, place, bool(value)))
        return value

    assert run(instrumented(function, 7), probe) is False
    assert {number for number, _, _ in seen} == {7}
    unlike = [item for item in mutants(function) if run(item.code) is not False]
    assert ("loop.width < 4", "loop.width <= 4") in {(item.before, item.after) for item in unlike}
    for item in unlike:
        place, value = item.probe
        assert any((7, place, each) in seen for each in ((value,) if value is not None else (True, False)))


def test_a_function_is_told_from_what_it_was_but_not_by_comments(tmp_path):
    before = found(tmp_path).digest
    text = SOURCE.replace("bounds = ", "# in two places\n        bounds = ")
    (tmp_path / "judge.py").write_text(text)
    (again,) = marked_functions(tmp_path)
    assert again.digest == before
    (tmp_path / "judge.py").write_text(text.replace("node > 0", "node > 1"))
    (changed,) = marked_functions(tmp_path)
    assert changed.digest != before
