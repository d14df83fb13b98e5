"""Parameters with parts: an object of a dataclass or a NamedTuple is a parameter of an operator for each of its fields.

The function is written anew with `p.alpha` as the parameter `p_alpha`, and so for classes in classes. Where the body
uses the object as a whole, it makes it anew of these parameters. `Given` turns the arguments of a call likewise.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, cast

from brickwork.diagnostics.diagnostic import Diagnostic, in_order
from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.environment import MISSING
from brickwork.frontend.parameters import FIELDS, Kinds
from brickwork.frontend.rules import error
from brickwork.frontend.shape_annotations import annotation_object
from brickwork.frontend.source import SourceFunction, bound_values, local_names
from brickwork.frontend.value_classes import Field, fields_of
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """A class, and its fields: those that are objects have a form of their own, others the name of a parameter."""

    kind: type[Any]
    fields: tuple[tuple[str, Form | str], ...]

    def leaves(self) -> Iterator[str]:
        """Yield the parameters, in order."""
        for _, found in self.fields:
            if isinstance(found, Form):
                yield from found.leaves()
            else:
                yield found


@dataclass(frozen=True, slots=True)
class Given:
    """How the parameters of the function, in order, are given: as they are (None), or by their parts."""

    forms: Mapping[str, Form | None]

    def flat(
        self, operator: str, arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call with the parts in place of objects; Dynamo traces this."""
        positional: list[Any] = []
        for form, (name, value) in zip(self.forms.values(), zip(self.forms, arguments, strict=False), strict=False):
            if form is None:
                positional.append(value)
            else:
                positional.extend(part for _, part in parts_of(operator, name, form, value))
        positional.extend(arguments[len(self.forms) :])
        words: dict[str, Any] = {}
        for name, value in named.items():
            form = self.forms.get(name)
            if form is None:
                words[name] = value
            else:
                words.update(parts_of(operator, name, form, value))
        return tuple(positional), words

    def names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return names of arguments with those of its parts in place of an object's."""
        found: list[str] = []
        for name in names:
            form = self.forms.get(name)
            found += [name] if form is None else form.leaves()
        return tuple(found)


def parts_of(operator: str, name: str, form: Form, value: Any) -> list[tuple[str, Any]]:
    """Return the parameters that an object stands for, with their values."""
    if form.kind is complex and isinstance(value, int | float):
        value = complex(value)
    if not isinstance(value, form.kind):
        wanted = form.kind.__name__
        raise TypeError(f"{operator}(): argument '{name}' must be {wanted}, not {type(value).__name__}")
    found: list[tuple[str, Any]] = []
    for key, each in form.fields:
        part = getattr(value, key)
        found += [(each, part)] if isinstance(each, str) else parts_of(operator, f"{name}.{key}", each, part)
    return found


# ---------------------------------------------------------------- the function, written anew


