"""The specialisations of one operator: which call asks for which code, compiled once and linked into its gates.

Code for a GPU is compiled for an architecture and linked where there is a GPU of it; for one that is not here it stays
PTX, which can be looked at.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeAlias, cast

import torch

from brickwork.config import config
from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import DeviceError
from brickwork.diagnostics.warn import tell_at
from brickwork.ir.signature import Signature
from brickwork.pytorch.arguments import as_numbers, device_kind, signature_of_call
from brickwork.pytorch.devices import devices, index_of, refuse_capture, target_of
from brickwork.pytorch.gate import ArgumentKind, Gate
from brickwork.pytorch.register import DEFAULT
from brickwork.pytorch.tensor_devices import tensors_of
from brickwork.records import dataclass
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.compile import Compilation
from brickwork.target.cuda import OLDEST, capability_named, cuda_target
from brickwork.target.target import Target
from brickwork.transform.derivation import Defined

Compile: TypeAlias = Callable[[Defined, Signature, Target | None], Compilation]
"""Returns the code of a definition for a signature, on a GPU or, for None, on this processor."""
Note: TypeAlias = Callable[[Signature, str, Compilation], None]
"""Told of each specialisation and its overload."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What operators that come with another one are compiled and registered with: pieces, and what is derived."""

    compile: Compile
    thunks: Callable[[], bytes]
    note: Note
    interpreted: bool = False
    """Whether they run in the checking interpreter."""
    fuse: bool = True
    """Whether compiled graphs may have their code instead of calling them."""


ForSizes: TypeAlias = Callable[[Signature], Sequence[Artifact]]
"""Returns the code that is for some sizes alone, which takes such calls before the code for all sizes does."""
_Key: TypeAlias = tuple[str, Signature, str]


@dataclass(frozen=True, slots=True)
class Place:
    """Where code is to run: on this processor (no `gpu`), or on a kind of GPU; `index` is one that is here, if any."""

    gpu: Target | None = None
    index: int | None = None

    @property
    def kind(self) -> str:
        """The kind of device, as signatures have it."""
        return "cpu" if self.gpu is None else "cuda"

    @property
    def here(self) -> bool:
        """Whether the code can be loaded."""
        return self.gpu is None or self.index is not None


@dataclass(slots=True)
class Specialiser:
    """What was compiled for an operator, and what of it is linked."""

    definition: Defined
    compile: Compile
    note: Note
    for_sizes: ForSizes | None = None
    artifacts: dict[_Key, Artifact] = field(default_factory=dict[_Key, Artifact])
    """By overload, signature and architecture, oldest first."""
    linked: set[tuple[Gate, int, _Key]] = field(default_factory=set[tuple[Gate, int, _Key]])
    """By gate, and by how often that was cleared."""
    told: set[Diagnostic] = field(default_factory=set[Diagnostic])
    """The warnings that were given."""

    def miss(self, gate: Gate, overload: str, kinds: Sequence[ArgumentKind], values: Sequence[object]) -> None:
        """Compile and link code for a call that no code takes yet."""
        signature = signature_of_call(self.definition, kinds, values)
        index = index_of(tensors_of(values))
        if signature.device == "cuda" and index is not None:
            refuse_capture(self.definition.name, index)
            self.specialise(overload, signature, gpu(index), gate, values)
        else:
            self.specialise(overload, signature, Place(), gate)

    def specialise(
        self, overload: str, signature: Signature, place: Place, gate: Gate | None, values: Sequence[object] = ()
    ) -> Artifact:
        """Return the code for a signature; with a gate, linked into it where it can run here.

        `values` are the arguments of a call that is made next on a GPU.
        """
        key = (overload, signature, "" if place.gpu is None else place.gpu.cpu)
        artifact = self.artifacts.get(key)
        if artifact is None:
            made = self.compile(self.definition, signature, place.gpu)
            artifact = self.artifacts[key] = made.artifact
            self.note(signature, overload, made)
            if values and place.index is not None and not made.cached:
                devices().make_ahead(artifact, place.index, [*map(as_numbers, values)])
        if gate is not None and place.here and (link := (gate, gate.clearings, key)) not in self.linked:
            symbols = None if place.index is None else devices().link(artifact, place.index)
            gate.add(artifact.code, artifact.description, symbols)
            self.linked.add(link)
            if place.gpu is None and overload == DEFAULT:
                self._link_for_sizes(gate, signature)
        self._tell(artifact)
        return artifact

    def _link_for_sizes(self, gate: Gate, signature: Signature) -> None:
        for each in self.for_sizes(signature) if self.for_sizes is not None else ():
            gate.add(each.code, each.description)

    def link_again(self, gate: Gate, signature: Signature) -> None:
        """Link the code for a signature anew: what is fastest for some sizes may be other code by now."""
        artifact = self.artifacts[DEFAULT, signature, ""]
        gate.add(artifact.code, artifact.description)
        self._link_for_sizes(gate, signature)

    def _tell(self, artifact: Artifact) -> None:
        """Warn, once for an operator and a place in its source, at the user's line."""
        for each in artifact.warnings if config.warn else ():
            if each not in self.told:
                self.told.add(each)
                tell_at(each)


def complete(artifact: Artifact, place: Place) -> None:
    """Make now what calls would make when they first launch a kernel: machine code where it can run here, else PTX."""
    if artifact.kernels and place.here:
        devices().load_all(artifact)
    elif artifact.kernels:
        importlib.import_module("brickwork.runtime.device_ptx").ptx_of(artifact)


def gpu(index: int) -> Place:
    """Return a GPU of this machine, ready for calls."""
    return Place(target_of(devices().ready(index)), index)


def place_of(values: Sequence[object], name: str | torch.device | None) -> Place:
    """Return the place that code for these arguments is made for, by its name or else by where the tensors are.

    Without tensors it is the CPU.
    """
    tensors = tensors_of(values)
    if not tensors or (name is None and device_kind(tensors) == "cpu"):
        return Place()
    return place_named(tensors[0].device if name is None else name)


def place_named(name: str | torch.device) -> Place:
    """Return the place that a name stands for: a device of torch's, or an architecture such as `sm_90`."""
    if str(name).startswith("sm_"):
        capability = capability_named(str(name))
        if capability < OLDEST:
            raise DeviceError(f"code for GPUs is made for sm_{OLDEST[0]}{OLDEST[1]} or later, not for {name}")
        return Place(cuda_target(capability))
    device = torch.device(name)
    if device.type == "cpu":
        return Place()
    if device.type != "cuda":
        raise ValueError(f"brickwork makes code for cpu and cuda, not for {device.type}")
    if not torch.cuda.is_available():
        raise DeviceError(f"there is no GPU here for device={str(name)!r}: name an architecture, such as 'sm_90'")
    index = cast("int | None", device.index)
    return gpu(torch.cuda.current_device() if index is None else index)
