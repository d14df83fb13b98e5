"""The same rules in NumPy and in Numba, as people write them there: what the loops are timed beside."""
