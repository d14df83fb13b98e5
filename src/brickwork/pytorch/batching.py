"""What `torch.vmap` asks of operators that draw random numbers: its `randomness` decides whether and how they may.

Nothing else is needed for vmap: torch's own fallback calls an operator once for each sample, and refuses operators that
write into their arguments.
"""

from __future__ import annotations

from typing import Any

from brickwork.pytorch import library
from brickwork.pytorch.placement import device_of
from brickwork.pytorch.random_keys import draw_key
from brickwork.pytorch.schema import KEY

_MODE = "FuncTorchVmapMode"
_REFUSED = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)


def follow_randomness(registrar: Any, name: str, overload: Any) -> None:
    """Let an overload with a random key obey vmap; `registrar` is the torch.library.Library that defines `name`."""

    def in_vmap(*arguments: Any, **named: Any) -> Any:
        interpreter: Any = library.private("_functorch.pyfunctorch.retrieve_current_functorch_interpreter")()
        key, key_set = library.private("_C.DispatchKey"), library.private("_C.DispatchKeySet")
        with library.private("_C._ExcludeDispatchKeyGuard")(key_set(getattr(key, _MODE))):
            if named.get(KEY) is None:
                arguments, named = _with_randomness(interpreter, arguments, named)
            return overload(*arguments, **named)

    registrar.impl(name, in_vmap, _MODE)


def _with_randomness(
    interpreter: Any, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call that draws what the mode allows: one key for all samples, or one for each."""
    randomness, device = interpreter.randomness(), device_of((*arguments, *named.values()))
    if randomness == "error":
        raise RuntimeError(_REFUSED)
    if randomness == "same":
        return arguments, {**named, KEY: draw_key(device=device)}
    keys = draw_key(shape=(interpreter.batch_size(),), device=device)
    return arguments, {**named, KEY: library.private("_C._functorch._add_batch_dim")(keys, 0, interpreter.level())}
