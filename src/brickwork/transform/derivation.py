"""What an operator can be made into, as data: its gradients, its tangents, itself over samples.

A `Derived` is to the rooms after the frontend what a `Definition` is: it has a name, parameters, a fingerprint. Its
program is made in `derive.py`, which nobody needs whose code is in the cache.
"""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import replace
from functools import cached_property
from typing import Literal, TypeAlias, assert_never

from brickwork.diagnostics.location import Location
from brickwork.frontend.definition import Definition
from brickwork.frontend.parameters import NO_DEFAULT, ParameterDeclaration
from brickwork.ir.dtypes import DTYPES, FLOAT32, DType
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Backward:
    """The gradients of an operator.

    `wanted` has an item for each parameter but `key`: whether its gradient is a result. Only parameters that are float
    tensors, or lists of them, have one; those of a list are a result for each item. `grad_<i>`, one for each float
    tensor that is stored into (in the order of the parameters) and each float result, are added to the parameters.
    A parameter that the operator stores into is given with its elements from before that, and is not written.
    `results` has an item for each result of the operator: whether it is given, too, as a parameter `result_<i>` behind
    them; it may be empty where none is. `default_dtype` is torch's at the operator's call; a gradient may be computed
    under another one.
    """

    wanted: tuple[bool, ...]
    results: tuple[bool, ...] = ()
    default_dtype: DType = FLOAT32


@dataclass(frozen=True, slots=True)
class Forward:
    """The tangents of what an operator stores into and of its results: of float tensors, those stored into first.

    `given` has an item for each parameter but `key`: whether it has a tangent. `tangent_<name>`, one for each tensor
    among those, are added to the parameters.
    """

    given: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """The operator over samples.

    `given` has an item for each parameter but `key`: whether it has one more axis, in front, of one item a sample.
    With `keys`, `key` is a tensor of one key a sample, else all samples draw with one.
    """

    given: tuple[bool, ...]
    keys: bool = False


Derivation: TypeAlias = Backward | Forward | Batch


