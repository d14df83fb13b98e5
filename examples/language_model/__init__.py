"""A small language model whose time mixing is `timex`, trained on the sources of Python's standard library."""
