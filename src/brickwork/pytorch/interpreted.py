"""Runs operators in the checking interpreter on torch's tensors: slow, and it finds what a broken word does.

This is what `BRICKWORK_CHECK=interpret` asks for: a `prange` whose iterations collide on real data raises a `RaceError`
with two iterations and the element. Tensors that share a storage share it in the interpreter, too. Those on a GPU are
copied to the CPU for it, and results back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from brickwork.ir.dtypes import DType
from brickwork.ir.interpret import Argument, Memory, run_program
from brickwork.ir.nodes import Return
from brickwork.ir.scalar_semantics import Number
from brickwork.ir.signature import Signature
from brickwork.pytorch.dtypes import from_torch, to_torch
from brickwork.pytorch.gate import schema_arguments
from brickwork.pytorch.random_keys import draw_key
from brickwork.pytorch.register import in_order
from brickwork.pytorch.tensor_devices import device_of, tensors_of
from brickwork.transform.derivation import Defined
from brickwork.transform.derive import program_of


def implementation(
    definition: Defined, overload: Any, signature_of: Callable[[tuple[object, ...]], Signature]
) -> Callable[..., Any]:
    """Return the implementation of an overload (an OpOverload) that runs in the interpreter."""
    arguments = schema_arguments(overload)

    def run(*given: object, **named: object) -> Any:
        values = in_order(arguments, given, named)
        results = interpret(definition, signature_of(values), values)
        return results[0] if len(results) == 1 else results or None

    return run


def interpret(definition: Defined, signature: Signature, values: Sequence[object]) -> tuple[torch.Tensor, ...]:
    """Run an operator on the arguments of its parameters, then the key if it draws, then the caller's results."""
    program = program_of(definition, signature)
    count = len(definition.parameters)
    storages: dict[tuple[int, DType], list[Number]] = {}
    arguments = [_argument(value, storages) for value in values[:count]]
    given = [cast("torch.Tensor", value) for value in values[len(values) - len(signature.out) :] if signature.out]
    out = [_memory(tensor, storages) for tensor in given]
    written = [
        pair
        for parameter, value, argument in zip(definition.parameters, values, arguments, strict=False)
        if parameter.name in definition.mutated
        for pair in _pairs(value, argument)
    ]
    try:
        results = run_program(program, arguments, out=out, key=_key(definition, values), check=True)
    finally:
        for tensor, memory in (*written, *zip(given, out, strict=True)):
            tensor.copy_(_tensor(memory, pairs=tensor.is_complex()))
    device = device_of(values)
    if signature.out:
        return ()
    pairs = [tensor.type.pairs for node in program.body if isinstance(node, Return) for tensor in node.tensors]
    found = (_tensor(result, pairs=is_complex) for result, is_complex in zip(results, pairs, strict=True))
    return tuple(tensor.to(device or "cpu") for tensor in found)


def _key(definition: Defined, values: Sequence[object]) -> int:
    """Return the given key, or one that torch's generator draws; 0 where nothing is drawn."""
    if not definition.draws_random:
        return 0
    given = values[len(definition.parameters)]
    if isinstance(given, torch.Tensor):
        return int(given.item())
    return int(draw_key(device=device_of(values)).item())


def _argument(value: object, storages: dict[tuple[int, DType], list[Number]]) -> Argument:
    if isinstance(value, torch.Tensor):
        return _memory(value, storages)
    if isinstance(value, list | tuple) and tensors_of(cast("Sequence[object]", value)):
        return [_memory(item, storages) for item in cast("Sequence[torch.Tensor]", value)]
    return cast("Argument", value)


def _pairs(value: object, argument: Argument) -> list[tuple[torch.Tensor, Memory]]:
    """Return the tensors of an argument with what they are in the interpreter."""
    memories = [argument] if isinstance(argument, Memory) else cast("Sequence[Memory]", argument or ())
    return list(zip(tensors_of([value]), memories, strict=True))


def _memory(tensor: torch.Tensor, storages: dict[tuple[int, DType], list[Number]]) -> Memory:
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    storage = tensor.untyped_storage()
    dtype = from_torch(tensor.dtype)
    assert dtype is not None, tensor.dtype  # noqa: S101  # the signature was made from this tensor
    data = storages.get((storage.data_ptr(), dtype))
    if data is None:
        flat = tensor.detach().as_strided((storage.nbytes() // tensor.element_size(),), (1,), 0)
        data = storages[storage.data_ptr(), dtype] = [item.item() for item in flat.cpu()]
    return Memory(data, tuple(tensor.shape), tensor.stride(), dtype, int(tensor.storage_offset()))


def _tensor(memory: Memory, *, pairs: bool = False) -> torch.Tensor:
    data = torch.tensor(memory.data, dtype=to_torch(memory.dtype), device="cpu")
    made = data.as_strided(memory.sizes, memory.strides, memory.offset)
    return torch.view_as_complex(made.contiguous()).clone() if pairs else made.clone()
