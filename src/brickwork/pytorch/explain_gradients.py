"""The gradient that a call would have, found without the call: what `op.explain("backward")` and `op.inspect` show."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, cast

from brickwork.frontend.source import start_of
from brickwork.pytorch.arguments import as_numbers, call_by_values, signature_of_call
from brickwork.pytorch.dtypes import has_gradient
from brickwork.pytorch.native import DerivedOperators, NativeOperator
from brickwork.pytorch.specialise import Place
from brickwork.pytorch.tensor_devices import tensors_of, without_data
from brickwork.pytorch.user_backward import UserBackward
from brickwork.records import dataclass
from brickwork.runtime.artifact import Artifact
from brickwork.transform.derivation import Derived


@dataclass(frozen=True, slots=True)
class Gradient:
    """The derived operator for the gradient of a call, and its arguments, without data."""

    operator: NativeOperator
    values: tuple[Any, ...]
    place: Place

    @property
    def artifact(self) -> Artifact:
        """Its code."""
        return self.operator.prepare(self.values, self.place)

    @property
    def numbers(self) -> list[Any]:
        """The arguments as sizes and numbers."""
        return [as_numbers(value) for value in self.values[: len(self.operator.definition.parameters)]]

    def explanation(self) -> str:
        """Say how gradients are summed, what they compute again and keep, and then how each loop runs."""
        made = cast("Derived", self.operator.definition)
        kinds = self.operator.kinds
        signature = signature_of_call(made, kinds, self.values, self.place.kind)
        text = importlib.import_module("brickwork.runtime.explain_gradients").gradients_text(
            made, signature, self.numbers, self.place.gpu
        )
        return f"{text}\n{said_of(self.artifact, self.numbers)}"


def gradient_of_call(
    family: DerivedOperators, fake: Callable[..., Any], values: Sequence[Any], place: Place
) -> Gradient:
    """Return the gradient of a call; `fake` runs the operator without data, and is given no key.

    It is that of the tensors that require grad, or of all float tensors if none does.
    """
    definition = family.definition
    asked = any(tensor.requires_grad for tensor in tensors_of(values))
    wanted = tuple(
        any(has_gradient(tensor) and tensor.requires_grad >= asked for tensor in tensors_of([value]))
        for value in values
    )
    if not any(wanted):
        raise ValueError(f"{family.overload.name()} has no float tensor among these arguments, and so no gradient")
    bare = [without_data(value) for value in values]
    pairs = [*zip(definition.parameters, bare, strict=True)]
    results = call_by_values(definition, fake, bare)
    outputs = tensors_of([*(value for item, value in pairs if item.name in definition.mutated), results])
    grads = [output for output in outputs if has_gradient(output)]
    if not grads:
        raise ValueError(f"{family.overload.name()} has no float results, and so no gradient")
    key = (None,) if definition.draws_random else ()
    found = family.gradients(wanted, bare, outputs)
    given = cast("Derived", found.definition).results_given
    saved = compress(outputs[len(outputs) - len(given) :], given)
    return Gradient(found, (*bare, *grads, *saved, *key), place)


def said_of(artifact: Artifact, numbers: Sequence[Any] | None) -> str:
    """Return what is said of code; `numbers` are the arguments as sizes and numbers, which choose what a GPU runs."""
    if numbers is None or not artifact.kernels:
        return artifact.explanation.text()
    text: str = importlib.import_module("brickwork.runtime.explain_launches").text_for(artifact, numbers)
    return text


def told_by_user(replaced: UserBackward) -> str:
    """Say that a gradient was given by the user, and what is kept for it."""
    name = getattr(replaced.backward, "__name__", "a callable")
    text = f"given by the user: `{name}` at {start_of(replaced.backward)}"
    if replaced.setup_context is None:
        return f"{text}\nsaved by the forward: all arguments"
    kept = getattr(replaced.setup_context, "__name__", "a callable")
    return f"{text}\nsaved by the forward: what `{kept}` at {start_of(replaced.setup_context)} keeps"
