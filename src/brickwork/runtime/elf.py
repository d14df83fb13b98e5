"""Relocatable ELF objects for x86-64: reads one, and links it for an address into an image of memory.

Pure: bytes in, bytes out; `loader.py` gets the memory. What LLVM emits for position-independent code of the small code
model is understood; anything else is an `UnsupportedObjectError`, and the caller takes another way.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from brickwork.records import dataclass

PAGE = 4096
STUB = 8
"""Bytes of a jump stub: `jmp *slot(%rip)` and two bytes of padding."""
SLOT = 8
"""Bytes of an entry of the table of addresses."""

_MAGIC = b"\x7fELF\x02\x01"
_ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

_RELOCATABLE, _X86_64 = 1, 62
_SYMTAB, _RELA, _NOBITS = 2, 4, 8
_WRITE, _ALLOC, _EXECUTE, _TLS = 1, 2, 4, 0x400
_UNDEFINED, _ABSOLUTE, _FIRST_RESERVED = 0, 0xFFF1, 0xFF00
_LOCAL, _WEAK = 0, 2

_CALL = 4
"""R_X86_64_PLT32."""
_THROUGH_TABLE = frozenset({9, 41, 42})
"""R_X86_64_GOTPCREL, R_X86_64_GOTPCRELX, R_X86_64_REX_GOTPCRELX."""


class UnsupportedObjectError(Exception):
    """The object holds something that this linker does not know."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section that takes memory: its number in the file, its place in the image, and its bytes in the file."""

    name: str
    offset: int
    size: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol: `section` is None if the object does not define it; `value` is an offset in the section."""

    name: str
    section: int | None
    value: int
    local: bool
    weak: bool


@dataclass(frozen=True, slots=True)
class Relocation:
    """A place to patch: section and offset, what kind, which symbol."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True, slots=True)
class Layout:
    """An object laid out: code, stubs, page boundary, data, table of addresses."""

    sections: dict[int, Section]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]
    stubs: dict[int, int]
    slots: dict[int, int]
    code_size: int
    size: int

    def frames(self) -> int | None:
        """Return the offset of the unwind table, if there is one; it ends with four bytes of 0."""
        return next((section.offset for section in self.sections.values() if section.name == ".eh_frame"), None)

    def definitions(self) -> dict[str, int]:
        """Return the offset of each global symbol that the object defines."""
        found: dict[str, int] = {}
        for symbol in self.symbols:
            section = None if symbol.section is None else self.sections.get(symbol.section)
            if section is not None and not symbol.local:
                found[symbol.name] = section.offset + symbol.value
        return found


