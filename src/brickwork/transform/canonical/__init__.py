"""The canonical form of a program: what it says, in the words that the analyses and the schedule look for.

However a loop was written, it counts with an index, and what follows from an index is written in terms of it. Nothing
in here proves anything about tensors, or knows the target. `form.py` has the order.
"""