@dataclass(frozen=True, eq=False)
class Derived:
    """An operator that is made of another one.

    `floats` tells of each tensor that `base` stores into (items of lists too), then of each of its results, whether it
    has a derivative. `counts` has the number of tensors in each parameter of `base` that is a list, 1 for a tensor
    that is there, else 0. `read` tells for each parameter of `base` whether its elements may be looked at; of others
    the sizes matter.
    """

    base: Definition | Derived
    derivation: Derivation
    floats: tuple[bool, ...]
    counts: tuple[int, ...]
    read: tuple[bool, ...]

    host: Literal["native"] = "native"

    @cached_property
    def name(self) -> str:
        """The name: that of the base, then what was made of it."""
        return f"{self.base.name}__{self.suffix}"

    @cached_property
    def suffix(self) -> str:
        """What was made of the base, in letters and digits."""
        match self.derivation:
            case Backward(wanted=chosen):
                text = "backward_"
            case Forward(given=chosen):
                text = "forward_"
            case Batch(given=chosen, keys=keys):
                text = "batch_keys_" if keys else "batch_"
            case _:
                assert_never(self.derivation)
        tensors = [place for place, item in enumerate(self.base.parameters) if item.kind in _TENSORS]
        text += "".join(self._letter(place, chosen=chosen[place]) for place in tensors)
        text += "" if all(self.floats) else f"_to_{_bits(self.floats)}"
        read = [self.read[place] for place in tensors]
        text += "" if all(read) else f"_with_{_bits(read)}"
        text += f"_from_{_bits(self.results_given)}" if any(self.results_given) else ""
        kept = self.derivation.default_dtype if isinstance(self.derivation, Backward) else FLOAT32
        return text if kept is FLOAT32 else f"{text}_of_{kept.name}"

    @property
    def reads_default_dtype(self) -> bool:
        """Whether native code follows torch's default dtype; that of a gradient is a part of its name."""
        return not isinstance(self.derivation, Backward) and self.base.reads_default_dtype

    @property
    def default_dtype(self) -> DType:
        """The default dtype that code is made for now; FLOAT32 where it does not matter."""
        return self.derivation.default_dtype if isinstance(self.derivation, Backward) else self.base.default_dtype

    @property
    def rates(self) -> frozenset[str]:
        """The int parameters that places are multiplied or divided by."""
        return self.base.rates

    @property
    def results_given(self) -> tuple[bool, ...]:
        """Which results of the base are parameters."""
        return self.derivation.results if isinstance(self.derivation, Backward) else ()

    def _letter(self, place: int, *, chosen: bool) -> str:
        parameter = self.base.parameters[place]
        if not self.counts[place] and parameter.name in self.base.mutated and parameter.kind == "tensor":
            return "a"
        if parameter.kind == "list[tensor]":
            return f"{'l' if chosen else 'n'}{self.counts[place]}x"
        return str(int(chosen))

    @cached_property
    def parameters(self) -> tuple[ParameterDeclaration, ...]:
        """Those of the base, then what is added."""
        own = [replace(item, keyword_only=False, default=NO_DEFAULT) for item in self.base.parameters]
        taken = {item.name for item in own}
        added: list[str] = []
        match self.derivation:
            case Backward():
                added = [f"grad_{number}" for number in range(sum(self.floats))]
                added += [f"result_{number}" for number, given in enumerate(self.results_given) if given]
            case Forward(given=given):
                for item, chosen, count in zip(own, given, self.counts, strict=True):
                    names = [item.name] if item.kind == "tensor" else [f"{item.name}_{at}" for at in range(count)]
                    added += [f"tangent_{name}" for name in names] if chosen else []
            case Batch():
                pass
        return (*own, *(_added(name, taken, self.base.loc) for name in added))

    @property
    def mutated(self) -> frozenset[str]:
        """The names of the parameters that are stored into."""
        return self.base.mutated if isinstance(self.derivation, Batch) else frozenset()

    @cached_property
    def results(self) -> int:
        """How many tensors are returned."""
        match self.derivation:
            case Backward(wanted=wanted):
                return sum(count for count, chosen in zip(self.counts, wanted, strict=True) if chosen)
            case Forward():
                return sum(self.floats)
            case Batch():
                return self.base.results

    @property
    def draws_random(self) -> bool:
        """Whether there is a parameter `key`."""
        return self.base.draws_random

    @property
    def key_rank(self) -> int:
        """How many axes of samples `key` has."""
        own = int(isinstance(self.derivation, Batch) and self.derivation.keys)
        return own + (self.base.key_rank if isinstance(self.base, Derived) else 0)

    @property
    def reason(self) -> str:
        """Why the host part is not native: it always is."""
        return ""

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything that the operator is made of."""
        return hashlib.sha256(f"{self.base.fingerprint} {self.suffix}".encode()).hexdigest()

    @property
    def loc(self) -> Location:
        """Where the function begins that all was made of."""
        return self.base.loc

    @cached_property
    def origin(self) -> Definition:
        """What the user has written."""
        return self.base if isinstance(self.base, Definition) else self.base.origin


Defined: TypeAlias = Definition | Derived
"""An operator of which programs can be made."""

_TENSORS = frozenset({"tensor", "list[tensor]"})


def derived(base: Defined, suffix: str) -> Derived | None:
    """Return what is made of `base` under a name that ends in `suffix`; None if it is no such name."""
    found = re.fullmatch(
        r"(backward|forward|batch)_(keys_)?((?:[01a]|[ln]\d+x)*)(?:_to_([01]+))?(?:_with_([01]+))?"
        r"(?:_from_([01]+))?(?:_of_(float64|float16|bfloat16))?",
        suffix,
    )
    if found is None or (found[2] and found[1] != "batch") or ((found[6] or found[7]) and found[1] != "backward"):
        return None
    letters = re.findall(r"[01a]|[ln]\d+x", found[3])
    places = [place for place, item in enumerate(base.parameters) if item.kind in _TENSORS]
    if len(letters) != len(places):
        return None
    chosen, counts, read = ([False] * len(base.parameters), [0] * len(base.parameters), [True] * len(base.parameters))
    for place, letter, is_read in zip(places, letters, found[5] or "1" * len(places), strict=True):
        chosen[place], read[place] = letter[0] in "1l", is_read == "1"
        counts[place] = int(letter[1:-1]) if len(letter) > 1 else int(letter != "a")
    written = sum(count for item, count in zip(base.parameters, counts, strict=True) if item.name in base.mutated)
    floats = tuple(bit == "1" for bit in found[4] or "1" * (written + base.results))
    bits = tuple(chosen)
    given = tuple(bit == "1" for bit in found[6] or "")
    kept = DTYPES[found[7] or "float32"]
    made = {"backward": functools.partial(Backward, results=given, default_dtype=kept), "forward": Forward}
    derivation = made.get(found[1], functools.partial(Batch, keys=bool(found[2])))
    return Derived(base, derivation(bits), floats, tuple(counts), tuple(read))


def origin_of(defined: Defined) -> Definition:
    """Return what the user has written."""
    return defined if isinstance(defined, Definition) else defined.origin


def _bits(values: tuple[bool, ...] | list[bool]) -> str:
    return "".join(str(int(value)) for value in values)


def _added(name: str, taken: set[str], loc: Location) -> ParameterDeclaration:
    """Return a parameter for a tensor, named so that it differs from others."""
    while name in taken:
        name += "_"
    taken.add(name)
    return ParameterDeclaration(name, "tensor", NO_DEFAULT, keyword_only=False, loc=loc)
