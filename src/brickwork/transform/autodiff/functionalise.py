"""Functionalises a program: it leaves its arguments as they are and writes copies of those that it stores into.

    m[i] = m[i] * 2     ->     now = empty_like(m)
                               for i: now[i] = m[i]
                               now[i] = now[i] * 2

Places that tensors exchange get the types of what fills them now. In the kernel a copy goes by the name of its place.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.ir.nodes import (
    Launch,
    Parameter,
    Program,
    Rebind,
    Return,
    Statement,
    Tensor,
    TensorListParameter,
    TensorParameter,
    parameter_tensors,
)
from brickwork.ir.tensor_types import joined_type
from brickwork.transform.free_variables import with_body
from brickwork.transform.scratch import Names
from brickwork.transform.tensors import allocate_like, copied, like_type, renamed, same_sizes


def functionalise(program: Program, names: Names) -> tuple[Program, dict[Tensor, Tensor]]:
    """Return the program with no argument stored into, and the copy that stands for each that was."""
    copies = {
        tensor: Tensor(f"{tensor.name}_now", next(names.tensors), like_type(tensor.type))
        for tensor in parameter_tensors(program.parameters, mutated=True)
    }
    if not copies:
        return program, copies
    host: list[Statement] = [allocate_like(copy, tensor) for tensor, copy in copies.items()]
    replaced, placed = dict(copies), dict[Tensor, Tensor]()
    for node in program.body:
        match node:
            case Rebind(targets=targets, sources=sources):
                now = tuple(replaced.get(item, item) for item in sources)
                kind = joined_type([item.type for item in now])
                places = tuple(replace(item, number=next(names.tensors), type=kind) for item in targets)
                replaced.update(zip(targets, places, strict=True))
                placed.update(zip(now, places, strict=True))
                host.append(replace(node, targets=places, sources=now))
            case Launch(kernel=kernel):
                inside = {tensor: placed.get(copy, copy) for tensor, copy in copies.items()}
                filled = tuple(item for tensor, copy in inside.items() for item in copied(tensor, copy, names))
                body = (*filled, *renamed(kernel.body, replaced))
                same = [fact for tensor, copy in inside.items() for fact in same_sizes(copy, tensor)]
                facts = (*renamed(kernel.facts, replaced), *same)
                host.append(replace(node, kernel=with_body(kernel, body, facts)))
            case Return(tensors=tensors):
                host.append(replace(node, tensors=tuple(replaced.get(item, item) for item in tensors)))
            case _:
                host.append(node)
    return replace(program, parameters=tuple(map(_read_only, program.parameters)), body=tuple(host)), copies


def _read_only(parameter: Parameter) -> Parameter:
    if isinstance(parameter, TensorParameter | TensorListParameter):
        return replace(parameter, mutated=False)
    return parameter
