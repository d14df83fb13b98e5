"""What NVIDIA's assembler translates wrongly, written in another way.

`mul.hi.u32` and a subtraction of 64 bits from its widened result become one multiply-add of the negated low word. Its
carry stands for "no borrow", which is wrong where that word is 0: 3 - 0 is 3 - 2 ** 32 (ptxas 12.9 to 13.5, for sm_75
to sm_100). The high word of a wide product gives the same number, and is not joined with what follows.
"""

from __future__ import annotations

import re

_WIDENED = re.compile(r"\bcvt\.u64\.u32\s+%rd\d+, (%r\d+);|\bmov\.b64\s+%rd\d+, \{(%r\d+), [^}]*\};")
_HIGH_WORD = re.compile(r"\bmul\.hi\.u32\s+(%r\d+), ([^,;]+), ([^,;]+);")


def without_faults(ptx: str) -> str:
    """Return PTX in which no widened high word of a product can be joined with a subtraction."""
    widened = {name for pair in _WIDENED.findall(ptx) for name in pair}

    def written(match: re.Match[str]) -> str:
        result, left, right = match.groups()
        if result not in widened:
            return match[0]
        return f"{{ .reg .b64 %wide; mul.wide.u32 %wide, {left}, {right}; mov.b64 {{_, {result}}}, %wide; }}"

    return _HIGH_WORD.sub(written, ptx)
