"""What `op.explain("backward")` says before the loops: how gradients are summed, what they compute again and keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from brickwork.ir.nodes import KeyParameter, parameter_tensors
from brickwork.ir.signature import Signature
from brickwork.runtime.launches import Argument, bytes_allocated
from brickwork.target.cpu import host_target
from brickwork.target.target import Target
from brickwork.transform.autodiff.costs import costs
from brickwork.transform.autodiff.explain_sums import ways_of_summing
from brickwork.transform.derivation import Backward, Derived
from brickwork.transform.derive import base_signature, program_of


def gradients_text(made: Derived, signature: Signature, arguments: Sequence[Argument], gpu: Target | None) -> str:
    """Return what the gradients of an operator cost, on a processor if not on a GPU.

    `signature` and `arguments` are those of the derived operator.
    """
    return "\n".join(_lines(made, signature, arguments, gpu or host_target()))


def _lines(made: Derived, signature: Signature, arguments: Sequence[Argument], target: Target) -> Iterator[str]:
    assert isinstance(made.derivation, Backward), made.name  # noqa: S101  # the caller asks for gradients
    wanted = made.derivation.wanted
    source = program_of(made.base, base_signature(len(made.base.parameters), made.derivation, signature))
    derived = program_of(made, signature)
    parameters = [item for item in source.parameters if not isinstance(item, KeyParameter)]
    asked = parameter_tensors(item for item, chosen in zip(parameters, wanted, strict=True) if chosen)
    names = tuple(tensor.name for tensor in asked)
    yield "gradients"
    for line in ways_of_summing(source, derived, names, target):
        yield f"  {line}"
    found = costs(source, derived)
    yield f"computed again: {', '.join(found.recomputed) or 'nothing'}"
    sizes = bytes_allocated(derived, arguments)
    yield "kept while it runs" + ("" if found.kept else ": nothing")
    for item in found.kept:
        number = f" = {sizes[item.tensor]:,}" if item.tensor in sizes else ""
        yield f"  {item.name}: {item.formula}{number} bytes"
    yield f"saved by the forward: {_saved(made)}"


def _saved(made: Derived) -> str:
    """Return which arguments and results the forward saves, and of which the sizes alone."""
    pairs = zip(made.base.parameters, made.read, strict=True)
    tensors = [(item.name, read) for item, read in pairs if "tensor" in item.kind]
    bare = ", ".join(name for name, read in tensors if not read)
    parts = [", ".join([*(name for name, read in tensors if read), *_results(made.results_given)]) or "nothing"]
    parts += [f"the sizes of {bare}"] if bare else []
    parts += ["the random key"] if made.draws_random else []
    return "; ".join(parts)


def _results(given: Sequence[bool]) -> Iterator[str]:
    """Yield what the results that are saved are called."""
    for place, is_given in enumerate(given):
        if is_given:
            yield "the result" if len(given) == 1 else f"result {place}"
