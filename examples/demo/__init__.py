"""The demonstration: `make demo`, or `python -m examples.demo`."""