@dataclass(slots=True)
class _Flat:
    """The parameters that are made: annotations, defaults, and the objects that the function knows by name."""

    source: SourceFunction
    taken: set[str]
    written: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    objects: dict[str, object] = field(default_factory=dict[str, object])
    captured: dict[str, object] = field(default_factory=dict[str, object])
    wrong: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def parameter(self, name: str, annotation: object) -> str:
        """Make a parameter; its name is free."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.written[name], self.objects[name] = _written(annotation), annotation
        return name

    def name_of(self, kind: type[Any]) -> str:
        """Return a name that means a class in the function."""
        name = kind.__name__
        while name in self.source.local or self._known(name) not in {MISSING, kind}:
            name += "_"
        self.captured[name] = kind
        return name

    def _known(self, name: str) -> object:
        found = self.captured.get(name, self.source.captured.get(name, MISSING))
        return found if isinstance(found, type) or found is MISSING else None


def with_parts_given(source: SourceFunction, kinds: Kinds = ()) -> tuple[SourceFunction, Given | None]:
    """Return the function with parameters in place of objects, and how calls give them; None where there are none.

    `kinds` are the annotations of parameters that have none in the source.
    """
    arguments = source.node.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    flat = _Flat(source, {*source.local, *source.captured})
    found = {item.arg: _class_of(source, item.arg) for item in every}
    found |= {name: kind for name, kind in kinds if isinstance(kind, type)}
    forms = {item.arg: _form(flat, item, item.arg, found[item.arg]) for item in every}
    if not any(forms.values()):
        return source, None
    made = _function(source, forms, flat)
    _write_parameters(source.node, forms, flat)
    lines = [f"{name}: {ast.unparse(annotation)}" for name, annotation in flat.written.items()]
    _write_body(flat, {name: form for name, form in forms.items() if form is not None})
    text = "\n".join((source.text, *lines))
    captured = {**source.captured, **flat.captured}
    return replace(source, text=text, captured=captured, function=made), Given(forms)


def _class_of(source: SourceFunction, parameter: str) -> type[Any] | None:
    """Return the class that a parameter is annotated with, if its objects have parts."""
    return _with_fields(_meant(source, annotation_object(source, parameter), source.function))


def _meant(source: SourceFunction, annotation: object, owner: object) -> object:
    """Return what a text means as an annotation, where it is a name."""
    if not isinstance(annotation, str):
        return annotation
    module = sys.modules.get(str(getattr(owner, "__module__", "")))
    space: Mapping[str, object] = getattr(owner, "__globals__", vars(module) if module else {})
    return source.captured.get(annotation, space.get(annotation, complex if annotation == "complex" else MISSING))


def _with_fields(found: object) -> type[Any] | None:
    return found if found is complex or (isinstance(found, type) and fields_of(found)) else None


def _form(flat: _Flat, item: ast.arg, path: str, kind: type[Any] | None, depth: int = 8) -> Form | None:
    """Return the form of a class; None of none. Fields are parameters, or have forms."""
    if kind is None:
        return None
    annotations, fields = _annotations(kind), list[tuple[str, "Form | str"]]()
    declared = _PARTS if kind is complex else fields_of(kind)
    if not declared:
        message = f"`{path}` of type {kind.__name__} cannot be given by its parts"
        raise error("BW007", message, flat.source.location(item), FIELDS)
    for each in declared:
        annotation = annotations.get(each.name, MISSING)
        if annotation is MISSING or not depth:
            message = f"`{path}` of type {kind.__name__} cannot be given by its parts: `{each.name}` "
            message += "has no annotation" if depth else "leads to itself"
            advice = f"annotate it in the class, `{each.name}: float`" if depth else "make each number a parameter"
            raise error("BW007", message, flat.source.location(item), advice)
        name = f"{path}_{each.name}"
        inner = _form(flat, item, name, _with_fields(_meant(flat.source, annotation, kind)), depth - 1)
        fields.append((each.name, flat.parameter(name, annotation) if inner is None else inner))
    return Form(kind, tuple(fields))


_PARTS = (Field("real", MISSING), Field("imag", MISSING))
"""The parameters that a complex number is given by: torch's schemas have none."""


def _annotations(kind: type[Any]) -> dict[str, object]:
    """Return the annotations of a class, as objects where they can be evaluated."""
    if kind is complex:
        return {each.name: float for each in _PARTS}
    try:
        return dict(typing.get_type_hints(kind))
    except (NameError, TypeError, AttributeError):
        return {name: found for each in reversed(kind.__mro__) for name, found in _own_annotations(each)}


def _own_annotations(kind: type[Any]) -> Iterator[tuple[str, object]]:
    for name, found in inspect.get_annotations(kind).items():
        yield name, found.__forward_arg__ if isinstance(found, typing.ForwardRef) else found


def _written(annotation: object) -> ast.expr:
    """Return an annotation as it would be written."""
    text = annotation if isinstance(annotation, str) else ""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        text = annotation.__name__
    try:
        return ast.parse(text or str(annotation), mode="eval").body
    except SyntaxError:
        return ast.Constant(value=str(annotation))


def _function(source: SourceFunction, forms: Mapping[str, Form | None], flat: _Flat) -> types.FunctionType:
    """Return a function that is asked for the annotations and the defaults of the parameters that are made."""
    before: Any = source.function
    parameters: list[inspect.Parameter] = []
    for item in inspect.signature(before).parameters.values():
        form = forms.get(item.name)
        if form is None:
            parameters.append(item)
            continue
        values: dict[str, Any] = {}
        if item.default is not item.empty:
            values = dict(parts_of(source.name, item.name, form, item.default))
        parameters += [item.replace(name=name, default=values.get(name, item.empty)) for name in form.leaves()]
    made = types.FunctionType(before.__code__, before.__globals__, before.__name__, None, before.__closure__)
    made.__doc__, made.__module__, made.__qualname__ = before.__doc__, before.__module__, before.__qualname__
    made.__annotations__ = {**before.__annotations__, **flat.objects}
    with_default = [item for item in parameters if item.default is not item.empty]
    made.__defaults__ = tuple(item.default for item in with_default if item.kind is not item.KEYWORD_ONLY)
    made.__kwdefaults__ = {item.name: item.default for item in with_default if item.kind is item.KEYWORD_ONLY}
    cast("Any", made).__signature__ = inspect.Signature(parameters)
    made.__dict__["__bound__"] = bound_values(before)
    return made


