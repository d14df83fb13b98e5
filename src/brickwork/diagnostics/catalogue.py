"""Every diagnostic code with its title: the sentence without the user's names in it.

Hundreds tell the kind: BW0xx what may be written, BW1xx types and ranks, BW2xx parallelism, BW3xx the operator and its
arguments, BW9xx limits. A code keeps its meaning for ever; one that is no longer used is left out, and not given again.
"""

from __future__ import annotations

CATALOGUE: dict[str, str] = {
    "BW001": "the source of the function cannot be found",
    "BW002": "a statement that is not part of the language",
    "BW003": "an expression that is not part of the language",
    "BW004": "a call that cannot be compiled",
    "BW005": "a name that is not defined on every path",
    "BW006": "a captured value that cannot be compiled in",
    "BW007": "a parameter or annotation that is not understood",
    "BW008": "a loop over something that is not a range",
    "BW009": "a result that an operator cannot return",
    "BW010": "a store into something that may be a copy",
    "BW101": "types that do not go together",
    "BW102": "a wrong number of indices",
    "BW103": "an index that is not an integer",
    "BW201": "iterations called parallel that collide",
    "BW301": "an argument of the wrong type",
    "BW901": "a construct of the language that is not supported yet",
}
"""Titles by code."""


def title(code: str) -> str:
    """Return the title of a code; unknown codes are a fault of the caller."""
    return CATALOGUE[code]
