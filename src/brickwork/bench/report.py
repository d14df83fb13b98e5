"""Times and ratios as they are written for readers."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Return a time with three digits and a fitting unit.

    >>> duration(0.0123), duration(4.5e-6)
    ('12.3 ms', '4.50 us')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale or unit == "us":
            value = seconds / scale
            digits = 0 if value >= 100 else 1 if value >= 10 else 2
            return f"{value:.{digits}f} {unit}"
    raise AssertionError


def ratio(value: float) -> str:
    """Return a ratio with as many digits as it deserves.

    >>> ratio(123.4), ratio(1.234), ratio(0.001234)
    ('123 x', '1.23 x', '0.0012 x')
    """
    if value < 0.1:
        return f"{value:.2g} x"
    return f"{value:.2f} x" if value < 10 else f"{value:.1f} x" if value < 100 else f"{value:.0f} x"