def _write_parameters(node: ast.FunctionDef, forms: Mapping[str, Form | None], flat: _Flat) -> None:
    """Put the parameters that are made in the place of the objects."""
    arguments = node.args

    def made(item: ast.arg) -> list[ast.arg]:
        form = forms.get(item.arg)
        if form is None:
            return [item]
        return [_at(ast.arg(name, flat.written[name]), item) for name in form.leaves()]

    positional = [*arguments.posonlyargs, *arguments.args]
    first = len(positional) - len(arguments.defaults)
    defaults = [each for item, each in zip(positional[first:], arguments.defaults, strict=True) for _ in made(item)]
    words = [
        (each, default)
        for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        for each in made(item)
    ]
    arguments.defaults = defaults
    arguments.posonlyargs = [each for item in arguments.posonlyargs for each in made(item)]
    arguments.args = [each for item in arguments.args for each in made(item)]
    arguments.kwonlyargs, arguments.kw_defaults = [each for each, _ in words], [default for _, default in words]


def _at(made: Any, place: ast.AST) -> Any:
    for item in ast.walk(made):
        ast.copy_location(item, place)
    return made


def _write_body(flat: _Flat, forms: Mapping[str, Form]) -> None:
    """Write parameters in place of the parts of objects; names that are assigned anew stand for objects as before."""
    node = flat.source.node
    assigned = {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}
    parts = _Parts(flat, {name: form for name, form in forms.items() if name not in assigned})
    body: list[ast.stmt] = [parts.visit(statement) for statement in node.body]
    if flat.wrong:
        raise CompileError(in_order(flat.wrong))
    first = body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    made = [
        _at(ast.Assign([ast.Name(name, ast.Store())], _object(flat, form, first)), first)
        for name, form in forms.items()
        if name in assigned
    ]
    node.body = [*body[: int(documented)], *made, *body[int(documented) :]]


def _object(flat: _Flat, form: Form, place: ast.AST) -> ast.expr:
    """Return what makes an object anew."""
    words = [
        ast.keyword(name, _object(flat, each, place) if isinstance(each, Form) else ast.Name(each, ast.Load()))
        for name, each in form.fields
    ]
    return _at(ast.Call(ast.Name(flat.name_of(form.kind), ast.Load()), [], words), place)


class _Parts(ast.NodeTransformer):
    """Writes parameters in place of the parts of objects, and what makes an object in place of its name."""

    def __init__(self, flat: _Flat, forms: Mapping[str, Form]) -> None:
        self.flat, self.forms = flat, forms

    def _inside(self, node: Any) -> Any:
        """Rewrite a function whose parameters may have the same names."""
        hidden = {item.arg for item in ast.walk(node.args) if isinstance(item, ast.arg)}
        hidden |= local_names(node) if isinstance(node, ast.FunctionDef) else set()
        inner = _Parts(self.flat, {name: form for name, form in self.forms.items() if name not in hidden})
        visit: Callable[[ast.AST], Any] = inner.generic_visit
        return visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """Rewrite an inner function."""
        return self._inside(node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """Rewrite a lambda."""
        return self._inside(node)

    def _form(self, node: ast.expr) -> Form | str | None:
        """Return the form of the object, or the parameter, that an expression stands for."""
        if isinstance(node, ast.Name):
            return self.forms.get(node.id)
        if not isinstance(node, ast.Attribute):
            return None
        owner = self._form(node.value)
        return dict(owner.fields).get(node.attr) if isinstance(owner, Form) else None

    def _made(self, node: ast.Name | ast.Attribute) -> Any:
        found = self._form(node) if isinstance(node.ctx, ast.Load) else None
        if found is None:
            return self.generic_visit(node)
        made = ast.Name(found, ast.Load()) if isinstance(found, str) else _object(self.flat, found, node)
        return _at(made, node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Write `a, b = p_alpha, p_beta` for the unpacking of a NamedTuple."""
        found = self._form(node.value)
        if isinstance(found, Form) and issubclass(found.kind, tuple) and isinstance(node.targets[0], ast.Tuple):
            items = [ast.Attribute(node.value, name, ast.Load()) for name, _ in found.fields]
            node.value = _at(ast.Tuple([*items], ast.Load()), node.value)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Write `p_alpha` for `p.alpha`; refuse to store into it."""
        if not isinstance(node.ctx, ast.Load) and isinstance(owner := self._form(node.value), Form):
            message = f"`{ast.unparse(node)}` is stored into, and a `{owner.kind.__name__}` is a value here"
            advice = "compute with a local variable, or make a new object"
            loc = self.flat.source.location(node)
            self.flat.wrong.append(Diagnostic(code="BW002", message=message, loc=loc, help=advice))
        return self._made(node)

    def visit_Name(self, node: ast.Name) -> Any:
        """Write what makes an object for its name."""
        return self._made(node)
