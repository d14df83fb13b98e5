"""Objects side by side in one file, as `ar` writes them: what one module became where threads compiled it in parts.

Nothing is told of the names in the objects: who links them reads all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_MAGIC = b"!<arch>\n"
_HEADER = 60
_SIZE = slice(48, 58)


def packed(objects: Sequence[bytes]) -> bytes:
    """Return the objects as one file: an archive, or the object itself if it is the only one."""
    return objects[0] if len(objects) == 1 else b"".join((_MAGIC, *_entries(objects)))


def members(code: bytes) -> tuple[bytes, ...]:
    """Return the objects in a file that `packed` made."""
    if not code.startswith(_MAGIC):
        return (code,)
    found: list[bytes] = []
    place = len(_MAGIC)
    while place < len(code):
        size = int(code[place : place + _HEADER][_SIZE])
        found.append(code[place + _HEADER : place + _HEADER + size])
        place += _HEADER + size + size % 2
    return tuple(found)


def _entries(objects: Iterable[bytes]) -> Iterable[bytes]:
    for number, each in enumerate(objects):
        yield f"{f'{number}.o/':16}{0:<12}{0:<6}{0:<6}{'100644':8}{len(each):<10}`\n".encode()
        yield each + b"\n" * (len(each) % 2)
