"""What a kernel of CUDA C++ takes: told by the compiler, which knows types behind names, macros and templates.

`declare` is C++ that stands behind the user's text: a table with three numbers for each parameter of the kernel. The
table comes back as data of the PTX (`read`), so that neither a GPU nor a parser of C++ is needed.
"""

from __future__ import annotations

import re

from brickwork.records import dataclass

POINTER = 64
_CONST = 128
_TABLE = "brickwork_table"
_NAMES = (
    "",
    *("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "bool"),
    *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
)
"""Element types by number; 0 is any other."""
_TYPES = {
    "float": "float32",
    "double": "float64",
    "__half": "float16",
    "__nv_bfloat16": "bfloat16",
    "__nv_fp8_e4m3": "float8_e4m3fn",
    "__nv_fp8_e5m2": "float8_e5m2",
    "bool": "bool",
    "signed char": "int8",
    "unsigned char": "uint8",
    "short": "int16",
    "unsigned short": "uint16",
    "int": "int32",
    "unsigned": "uint32",
    "long long": "int64",
    "unsigned long long": "uint64",
}
CPP_TYPES = {name: spelling for spelling, name in _TYPES.items()}
"""What C++ calls each element type."""

_KIND = "template <> struct kind<{type}> {{ enum {{ value = {number} }}; }};"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel."""

    element: str
    """The element type: its own, or for a pointer that of what it points at; empty if it is none of torch's."""
    pointer: bool
    const: bool
    """Whether it points at what the kernel only reads."""
    size: int
    alignment: int

    def __str__(self) -> str:
        """Return the type in words of C++."""
        name = CPP_TYPES.get(self.element, "void" if self.pointer else f"a type of {self.size} bytes")
        return f"{'const ' if self.const else ''}{name}{'*' if self.pointer else ''}"


def declare(entry: str, file: str) -> str:
    """Return the C++ that makes the table for the kernel `entry`; messages of the compiler name `file` for it."""
    kinds = "\n".join(_KIND.format(type=type_, number=_NAMES.index(name)) for type_, name in _TYPES.items())
    return f"""
#line 1 "{file}"
struct __half; struct __nv_bfloat16; struct __nv_fp8_e4m3; struct __nv_fp8_e5m2;
namespace brickwork_parameters {{
template <class T> struct kind {{ enum {{ value = 0 }}; }};
{kinds}
template <int bytes> struct longs;
template <> struct longs<4> {{ typedef int whole; typedef unsigned natural; }};
template <> struct longs<8> {{ typedef long long whole; typedef unsigned long long natural; }};
template <> struct kind<long> : kind<longs<sizeof(long)>::whole> {{}};
template <> struct kind<unsigned long> : kind<longs<sizeof(long)>::natural> {{}};
template <class T> struct word {{ enum {{ value = kind<T>::value }}; }};
template <class T> struct word<const T> : word<T> {{}};
template <class T> struct word<T*> {{ enum {{ value = kind<T>::value | {POINTER} }}; }};
template <class T> struct word<const T*> {{ enum {{ value = kind<T>::value | {POINTER | _CONST} }}; }};
template <class T> struct word<volatile T*> : word<T*> {{}};
struct row {{ int kind, size, alignment; }};
template <class F> struct table;
template <class... P> struct table<void(P...)> {{
    int count = sizeof...(P);
    row rows[sizeof...(P) + 1] = {{row{{word<P>::value, (int)sizeof(P), (int)alignof(P)}}..., row{{}}}};
}};
}}
extern "C" __device__ const brickwork_parameters::table<decltype({entry})> {_TABLE};
extern "C" __device__ const brickwork_parameters::table<decltype({entry})> {_TABLE}{{}};
"""


def read(ptx: str) -> tuple[Parameter, ...]:
    """Return the parameters that the table in a PTX module tells."""
    found = re.search(rf"\b{_TABLE}\[(\d+)\]\s*=\s*\{{([^}}]*)\}}", ptx)
    if found is None:
        return ()
    data = bytes(int(item) for item in found[2].split(",")).ljust(int(found[1]), b"\0")
    numbers = [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]
    rows = [numbers[1 + 3 * at : 4 + 3 * at] for at in range(numbers[0])]
    return tuple(
        Parameter(_NAMES[kind % POINTER], bool(kind & POINTER), bool(kind & _CONST), size, alignment)
        for kind, size, alignment in rows
    )
