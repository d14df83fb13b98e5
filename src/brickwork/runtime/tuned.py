"""The schedules that `op.tune` found to be fastest, by operator, types, sizes and machine: kept in the cache.

They change no bit of a result, so what they are never decides what a call returns.
"""

from __future__ import annotations

import os

from brickwork.codegen.entry_description import Sizes
from brickwork.codegen.rounding import Rounding
from brickwork.ir.signature import Signature
from brickwork.runtime import cache
from brickwork.runtime.cache import Entry
from brickwork.runtime.compile import environment_key
from brickwork.runtime.signature import signature_text
from brickwork.target.cpu import model
from brickwork.target.target import Target
from brickwork.transform.derivation import Defined


def _key(definition: Defined, signature: Signature, target: Target, rounding: Rounding) -> str:
    machine = f"{model()}, {os.cpu_count()} cores"
    what = ("tuned", definition.fingerprint, definition.name, f"{signature_text(signature)} {rounding}", machine)
    return cache.key_of((*what, *environment_key(target)))


def recall(definition: Defined, signature: Signature, target: Target, rounding: Rounding) -> dict[Sizes, str]:
    """Return the schedules that were found to be fastest for some sizes, in the order in which they were found."""
    entry = cache.peek(_key(definition, signature, target, rounding))
    found: list[tuple[list[list[int]], str]] = [] if entry is None else entry.metadata["schedules"]
    return {tuple(tuple(each) for each in sizes): schedule for sizes, schedule in found}


def remember(
    definition: Defined, signature: Signature, target: Target, rounding: Rounding, *, sizes: Sizes, schedule: str
) -> None:
    """Keep the schedule that was found to be fastest for some sizes; an empty one means that the default is."""
    known = recall(definition, signature, target, rounding)
    known.pop(sizes, None)
    if schedule:
        known[sizes] = schedule
    schedules = [([[*each] for each in tensors], text) for tensors, text in known.items()]
    entry = Entry({"schedules": schedules}, {})
    cache.put(_key(definition, signature, target, rounding), entry)
