"""IR as text: printed for people, in the grammar of Python, so that `parse.py` can read it back.

Tensors and symbols are declared at the top and carry their numbers in their names. `x_0[i_2] @ 3` is the access number
3. Locations are not printed. Invariant: `parse_program(print_program(program)) == program`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import assert_never

from brickwork.ir.dtypes import BOOL, INT64
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
    Expression,
    For,
    If,
    Kernel,
    KeyParameter,
    Launch,
    ListParameter,
    Load,
    Local,
    Node,
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
    TextParameter,
    While,
)
from brickwork.ir.walk import walk

INDENT = "    "


def print_program(program: Program) -> str:
    """Return a program as text.

    >>> print(print_program(Program(name="nothing", parameters=(), body=(Return(tensors=()),))))
    program('nothing')
    return ()
    """
    parameters = ", ".join((repr(program.name), *map(_parameter, program.parameters), *_program_options(program)))
    names = _declarations([program], program.parameters)
    return "\n".join((*names, f"program({parameters})", *_lines(program.body, 0)))


def _program_options(program: Program) -> list[str]:
    options = [] if program.device == "cpu" else [f"device={program.device!r}"]
    options += ["narrow=True"] * program.narrow + ["aligned=True"] * program.aligned
    return options + ["may_alias=True"] * program.may_alias


def print_kernel(kernel: Kernel) -> str:
    """Return a kernel as text."""
    return "\n".join((*_declarations([kernel], ()), *_kernel(kernel, 0)))


# ---------------------------------------------------------------- names


def symbol_name(symbol: Symbol) -> str:
    """Return how a symbol is called in the text."""
    return f"{_identifier(symbol.name)}_{symbol.number}"


def tensor_name(tensor: Tensor) -> str:
    """Return how a tensor is called in the text."""
    return f"{_identifier(tensor.name)}_t{tensor.number}"


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", f"_{name}" if name[:1].isdigit() else name)


def _declarations(roots: list[Node], parameters: tuple[Parameter, ...]) -> list[str]:
    """Return a line for each tensor and each symbol, in order of first use."""
    tensors: dict[Tensor, None] = {}
    symbols: dict[Symbol, None] = {}
    for parameter in parameters:
        match parameter:
            case TensorParameter():
                tensors[parameter.tensor] = None
            case ListParameter():
                symbols.update(dict.fromkeys(parameter.symbols))
            case ScalarParameter():
                symbols[parameter.symbol] = None
            case TensorListParameter():
                tensors.update(dict.fromkeys(parameter.tensors))
            case AbsentParameter() | TextParameter():
                pass
            case KeyParameter():
                symbols[parameter.symbol] = None
                if parameter.cell is not None:
                    tensors[parameter.cell] = None
    for node in walk(roots):
        tensors.update(dict.fromkeys(_tensors(node)))
        symbols.update(dict.fromkeys(_symbols(node)))
    return [*map(_declare_tensor, tensors), *map(_declare_symbol, symbols)]


def _tensors(node: Node) -> tuple[Tensor, ...]:
    match node:
        case Size() | Load() | Store() | Local():
            return (node.tensor,)
        case Allocate():
            return (node.tensor,) if node.like is None else (node.tensor, node.like)
        case Kernel() | Return():
            return node.tensors
        case Rebind():
            return (*node.targets, *node.sources)
        case _:
            return ()


def _symbols(node: Node) -> tuple[Symbol, ...]:
    match node:
        case Read() | Assign():
            return (node.symbol,)
        case For():
            return (node.index, *(reduction.symbol for reduction in node.reductions))
        case Kernel():
            return node.scalars
        case _:
            return ()


def _declare_tensor(tensor: Tensor) -> str:
    kind = tensor.type
    flags = (", contiguous=True" if kind.contiguous else "") + (
        f", unit_axis={kind.unit_axis}" if kind.unit_axis is not None else ""
    )
    flags += ", pairs=True" if kind.pairs else ""
    flags += f", sizes={tensor.sizes!r}" if tensor.sizes else ""
    flags += f", added={tensor.added}" if tensor.added else ""
    arguments = f"{tensor.name!r}, {tensor.number}, {kind.dtype}, {kind.rank}{flags}"
    return f"{tensor_name(tensor)} = tensor({arguments})"


def _declare_symbol(symbol: Symbol) -> str:
    return f"{symbol_name(symbol)} = symbol({symbol.name!r}, {symbol.number}, {symbol.dtype})"


def _optional(parameter: TensorParameter | ScalarParameter) -> str:
    return ", optional=True" if parameter.optional else ""


def _parameter(parameter: Parameter) -> str:
    match parameter:
        case TensorParameter():
            kind = "mutated" if parameter.mutated else "tensor"
            return f"{kind}({tensor_name(parameter.tensor)}{_optional(parameter)})"
        case ScalarParameter():
            value = "" if parameter.value is None else f", value={parameter.value}"
            rate = ", rate=True" if parameter.rate else ""
            return f"scalar({symbol_name(parameter.symbol)}{_optional(parameter)}{value}{rate})"
        case AbsentParameter():
            return f"absent({parameter.name!r})"
        case TextParameter():
            return f"text({parameter.name!r}, {parameter.value!r})"
        case ListParameter():
            return f"list({', '.join((repr(parameter.name), *map(symbol_name, parameter.symbols)))})"
        case TensorListParameter():
            kind = "mutated_list" if parameter.mutated else "tensor_list"
            return f"{kind}({', '.join((repr(parameter.name), *map(tensor_name, parameter.tensors)))})"
        case KeyParameter():
            cell = "" if parameter.cell is None else f", {tensor_name(parameter.cell)}"
            return f"key({symbol_name(parameter.symbol)}{cell})"
        case _:
            assert_never(parameter)


# ---------------------------------------------------------------- expressions


def print_expression(node: Expression) -> str:
    """Return an expression as text."""
    match node:
        case Constant():
            return _constant(node)
        case Read():
            return symbol_name(node.symbol)
        case Size():
            return f"size({tensor_name(node.tensor)}, {node.axis})"
        case Load():
            return f"({tensor_name(node.tensor)}[{_tuple(node.indices)}] @ {node.access})"
        case Apply():
            return f"{node.operator}({_commas(node.operands)})"
        case Cast():
            return f"to_{node.dtype}({print_expression(node.operand)})"
        case Select():
            return f"select({_commas((node.condition, node.then, node.otherwise))})"
        case Random():
            operands = _commas((node.key, node.counter, node.extra, *node.bounds))
            return f"random({node.draw.value!r}, {node.site}, {node.dtype}, {operands})"
        case _:
            assert_never(node)


def _constant(node: Constant) -> str:
    if node.dtype in {BOOL, INT64}:
        return repr(node.value)
    if isinstance(node.value, float) and not math.isfinite(node.value):
        return f"{node.dtype}({str(node.value)!r})"
    return f"{node.dtype}({node.value!r})"


def _commas(nodes: tuple[Expression, ...]) -> str:
    return ", ".join(map(print_expression, nodes))


def _tuple(nodes: tuple[Expression, ...]) -> str:
    return f"{_commas(nodes)}," if len(nodes) == 1 else _commas(nodes) or "()"


def _names(names: Iterator[str]) -> str:
    return f"({''.join(f'{name}, ' for name in names).rstrip()})"


# ---------------------------------------------------------------- statements


def _lines(block: Block, depth: int) -> Iterator[str]:
    if not block:
        yield f"{INDENT * depth}pass"
    for statement in block:
        yield from _statement(statement, depth)


def _statement(node: Statement, depth: int) -> Iterator[str]:
    space = INDENT * depth
    match node:
        case If():
            condition = print_expression(node.condition)
            yield f"{space}if {f'version({node.version!r}, {condition})' if node.version else condition}:"
            yield from _lines(node.then, depth + 1)
            if node.otherwise:
                yield f"{space}else:"
                yield from _lines(node.otherwise, depth + 1)
        case For():
            yield f"{space}for {symbol_name(node.index)} in {_head(node)}:"
            yield from _lines(node.body, depth + 1)
        case While():
            yield f"{space}while {print_expression(node.condition)}:"
            yield f"{space}{INDENT}with prelude:"
            yield from _lines(node.prelude, depth + 2)
            yield from _lines(node.body, depth + 1)
        case Launch():
            yield from _kernel(node.kernel, depth)
        case _:
            yield f"{space}{_simple(node)}"


def _simple(node: Assign | Store | Local | Break | Continue | Check | Rebind | Allocate | Return) -> str:
    match node:
        case Assign():
            return f"{symbol_name(node.symbol)} = {print_expression(node.value)}"
        case Store():
            place = f"{tensor_name(node.tensor)}[{_tuple(node.indices)}]"
            value = print_expression(node.value)
            value = value if node.combine is None else f"combine({node.combine}, {value})"
            return f"{place} = {value} @ {node.access}"
        case Local():
            return _local(node)
        case Break():
            return "break"
        case Continue():
            return "continue"
        case Check():
            message = f"{node.failure.kind.value}, {node.failure.message!r}"
            return (
                f"check({', '.join((print_expression(node.condition), message, *map(print_expression, node.values)))})"
            )
        case Rebind():
            targets, sources = (_names(map(tensor_name, part)) for part in (node.targets, node.sources))
            return f"rebind({targets}, {sources})"
        case Allocate():
            return _allocate(node)
        case Return():
            return f"return {_names(map(tensor_name, node.tensors))}"
        case _:
            assert_never(node)


def _local(node: Local) -> str:
    values = tuple(Constant(value=value, dtype=node.tensor.type.dtype) for value in node.values)
    return f"local({', '.join((tensor_name(node.tensor), *map(print_expression, values)))})"


def _head(node: For) -> str:
    options = [f"{print_expression(node.start)}, {print_expression(node.stop)}"]
    if node.claimed:
        options.append("claimed=True")
    if node.role is not Role.SEQUENTIAL:
        options.append(f"role={node.role.value}")
    if node.width != 1:
        options.append(f"width={node.width}")
    if node.across:
        options.append(f"across={node.across}")
    if node.unrolled > 1:
        options.append(f"unrolled={node.unrolled}")
    if node.reductions:
        options.append(f"reductions={_names(map(_reduction, node.reductions))}")
    return f"range({', '.join(options)})"


def _reduction(item: Reduction) -> str:
    names = [symbol_name(symbol) for symbol in (item.symbol, item.along) if symbol is not None]
    return f"{item.operator}({', '.join(names)})"


def _allocate(node: Allocate) -> str:
    options = [tensor_name(node.tensor), *map(print_expression, node.sizes)]
    if node.fill is not None:
        options.append(f"fill={print_expression(node.fill)}")
    if node.like is not None:
        options.append(f"like={tensor_name(node.like)}")
    if node.given:
        options.append("given=True")
    return f"allocate({', '.join(options)})"


def _kernel(kernel: Kernel, depth: int) -> Iterator[str]:
    options = [
        repr(kernel.name),
        f"tensors={_names(map(tensor_name, kernel.tensors))}",
        f"scalars={_names(map(symbol_name, kernel.scalars))}",
        f"facts={_names(map(print_expression, kernel.facts))}",
    ]
    if kernel.may_alias:
        options.append("may_alias=True")
    if kernel.narrow:
        options.append(f"narrow={_names(map(_narrow_name, kernel.narrow))}")
    if kernel.aligned:
        options.append(f"aligned={_names(map(tensor_name, kernel.aligned))}")
    yield f"{INDENT * depth}with kernel({', '.join(options)}):"
    yield from _lines(kernel.body, depth + 1)


def _narrow_name(item: Tensor | Symbol) -> str:
    return tensor_name(item) if isinstance(item, Tensor) else symbol_name(item)