def _align(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def _text(table: bytes, start: int) -> str:
    return table[start : table.index(b"\0", start)].decode()


def _symbols(data: bytes, headers: Sequence[tuple[int, ...]]) -> tuple[Symbol, ...]:
    table = next((header for header in headers if header[1] == _SYMTAB), None)
    if table is None:
        raise UnsupportedObjectError("no symbol table")
    names = headers[table[6]]
    text = data[names[4] : names[4] + names[5]]
    symbols: list[Symbol] = []
    for name, info, _, section, value, _ in _SYMBOL.iter_unpack(data[table[4] : table[4] + table[5]]):
        if section >= _FIRST_RESERVED and section != _ABSOLUTE:
            raise UnsupportedObjectError("a common symbol")
        place = None if section in {_UNDEFINED, _ABSOLUTE} else section
        symbols.append(Symbol(_text(text, name), place, value, info >> 4 == _LOCAL, info >> 4 == _WEAK))
    return tuple(symbols)


def _headers(data: bytes) -> tuple[list[tuple[int, ...]], bytes]:
    """Return the section headers, and the table of their names."""
    if len(data) < _ELF_HEADER.size or not data.startswith(_MAGIC):
        raise UnsupportedObjectError("not a 64-bit little-endian ELF file")
    header = _ELF_HEADER.unpack_from(data)
    start, count, name_section = header[6], header[12], header[13]
    headers = [_SECTION.unpack_from(data, start + number * _SECTION.size) for number in range(count)]
    return headers, data[headers[name_section][4] :]


def undefined(data: bytes) -> dict[str, bool]:
    """Return the names that an object of any machine lacks, and whether each is weak; none if it is no ELF file."""
    return {symbol.name: symbol.weak for symbol in _global(data) if symbol.section is None}


def defined(data: bytes) -> frozenset[str]:
    """Return the names that an object of any machine has for others; none if it is no ELF file."""
    return frozenset(symbol.name for symbol in _global(data) if symbol.section is not None)


def _global(data: bytes) -> tuple[Symbol, ...]:
    try:
        symbols = _symbols(data, _headers(data)[0])
    except UnsupportedObjectError:
        return ()
    return tuple(symbol for symbol in symbols if not symbol.local)


def read(data: bytes) -> Layout:
    """Read an object and choose a place in the image for all of it."""
    headers, names = _headers(data)
    if _ELF_HEADER.unpack_from(data)[1:3] != (_RELOCATABLE, _X86_64):
        raise UnsupportedObjectError("not a relocatable object for x86-64")
    symbols = _symbols(data, headers)
    relocations: list[Relocation] = []
    for section in headers:
        if section[1] == _RELA and headers[section[7]][2] & _ALLOC:
            content = data[section[4] : section[4] + section[5]]
            relocations += (
                Relocation(section[7], offset, info & 0xFFFFFFFF, info >> 32, addend)
                for offset, info, addend in _RELOCATION.iter_unpack(content)
            )
    return _place(data, headers, names, symbols, tuple(relocations))


def _place(
    data: bytes,
    headers: Sequence[tuple[int, ...]],
    names: bytes,
    symbols: tuple[Symbol, ...],
    relocations: tuple[Relocation, ...],
) -> Layout:
    sections: dict[int, Section] = {}
    offset = 0

    def place(executable: bool) -> None:
        nonlocal offset
        for number, (name, kind, flags, _, start, size, _, _, alignment, _) in enumerate(headers):
            if not flags & _ALLOC or bool(flags & _EXECUTE) != executable:
                continue
            if flags & _TLS or (executable and flags & _WRITE):
                raise UnsupportedObjectError("a thread-local or self-modifying section")
            offset = _align(offset, max(alignment, 1))
            content = b"" if kind == _NOBITS else data[start : start + size]
            sections[number] = Section(_text(names, name), offset, size, content)
            offset += size + 4

    place(executable=True)
    offset = _align(offset, STUB)
    calls = dict.fromkeys(r.symbol for r in relocations if r.kind == _CALL and symbols[r.symbol].section is None)
    stubs = {symbol: offset + index * STUB for index, symbol in enumerate(calls)}
    code_size = offset = _align(offset + len(stubs) * STUB, PAGE)
    place(executable=False)
    offset = _align(offset, SLOT)
    loads = dict.fromkeys(r.symbol for r in relocations if r.kind in _THROUGH_TABLE)
    slots = {symbol: offset + index * SLOT for index, symbol in enumerate({**calls, **loads})}
    size = _align(offset + len(slots) * SLOT, PAGE)
    return Layout(sections, symbols, relocations, stubs, slots, code_size, size)


def link(layout: Layout, base: int, resolve: Callable[[str], int | None]) -> bytes:
    """Return the image for address `base`; `resolve` gives the addresses of names that the object lacks.

    KeyError names one that is found nowhere; a weak one is 0 then.
    """
    image = bytearray(layout.size)
    for section in layout.sections.values():
        image[section.offset : section.offset + len(section.content)] = section.content
    used = {relocation.symbol for relocation in layout.relocations}
    addresses = {number: _address(layout, layout.symbols[number], base, resolve) for number in used}
    for number, slot in layout.slots.items():
        struct.pack_into("<Q", image, slot, addresses[number])
    for number, stub in layout.stubs.items():
        struct.pack_into("<HiH", image, stub, 0x25FF, layout.slots[number] - (stub + 6), 0x9066)
    for relocation in layout.relocations:
        place = layout.sections[relocation.section].offset + relocation.offset
        try:
            form, value = _patched(layout, relocation, addresses[relocation.symbol], base, place)
            struct.pack_into(form, image, place, value)
        except struct.error:
            name = layout.symbols[relocation.symbol].name
            raise UnsupportedObjectError(f"relocation type {relocation.kind} does not reach {name!r}") from None
    return bytes(image)


def _address(layout: Layout, symbol: Symbol, base: int, resolve: Callable[[str], int | None]) -> int:
    if symbol.section is not None:
        return base + layout.sections[symbol.section].offset + symbol.value
    found = resolve(symbol.name)
    if found is None and not symbol.weak:
        raise KeyError(symbol.name)
    return found or 0


def _patched(layout: Layout, relocation: Relocation, address: int, base: int, place: int) -> tuple[str, int]:
    """Return what stands at a place that is patched: the form of the number, and the number."""
    addend = relocation.addend
    match relocation.kind:
        case 1:  # R_X86_64_64
            return "<Q", (address + addend) & 0xFFFFFFFFFFFFFFFF
        case 24:  # R_X86_64_PC64
            return "<q", address + addend - (base + place)
        case 2:  # R_X86_64_PC32
            return "<i", address + addend - (base + place)
        case 4:  # R_X86_64_PLT32
            stub = layout.stubs.get(relocation.symbol)
            return "<i", (address if stub is None else base + stub) + addend - (base + place)
        case 9 | 41 | 42:  # R_X86_64_GOTPCREL, R_X86_64_GOTPCRELX, R_X86_64_REX_GOTPCRELX
            return "<i", layout.slots[relocation.symbol] + addend - place
        case 10:  # R_X86_64_32
            return "<I", address + addend
        case 11:  # R_X86_64_32S
            return "<i", address + addend
        case kind:
            raise UnsupportedObjectError(f"relocation type {kind}")
