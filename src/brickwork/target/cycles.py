"""Cycles that a core of a processor takes for operators and accesses, in what a model compares.

Read by the models of chains and of lanes (`transform/schedule/recurrence.py`, `transform/schedule/lane_costs.py`).
"""

ARITHMETIC = 4.0
"""Cycles of an addition or a multiplication of floats, with the other one in it."""
DIVISION = 13.0
"""Cycles of a division, a remainder or a square root."""
SIMPLE = 1.0
"""Cycles of all else: integers, comparisons, choices."""
READ = 5.0
"""Cycles of a read whose place is waited for."""
APART = 3.0
"""Cycles that a store takes for each lane, where lanes access elements apart, and twice what a read takes.

On an AMD EPYC (Zen 4) both took 1.5, from the nearest cache. A recurrence along rows that stores each sum waits 4
cycles for it and is faster in order: lanes have a line of memory each.
"""
MASK = ARITHMETIC + ARITHMETIC
"""Cycles from a comparison of lanes to what waits for its mask, two instructions later. In short loops it was
7 where it ends a loop and 14 where it chooses, on AVX-512."""
AT_ONCE = 4.0
"""Instructions of independent iterations that a processor runs in a cycle."""
