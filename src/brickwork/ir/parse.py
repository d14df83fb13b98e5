"""Reads the text of `text.py` back into IR. The grammar is Python's, so that Python's own parser does the first half.

Malformed text raises ValueError with the line. Locations are lost in print, so that parsed nodes have none.
"""

from __future__ import annotations

import ast
from typing import NoReturn

from brickwork.ir.dtypes import BOOL, DTYPES, INT64, VALUE_DTYPES, DType, value_dtype
from brickwork.ir.nodes import (
    AbsentParameter,
    Allocate,
    Apply,
    Assign,
    Block,
    Break,
    Cast,
    Check,
    Constant,
    Continue,
    Draw,
    Expression,
    Failure,
    FailureKind,
    For,
    If,
    Kernel,
    KeyParameter,
    Launch,
    ListParameter,
    Load,
    Local,
    Parameter,
    Program,
    Random,
    Read,
    Rebind,
    Reduction,
    Return,
    Role,
    ScalarParameter,
    Select,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
    TensorListParameter,
    TensorParameter,
    TensorType,
    TextParameter,
    While,
)
from brickwork.ir.operators import OPERATORS, result_dtype


def parse_program(text: str) -> Program:
    """Return the program that `print_program` printed."""
    reader = _Reader()
    statements = reader.declarations(ast.parse(text).body)
    head = statements[0] if statements else None
    if not isinstance(head, ast.Expr) or _called(head.value) != "program":
        raise ValueError("a program begins with `program(...)` after its declarations")
    name, *parameters = _call(head.value).args
    options = _keywords(_call(head.value))
    return Program(
        name=_text(name),
        parameters=tuple(map(reader.parameter, parameters)),
        body=reader.block(statements[1:]),
        device=_text(options["device"]) if "device" in options else "cpu",
        narrow="narrow" in options,
        aligned="aligned" in options,
        may_alias="may_alias" in options,
    )


def parse_kernel(text: str) -> Kernel:
    """Return the kernel that `print_kernel` printed."""
    reader = _Reader()
    (statement,) = reader.declarations(ast.parse(text).body)
    (launch,) = reader.block([statement])
    if not isinstance(launch, Launch):
        _fail(statement)
    return launch.kernel


def _fail(node: ast.AST) -> NoReturn:
    raise ValueError(f"line {getattr(node, 'lineno', 0)}: `{ast.unparse(node)}` is not understood")


def _call(node: ast.expr) -> ast.Call:
    return node if isinstance(node, ast.Call) else _fail(node)


def _called(node: ast.expr) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {item.arg: item.value for item in call.keywords if item.arg is not None}


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else _fail(node)


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else _fail(node)


def _whole(node: ast.expr) -> int:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_whole(node.operand)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else _fail(node)


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


