"""Checks of a tree of modules against `rules.py`; each returns a list of complaints, empty when all is well.

A tree is the folder of the package. The checks read the source and import nothing.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from architecture import rules

PACKAGE = "brickwork"


@dataclass(frozen=True)
class Module:
    """A module: its name within the package (`ir.nodes`, `ir.__init__`) and its source."""

    name: str
    source: str

    @property
    def room(self) -> str:
        return self.name.split(".", maxsplit=1)[0]

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source, self.name)

    @cached_property
    def nodes(self) -> list[tuple[ast.AST, bool]]:
        """The nodes of the tree, and whether they stand in a function."""
        found: list[tuple[ast.AST, bool]] = [(self.tree, False)]
        for node, inner in found:
            inside = inner or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            found += [(child, inside) for child in ast.iter_child_nodes(node)]
        return found


@dataclass(frozen=True, slots=True)
class Import:
    """An import: by whom, of what (`brickwork.ir.nodes`, `torch`), and whether it stands in a function."""

    module: str
    target: str
    line: int
    inner: bool


def modules(folder: Path) -> list[Module]:
    """Read every module under the folder of the package."""
    found: list[Module] = []
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        name = ".".join(path.relative_to(folder).with_suffix("").parts)
        found.append(Module(name, source))
    return found


def imports(tree: list[Module]) -> list[Import]:
    """Return every import of a tree; `from p import m` of a module m counts as an import of that module."""
    names = {f"{PACKAGE}.{module.name}".removesuffix(".__init__") for module in tree}
    found: list[Import] = []
    for module in tree:
        for node, inner in module.nodes:
            for target in _targets(module, node, names):
                found.append(Import(module.name, target, node.lineno, inner))
    return found


def _targets(module: Module, node: ast.AST, names: set[str]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    source = node.module or ""
    if node.level:
        parts = [PACKAGE, *module.name.split(".")][: -node.level]
        source = ".".join([*parts, *([node.module] if node.module else [])])
    submodules = [f"{source}.{alias.name}" for alias in node.names if f"{source}.{alias.name}" in names]
    return submodules or [source]


def direction(tree: list[Module]) -> list[str]:
    """Complain of imports that do not go down the layers."""
    complaints: list[str] = []
    for each in imports(tree):
        if not each.target.startswith(f"{PACKAGE}.") or each.module in rules.PUBLIC:
            continue
        room, other = each.module.split(".")[0], each.target.split(".")[1]
        if room == other:
            continue
        layer, below = rules.LAYERS.get(room), rules.LAYERS.get(other)
        if layer is None or below is None:
            complaints.append(f"{each.module}:{each.line}: {room if layer is None else other} has no layer")
        elif (below >= layer and (room, other) not in rules.SIDEWAYS) or layer < rules.NOT_BELOW.get(other, 0):
            complaints.append(f"{each.module}:{each.line}: {room} ({layer}) imports {other} ({below})")
    return complaints


def cycles(tree: list[Module]) -> list[str]:
    """Complain of a cycle of imports among modules."""
    graph: dict[str, set[str]] = {}
    for each in imports(tree):
        if each.target.startswith(f"{PACKAGE}."):
            source = each.module.removesuffix(".__init__")
            target = each.target.removeprefix(f"{PACKAGE}.")
            if source != target:
                graph.setdefault(source, set()).add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [" -> ".join(error.args[1])]
    return []


def doors(tree: list[Module]) -> list[str]:
    """Complain of a third party that enters elsewhere than through its door."""
    complaints: list[str] = []
    for each in imports(tree):
        allowed = rules.DOORS.get(each.target.split(".")[0])
        if allowed is None or any(each.module == door or each.module.startswith(f"{door}.") for door in allowed):
            continue
        complaints.append(f"{each.module}:{each.line}: {each.target} enters only through {', '.join(allowed)}")
    return complaints


def inner_imports(tree: list[Module]) -> list[str]:
    """Complain of imports inside functions but for heavy third parties (their doors are checked apart)."""
    return [
        f"{each.module}:{each.line}: imports {each.target} inside a function"
        for each in imports(tree)
        if each.inner and each.target.split(".")[0] not in rules.HEAVY
    ]


def births(tree: list[Module]) -> list[str]:
    """Complain of warnings that are given elsewhere than in their one place."""
    return [
        f"{module.name}:{node.lineno}: gives a warning; `{rules.WARNS}` does"
        for module in tree
        if module.name != rules.WARNS
        for node, _ in module.nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"warnings.warn", "warnings.warn_explicit"}
    ]


def long_files(tree: list[Module]) -> list[str]:
    """Complain of files beyond the budget."""
    lengths = ((module.name, module.source.count("\n")) for module in tree)
    return [f"{name}: {length} lines" for name, length in lengths if length > rules.FILE_LINES]


def long_functions(tree: list[Module]) -> list[str]:
    """Complain of functions beyond the budget, but for flat matches with short arms."""
    return [
        f"{module.name}:{node.lineno}: {node.name} has {_length(node)} lines"
        for module in tree
        for node, _ in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and _length(node) > rules.FUNCTION_LINES
        and not _flat_match(node)
    ]


def _length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _flat_match(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    matches = [statement for statement in node.body if isinstance(statement, ast.Match)]
    if len(matches) != 1:
        return False
    match = matches[0]
    rest = _length(node) - _length(match)
    return rest <= rules.FUNCTION_LINES // 2 and _length(match) <= rules.ARM_LINES * len(match.cases) + 1


_SUPPRESSION = re.compile(
    r"#\s*(?:type:\s*ignore(?:\[[\w, -]*\])?"
    r"|noqa(?::\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?"
    r"|pyright:\s*[\w=]+(?:\[[\w, ]*\])?)(?P<reason>.*)"
)


def suppressions(tree: list[Module]) -> list[str]:
    """Complain of suppressed checks without a reason, or of more of them than the budget allows."""
    complaints: list[str] = []
    count = 0
    for module in tree:
        lines = module.source.splitlines()
        for number, line in enumerate(lines, start=1):
            found = _SUPPRESSION.search(line)
            if found is None:
                continue
            count += 1
            stands_above = number > 1 and lines[number - 2].lstrip().startswith("#")
            if not found["reason"].strip() and not stands_above:
                complaints.append(f"{module.name}:{number}: suppressed without a reason beside or above it")
    total = sum(module.source.count("\n") for module in tree)
    budget = max(total // rules.LINES_PER_SUPPRESSION, 1)
    if count > budget:
        complaints.append(f"{count} suppressions in {total} lines; {budget} are allowed")
    return complaints


_MUTABLE_CALLS = frozenset(
    {"dict", "list", "set", "defaultdict", "deque", "Counter", "OrderedDict", "WeakKeyDictionary"}
)
_MUTATORS = frozenset(
    {"append", "add", "update", "pop", "popitem", "setdefault", "extend", "insert", "remove", "clear", "discard"}
)


def module_state(tree: list[Module]) -> list[str]:
    """Complain of modules that keep state.

    `global` statements are refused, and so are mutable containers at module level unless they are tables: named in
    capitals and not changed anywhere in their module.
    """
    complaints: list[str] = []
    for module in tree:
        if module.name in rules.STATEFUL:
            continue
        tables: set[str] = set()
        for name, node in _mutable_names(module.tree):
            if name.strip("_").isupper() or name == "__all__":
                tables.add(name)
            else:
                complaints.append(f"{module.name}:{node.lineno}: `{name}` is mutable state")
        for node, _ in module.nodes:
            changed = _changed_name(node)
            if isinstance(node, ast.Global) or (changed is not None and changed in tables):
                complaints.append(f"{module.name}:{node.lineno}: module state is changed")
    return complaints


def _mutable_names(tree: ast.Module) -> list[tuple[str, ast.stmt]]:
    found: list[tuple[str, ast.stmt]] = []
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        value = node.value
        called = value.func if isinstance(value, ast.Call) else None
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        display = ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp
        if isinstance(value, display) or name in _MUTABLE_CALLS:
            found += [(target.id, node) for target in targets if isinstance(target, ast.Name)]
    return found


def _changed_name(node: ast.AST) -> str | None:
    match node:
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)) if attribute in _MUTATORS:
            return name
        case ast.AugAssign(target=ast.Name(id=name)):
            return name
        case _:
            return None


_FORBIDDEN = re.compile(
    "|".join(
        (
            r"(?<![\w.])/" + r"(?:work|root|home|Users|opt)/\w",
            r"\w:\\" + r"Users\\",
            r"files\.python" + "hosted",
            r"\bpypi" + r"\.org",
            r"registry" + r"\.npmjs",
            r"(?:extra-)?index-" + "url",
            r"find-" + "links",
        )
    )
)


def tuned_constants(tree: list[Module]) -> list[str]:
    """Return the numbers outside of the model that modules name and that a measurement could change."""
    return [item for item in _tuned(tree) if not item.startswith(rules.MODEL)]


def model_constants(tree: list[Module]) -> list[str]:
    """Return the same of the modules of the model."""
    return [item for item in _tuned(tree) if item.startswith(rules.MODEL)]


def _tuned(tree: list[Module]) -> list[str]:
    """Return the numbers that modules name and that a measurement could change: constants, and arguments of records."""
    found: list[str] = []
    for module in tree:
        if module.room not in rules.COUNTED:
            continue
        for name, statement in constants(module).items():
            place = f"{module.name}:{name}"
            if not any(fnmatch(place, pattern) for pattern in rules.NOT_TUNED):
                found += [f"{place} at line {statement.lineno}"] * _numbers_in(statement.value)
    return found


def constants(module: Module) -> dict[str, ast.Assign]:
    """Return the constants of a module by name, with what assigns them."""
    found = (node for node in module.tree.body if isinstance(node, ast.Assign))
    named = ((node.targets[0], node) for node in found)
    return {name.id: node for name, node in named if isinstance(name, ast.Name) and name.id.isupper()}


def fnmatch_any(names: set[str], pattern: str) -> bool:
    """Whether one of some names is meant by a pattern."""
    return any(fnmatch(name, pattern) for name in names)


def _numbers_in(value: ast.expr) -> int:
    """Return how many numbers a constant consists of: one for an expression, one each for items and arguments."""
    match value:
        case ast.Tuple(elts=items):
            return sum(map(_numbers_in, items))
        case ast.Call(args=args, keywords=keywords):
            return sum(map(_numbers_in, (*args, *(item.value for item in keywords))))
        case ast.Constant(value=number):
            return int(isinstance(number, int | float) and not isinstance(number, bool))
        case ast.UnaryOp(operand=operand):
            return _numbers_in(operand)
        case ast.BinOp(left=left, right=right):
            return min(_numbers_in(left), _numbers_in(right), 1)
        case _:
            return 0


def tuned_comparisons(tree: list[Module]) -> list[str]:
    """Return the comparisons with a number that is neither small nor named."""
    found: list[str] = []
    for module in tree:
        for node, _ in module.nodes if module.room in rules.COUNTED else ():
            if not isinstance(node, ast.Compare) or not any(isinstance(each, _ORDERS) for each in node.ops):
                continue
            sides = (node.left, *node.comparators)
            numbers = [each.value for each in sides if isinstance(each, ast.Constant)]
            found += [
                f"{module.name}:{node.lineno}: {number}"
                for number in numbers
                if isinstance(number, int | float) and not isinstance(number, bool) and abs(number) > 2
            ]
    return found


_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def machine_words(files: list[Path], root: Path) -> list[str]:
    """Complain of paths of one machine and of hosts of package registries in tracked text files."""
    complaints: list[str] = []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            found = _FORBIDDEN.search(line)
            if found is not None:
                complaints.append(f"{path.relative_to(root)}:{number}: {found[0]}")
    return complaints
