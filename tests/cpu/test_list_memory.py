"""Lists of iterations lie in a thread's stack, once for each lane: there are fewer lanes where they are long."""

from __future__ import annotations

import linecache
from typing import Any

import pytest
import torch

import brickwork as bw


def with_lists(count: int) -> bw.Op:
    """Return an operator each of whose iterations has so many lists of 62 KiB."""
    names = [f"l{number}" for number in range(count)]
    made = [f"        {name} = [0] * 8000" for name in names]
    stored = [f"        {name}[7 * i] = i + {place}" for place, name in enumerate(names)]
    text = f"""
def lists(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
{chr(10).join((*made, *stored))}
        out[i] = {" + ".join(f"{name}[i]" for name in names)}
    return out
"""
    file = f"<{count} lists>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"torch": torch}
    exec(compile(text, file, "exec"), namespace)
    return bw.op(f"list_memory::lists_{count}")(namespace["lists"])


def test_long_lists_of_many_iterations_fit_the_stack() -> None:
    made, x = with_lists(30), torch.zeros(64, dtype=torch.int64)
    assert torch.equal(made(x), made.python(x))


def test_more_than_a_stack_holds_is_refused() -> None:
    with pytest.raises(bw.CompileError, match="take more than 4 MiB of a thread's stack"):
        with_lists(70)(torch.zeros(64, dtype=torch.int64))


def test_copies_of_lists_whose_length_is_not_known_fit_the_stack() -> None:
    @bw.op("list_memory::copies")
    def copies(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(len(x), dtype=torch.int64)
        for i in range(len(x)):
            pairs = list(zip(range(i), x, range(i), x, range(i), x, range(i), x, strict=False))
            for a, b, c, d, e, f, g, h in pairs:
                out[i] += a * b - c * d + e * f - g * h + a
        return out

    x = torch.randint(0, 9, (64,))
    assert torch.equal(copies(x), copies.python(x))