class _Reader:
    """Holds the declared names."""

    def __init__(self) -> None:
        self.symbols: dict[str, Symbol] = {}
        self.tensors: dict[str, Tensor] = {}

    # ------------------------------------------------------------ declarations

    def declarations(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Read the declarations at the top; return what follows."""
        for position, statement in enumerate(statements):
            if not isinstance(statement, ast.Assign) or _called(statement.value) not in {"tensor", "symbol"}:
                return statements[position:]
            name, call = _name(statement.targets[0]), _call(statement.value)
            dtype = DTYPES[_name(call.args[2])]
            if _called(call) == "symbol":
                self.symbols[name] = Symbol(_text(call.args[0]), _whole(call.args[1]), dtype)
            else:
                options = _keywords(call)
                axis = _whole(options["unit_axis"]) if "unit_axis" in options else None
                kind = TensorType(dtype, _whole(call.args[3]), "contiguous" in options, axis, "pairs" in options)
                sizes = tuple(map(_whole, _items(options["sizes"]))) if "sizes" in options else ()
                added = _whole(options["added"]) if "added" in options else 0
                self.tensors[name] = Tensor(_text(call.args[0]), _whole(call.args[1]), kind, sizes, added)
        return []

    def parameter(self, node: ast.expr) -> Parameter:
        """Return a parameter of a program."""
        arguments = _call(node).args
        match _called(node):
            case "tensor" | "mutated":
                optional = "optional" in _keywords(_call(node))
                return TensorParameter(self.tensor(arguments[0]), _called(node) == "mutated", optional)
            case "scalar":
                words = _keywords(_call(node))
                value = _whole(words["value"]) if "value" in words else None
                return ScalarParameter(self.symbol(arguments[0]), "optional" in words, value, "rate" in words)
            case "absent":
                return AbsentParameter(_text(arguments[0]))
            case "text":
                return TextParameter(_text(arguments[0]), _text(arguments[1]))
            case "tensor_list" | "mutated_list":
                tensors = tuple(map(self.tensor, arguments[1:]))
                return TensorListParameter(_text(arguments[0]), tensors, _called(node) == "mutated_list")
            case "list":
                return ListParameter(_text(arguments[0]), tuple(map(self.symbol, arguments[1:])))
            case "key":
                cell = self.tensor(arguments[1]) if len(arguments) > 1 else None
                return KeyParameter(self.symbol(arguments[0]), cell)
            case _:
                _fail(node)

    def symbol(self, node: ast.expr) -> Symbol:
        """Return a declared symbol."""
        return self.symbols.get(_name(node)) or _fail(node)

    def tensor(self, node: ast.expr) -> Tensor:
        """Return a declared tensor."""
        return self.tensors.get(_name(node)) or _fail(node)

    # ------------------------------------------------------------ expressions

    def expression(self, node: ast.expr) -> Expression:
        """Return an expression."""
        match node:
            case ast.Constant(value=bool() as value):
                return Constant(value=value, dtype=BOOL)
            case ast.Constant(value=int() as value):
                return Constant(value=value, dtype=INT64)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                return Constant(value=-value, dtype=INT64)
            case ast.Name():
                return Read(symbol=self.symbol(node))
            case ast.BinOp(op=ast.MatMult(), left=ast.Subscript() as place):
                tensor, indices = self.place(place)
                dtype = value_dtype(tensor.type.dtype)
                return Load(tensor=tensor, indices=indices, access=_whole(node.right), dtype=dtype)
            case ast.Call():
                return self._applied(node)
            case _:
                _fail(node)

    def place(self, node: ast.Subscript) -> tuple[Tensor, tuple[Expression, ...]]:
        """Return the tensor and the indices of `x[i, j]`."""
        return self.tensor(node.value), self.expressions(_items(node.slice))

    def expressions(self, nodes: list[ast.expr]) -> tuple[Expression, ...]:
        """Return several expressions."""
        return tuple(map(self.expression, nodes))

    def _applied(self, node: ast.Call) -> Expression:
        name, arguments = _called(node), node.args
        if name == "size":
            return Size(tensor=self.tensor(arguments[0]), axis=_whole(arguments[1]))
        if name == "random":
            return self._random(arguments)
        if name in DTYPES:
            return _typed(DTYPES[name], arguments[0])
        operands = self.expressions(arguments)
        if name == "select":
            return Select(condition=operands[0], then=operands[1], otherwise=operands[2])
        if name.removeprefix("to_") in DTYPES:
            return Cast(operand=operands[0], dtype=DTYPES[name.removeprefix("to_")])
        if name not in OPERATORS:
            _fail(node)
        operator = OPERATORS[name]
        return Apply(operator=operator, operands=operands, dtype=result_dtype(operator, operands[0].dtype))

    def _random(self, arguments: list[ast.expr]) -> Random:
        draw, site, dtype, *rest = arguments
        key, counter, extra, *bounds = self.expressions(rest)
        return Random(
            draw=Draw(_text(draw)),
            site=_whole(site),
            dtype=DTYPES[_name(dtype)],
            key=key,
            counter=counter,
            extra=extra,
            bounds=tuple(bounds),
        )

    # ------------------------------------------------------------ statements

    def block(self, statements: list[ast.stmt]) -> Block:
        """Return statements; `pass` stands for none."""
        return tuple(self.statement(item) for item in statements if not isinstance(item, ast.Pass))

    def statement(self, node: ast.stmt) -> Statement:
        """Return a statement."""
        match node:
            case ast.Assign(targets=[ast.Subscript() as place], value=ast.BinOp(op=ast.MatMult()) as stored):
                tensor, indices = self.place(place)
                access, value, combine = _whole(stored.right), stored.left, None
                if _called(value) == "combine":
                    name, value = _call(value).args
                    combine = OPERATORS[_name(name)]
                stored_value = self.expression(value)
                return Store(tensor=tensor, indices=indices, value=stored_value, access=access, combine=combine)
            case ast.Assign(targets=[ast.Name() as name]):
                return Assign(symbol=self.symbol(name), value=self.expression(node.value))
            case ast.If():
                name, test = _call(node.test).args if _called(node.test) == "version" else (None, node.test)
                then, otherwise = self.block(node.body), self.block(node.orelse)
                version = "" if name is None else _text(name)
                return If(condition=self.expression(test), then=then, otherwise=otherwise, version=version)
            case ast.For():
                return self._for(node)
            case ast.While(body=[ast.With() as prelude, *body]):
                test = self.expression(node.test)
                return While(prelude=self.block(prelude.body), condition=test, body=self.block(body))
            case ast.Break():
                return Break()
            case ast.Continue():
                return Continue()
            case ast.With():
                return Launch(kernel=self._kernel(node))
            case ast.Return(value=ast.Tuple() as results):
                return Return(tensors=tuple(map(self.tensor, results.elts)))
            case ast.Expr(value=ast.Call() as call) if _called(call) == "allocate":
                return self._allocate(call)
            case ast.Expr(value=ast.Call() as call) if _called(call) == "local":
                values = (item.value for item in self.expressions(call.args[1:]) if isinstance(item, Constant))
                return Local(tensor=self.tensor(call.args[0]), values=tuple(values))
            case ast.Expr(value=ast.Call() as call) if _called(call) == "rebind":
                targets, sources = (tuple(map(self.tensor, _items(item))) for item in call.args)
                return Rebind(targets=targets, sources=sources)
            case ast.Expr(value=ast.Call() as call) if _called(call) == "check":
                return self._check(call)
            case _:
                _fail(node)

    def _for(self, node: ast.For) -> For:
        head = _call(node.iter)
        options = _keywords(head)
        start, stop = self.expressions(head.args)
        reductions = [_call(item) for item in _items(options.get("reductions", ast.Tuple(elts=[])))]
        return For(
            index=self.symbol(node.target),
            start=start,
            stop=stop,
            body=self.block(node.body),
            claimed="claimed" in options,
            role=Role(_name(options["role"])) if "role" in options else Role.SEQUENTIAL,
            width=_whole(options["width"]) if "width" in options else 1,
            across=_whole(options["across"]) if "across" in options else 0,
            unrolled=_whole(options["unrolled"]) if "unrolled" in options else 1,
            reductions=tuple(map(self._reduction, reductions)),
        )

    def _reduction(self, call: ast.Call) -> Reduction:
        symbol, *along = map(self.symbol, call.args)
        return Reduction(symbol, OPERATORS[_called(call)], along[0] if along else None)

    def _check(self, call: ast.Call) -> Check:
        condition, kind, message, *values = call.args
        failure = Failure(FailureKind(_name(kind)), _text(message))
        return Check(condition=self.expression(condition), failure=failure, values=self.expressions(values))

    def _allocate(self, call: ast.Call) -> Allocate:
        options = _keywords(call)
        return Allocate(
            tensor=self.tensor(call.args[0]),
            sizes=self.expressions(call.args[1:]),
            fill=self.expression(options["fill"]) if "fill" in options else None,
            like=self.tensor(options["like"]) if "like" in options else None,
            given="given" in options,
        )

    def _kernel(self, node: ast.With) -> Kernel:
        call = _call(node.items[0].context_expr)
        options = _keywords(call)
        return Kernel(
            name=_text(call.args[0]),
            tensors=tuple(map(self.tensor, _items(options["tensors"]))),
            scalars=tuple(map(self.symbol, _items(options["scalars"]))),
            facts=self.expressions(_items(options["facts"])),
            body=self.block(node.body),
            may_alias="may_alias" in options,
            narrow=tuple(map(self.narrow, _items(options.get("narrow", ast.Tuple(elts=[]))))),
            aligned=tuple(map(self.tensor, _items(options.get("aligned", ast.Tuple(elts=[]))))),
        )

    def narrow(self, node: ast.expr) -> Tensor | Symbol:
        """Return a declared tensor or symbol."""
        return self.tensors.get(_name(node)) or self.symbol(node)


def _typed(dtype: DType, node: ast.expr) -> Constant:
    value: object = ast.literal_eval(node)
    if dtype not in VALUE_DTYPES or not isinstance(value, int | float | str):
        _fail(node)
    return Constant(value=float(value) if dtype.is_float else int(value), dtype=dtype)
