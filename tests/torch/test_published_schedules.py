"""The lines that say what is launched for each published operator, and a sample of them as they are kept."""

# pyright: basic
import pytest

from benchmarks.published import PUBLISHED
from benchmarks.published.schedules import KEPT, lines_of, moved, summary

EXPLAINED = """gradients
  x: scatter
filtered__backward(float32[4]) on cuda
host part: native
kernel filtered
  if f.shape[0] < 32 (taken):
    for n at windows.py:117: one thread an iteration
      updates of 'x_gradient' are atomic, as iterations may meet on an element
      for ox at windows.py:120: one thread for 4 neighbouring iterations
        for i at windows.py:130: in order
    for n at windows.py:117: one thread for up to 2 iterations
  else (not taken):
    for n at windows.py:117: a block of threads an iteration
      for i at windows.py:130: shared out among the threads of a block
kernel others
  since what is tested below does not hold:
  for n at windows.py:117: a block of threads an iteration
    for i at windows.py:130: shared out among the threads of a block
  windows.py:132: index 1 of 'f' read is in range if f.shape[1] >= 2; tested once, else checked
launches for these arguments
  x_gradient_fill_12: 1 block of 32 threads
  filtered_0: 3 times, 8 blocks of 256 threads, updates of 'x_gradient' are atomic
"""


def test_an_explanation_is_a_line():
    launched = "x_gradient_fill 1 x 32, filtered 3 times, 8 x 256, updates of 'x_gradient' are atomic"
    assert summary(EXPLAINED) == f"tt4o t2 | BS | {launched}"


def test_lines_that_moved_are_told_and_those_of_others_stay():
    before = ["rotary, small, forward: tt", "silu_and_mul, small, forward: t"]
    now, told = moved(before, {"silu_and_mul": ["silu_and_mul, small, forward: bs"]})
    assert now == ["rotary, small, forward: tt", "silu_and_mul, small, forward: bs"]
    assert [line for line in told if line[1] not in "-+ "][-2:] == [
        "-silu_and_mul, small, forward: t",
        "+silu_and_mul, small, forward: bs",
    ]
    assert moved(before, {"rotary": ["rotary, small, forward: tt"]}) == (before, [])


def test_lines_are_those_of_the_operators():
    found = [line.partition(":")[0] for line in KEPT.read_text().splitlines()]
    ways = {each.name: ("forward", "gradient")[: 1 + bool(each.gradient)] for each in PUBLISHED}
    cases = [f"{name}, {size}, {way}" for name in ways for way in ways[name] for size in ("small", "large")]
    assert found == [case for case in cases if case in found]


@pytest.mark.parametrize("name", ["upfirdn2d", "silu_and_mul"])
def test_what_is_launched_is_what_is_kept(name):
    assert [line for line in KEPT.read_text().splitlines() if line.startswith(f"{name}, ")] == lines_of(name)
