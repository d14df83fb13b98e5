"""What NVRTC says of a text, as diagnostics at the user's lines, with what to do where its words are not enough."""

from __future__ import annotations

import re
from collections.abc import Sequence

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.location import Location
from brickwork.frontend.text_locations import GivenText
from brickwork.records import dataclass
from brickwork.runtime.cuda_host_code import DevicePart

OWN = "brickwork"
"""The file that messages name for what brickwork writes behind the text."""
TEXT = "text"
"""The one for the user's text."""
_MAP = "__nv_name_map"
"""The one that they name for NVRTC's search for the kernel."""
_MESSAGE = re.compile(r"^(.+?)\((\d+)\): (?:catastrophic )?error: (.*)$")
_MOST_MESSAGES = 10
_PACKAGES = {
    r"curand": "nvidia-curand",
    r"(?:cuda_\w+|mma|cooperative_groups|cuComplex|vector_types|math_constants|texture_\w+)\.h|cooperative_groups/": (
        "nvidia-cuda-runtime"
    ),
    r"crt/": "nvidia-cuda-crt",
    r"(?:cub|thrust|cuda|nv)/": "nvidia-cuda-cccl",
}
"""NVIDIA's packages by the headers that are in them, as patterns of how their names begin."""
_PYTORCH = re.compile(r'name followed by "::" must be a class or namespace|namespace "(?:torch|at|c10)"')


@dataclass(frozen=True, slots=True)
class Told:
    """What messages are about: a text, what of it NVRTC saw, the kernel that was asked for, and CUDA's version."""

    source: GivenText
    part: DevicePart
    entry: str
    major: int

    def diagnostics(self, log: str) -> list[Diagnostic]:
        """Return what NVRTC said about the text, each at the user's line."""
        found: list[Diagnostic] = []
        unknown: list[str] = []
        explained: set[tuple[str, int]] = set()
        lines = log.splitlines()
        for number, line in enumerate(lines):
            message = _MESSAGE.match(line)
            if message is None:
                continue
            file, at, said = message[1], int(message[2]), message[3]
            if file in {OWN, _MAP}:
                unknown.append(said)
            elif (file, at) not in explained:  # what follows from a type that is not there is no news
                explained |= {(file, at)} if _PYTORCH.search(said) else set()
                more = lines[number + 1 : number + 3]
                place = _place(self.source, file, at, more)
                found.append(Diagnostic(code="BW302", message=said, loc=place, help=self._help(said)))
        if found:
            return found[:_MOST_MESSAGES]
        if unknown:
            return [self._no_kernel(unknown[0])]
        return [Diagnostic(code="BW302", message=log.strip(), loc=self.source.whole_line(1))]

    def _no_kernel(self, said: str) -> Diagnostic:
        """Return what to say if the text is right, but has not one kernel of that name."""
        wanted = plain_name(self.entry)
        kernels = ", ".join(dict.fromkeys(self.part.kernels)) or "none"
        if any(each.name == wanted for each in self.part.skipped):
            message = f"`{wanted}` is a function of the host, which is skipped, and no kernel"
            advice = f"name the kernel that it launches; the text has: {kernels}. What it does for it, `launch` does"
        elif "is undefined" in said and self.part.kernels:
            message = f"the text has no kernel `{self.entry}`"
            advice = f"it has: {kernels}"
        else:
            message = f"the text has no kernel `{self.entry}` that could be launched: {said}"
            advice = (
                "name a `__global__ void` function, with its namespace and template arguments, such as `scale<float>`;"
                " of several with the same name, rename all but one"
            )
        return Diagnostic(code="BW302", message=message, loc=kernel_place(self.source, self.entry), help=advice)

    def _help(self, said: str) -> str:
        """Return what to do about an error; nothing where the compiler's words are enough."""
        header = re.search(r'cannot open source file "([^"]+)"', said)
        if header is not None:
            package = next((name for begins, name in _PACKAGES.items() if re.match(begins, header[1])), None)
            if package is not None:
                package += "" if self.major > 12 else f"-cu{self.major}"  # as NVIDIA names them up to CUDA 12
                return f"`pip install {package}` has it, and a CUDA toolkit, which CUDA_HOME names"
            return "give the folder of the header as `include=`; what it includes must be device code"
        missing = re.match(r'identifier "(\w+)" is undefined', said)
        host = next((each for each in self.part.skipped if missing is not None and each.name == missing[1]), None)
        if host is not None:
            return f"line {host.first} of the text defines it for the host alone: write `__device__` before it"
        if _PYTORCH.search(said):
            return (
                "PyTorch's C++ types are the host's: let the kernel take pointers and numbers, such as `const float*`,"
                " which `launch` gives it by `args=`"
            )
        if 'namespace "std" has no member' in said:
            return "C++'s library is the host's: CUDA's functions (`min`, `fabsf`) or `<cuda/std/...>` are for kernels"
        return ""


def plain_name(entry: str) -> str:
    """Return a kernel's name without its namespace and template arguments."""
    return entry.partition("<")[0].rpartition("::")[2].strip()


def kernel_place(source: GivenText, entry: str) -> Location:
    """Return where a kernel is declared in a text; its first line if that is not to be seen."""
    name = re.escape(plain_name(entry))
    for number, line in enumerate(source.text.split("\n"), 1):
        found = re.search(rf"\b{name}\b(?=\s*\()", line)
        if found is not None:
            start = len(line[: found.start()].encode())
            return source.location(number, start, start + len(found[0].encode()))
    first = next((number for number, line in enumerate(source.text.split("\n"), 1) if line.strip()), 1)
    return source.whole_line(first)


def _place(source: GivenText, file: str, line: int, more: Sequence[str]) -> Location:
    """Return the place of a message; `more` are the lines behind it, the source and a caret if it has one."""
    caret = more[1].find("^") - 2 if len(more) == 2 and more[1].strip() == "^" else -1
    if file not in {TEXT, source.file}:
        at = max(caret, 0)
        return Location(file=file, line=line, column=at, end_line=line, end_column=at + 1, function=source.name)
    line = line if file == TEXT else line - source.line + 1
    if caret < 0:
        return source.whole_line(line)
    shown = more[0][2:]
    word = re.match(r"\w+|.", shown[caret:] or " ")
    start = len(shown[:caret].encode())
    return source.location(line, start, start + len((word[0] if word else " ").encode()))
