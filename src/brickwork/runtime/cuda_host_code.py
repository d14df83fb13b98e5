"""What of a CUDA C++ file is for the host: functions, variables and headers, which NVRTC does not take.

nvcc compiles a file twice, for the host and for GPUs; NVRTC compiles device code alone. `device_part` takes a file as
it is written for nvcc and blanks what is for the host, so that lines and columns stay where they are. It follows nvcc's
rule: at namespace scope a function or variable without `__global__`, `__device__` or the like is the host's, unless it
is constant. Types stay if they do not name PyTorch's. A text whose brackets do not match is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from brickwork.records import dataclass

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_DEVICE = frozenset({"__global__", "__device__", "__constant__", "__shared__", "__managed__"})
_CONSTANT = frozenset({"const", "constexpr", "consteval", "constinit"})
_TYPES = frozenset({"struct", "class", "union", "enum", "typedef", "using", "namespace", "static_assert", "concept"})
_HOST_NAMES = re.compile(
    r"\b(?:torch|at|c10|pybind11|py)\b\s*(?:::|;)|<<<|\bPyObject\b|\b(?:PYBIND11|TORCH|STABLE_TORCH|AT)_[A-Z_]+\b"
    r"|\bstd\s*::\s*(?:vector|string|map|unordered_map|function|cout|cerr|unique_ptr|shared_ptr|optional|tuple)\b"
)
"""What only code for the host names."""
_HOST_HEADER = re.compile(
    r"(?:torch|ATen|c10|caffe2|pybind11|THC?)/|\w+$|(?:Python|cuda|cuda_runtime|cuda_runtime_api|device_launch_parameters"
    r"|unistd|time)\.h$|(?:cublas|cudnn|cusparse|cusolver|cufft|nvToolsExt|nccl|omp)\w*\.h$|thrust/\w+_vector\.h$"
)
"""Headers of PyTorch, of C++'s library (`vector`), and of libraries that the host calls."""
_UNKNOWN_MACRO = re.compile(r"(?!(?:PYBIND11|TORCH|STABLE_TORCH|AT)_)[A-Z][A-Z0-9_]{2,}")
_ATTRIBUTE = re.compile(r"\b(?:__launch_bounds__|__attribute__|__cluster_dims__|alignas)\s*\(|\[\[")
_COMMENT_OR_TEXT = re.compile(
    r'//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<!\w)\'(?:[^\'\\\n]|\\.)+\'', re.DOTALL
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
_MACRO = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)(.*)", re.DOTALL)
_TEMPLATE = re.compile(r"\s*template\s*<")
_SCOPE = re.compile(r'(?:inline\s+)?namespace\b\s*([\w:]*)|extern\s*"\s*"')


@dataclass(frozen=True, slots=True)
class HostCode:
    """A function, a variable or a type that is skipped, with its lines, counted from 1."""

    name: str
    first: int
    last: int

    def __str__(self) -> str:
        """Say what is skipped."""
        lines = f"line {self.first}" if self.first == self.last else f"lines {self.first} to {self.last}"
        return f"{lines}: `{self.name}` is code for the host, and skipped"


@dataclass(frozen=True, slots=True)
class DevicePart:
    """A text without what is for the host."""

    text: str
    skipped: tuple[HostCode, ...] = ()
    kernels: tuple[str, ...] = ()
    """The kernels in it with their namespaces, as far as no macro makes them."""

    def qualified(self, entry: str) -> str:
        """Return the name of a kernel with its namespace, if it was named without it and one kernel alone has it."""
        name = entry.partition("<")[0].strip()
        found = {each for each in self.kernels if each == name or each.endswith(f"::{name}")}
        return f"{found.pop()}{entry.strip()[len(name) :]}" if len(found) == 1 else entry


@dataclass(frozen=True, slots=True)
class _Declaration:
    """A declaration at namespace scope: its place, and what stands before its body, initialiser or semicolon."""

    first: int
    end: int
    head: str
    scope: str
    """The namespaces that it is in, as `a::b::`."""

    @property
    def name(self) -> str:
        """The name of what is declared; the first word where there is none."""
        before = re.findall(r"[\w:~]+", re.sub(r"<[^()]*>", "", self.head.partition("(")[0]))
        return before[-1] if before else self.head.strip()


class _UnmatchedError(Exception):
    """A bracket has no counterpart."""


def is_host_header(name: str) -> bool:
    """Whether a header that is not to be found is one that only code for the host needs."""
    return _HOST_HEADER.match(name) is not None


def device_part(text: str) -> DevicePart:
    """Return a text in which all that is for the host is blank."""
    bare = _COMMENT_OR_TEXT.sub(_emptied, text)
    directives = [found.span() for found in _DIRECTIVE.finditer(bare)]
    plain = _DIRECTIVE.sub(lambda found: _blank(found[0]), bare)
    macros = {found[1]: found[2] for at, end in directives if (found := _MACRO.match(bare[at:end]))}
    try:
        declarations = [*_declarations(plain, 0, len(plain))]
    except _UnmatchedError:
        return DevicePart(text)
    skipped: list[HostCode] = []
    kernels: list[str] = []
    for each in declarations:
        again = each.head.startswith("template") and each.name in {other.name for other in skipped}
        if again or _is_of_host(each, plain[each.first : each.end], macros):
            lines = (text.count("\n", 0, place) + 1 for place in (each.first, each.end - 1))
            skipped.append(HostCode(each.name, *lines))
            text = _without(text, each, directives)
        elif "__global__" in each.head:
            kernels.append(each.scope + each.name)
    return DevicePart(text, tuple(skipped), tuple(kernels))


def _without(text: str, declaration: _Declaration, directives: list[tuple[int, int]]) -> str:
    """Return a text with a declaration blanked, but for preprocessor directives within it."""
    at, parts = declaration.first, [text[: declaration.first]]
    for first, end in directives:
        if declaration.first <= first and end <= declaration.end:
            parts += [_blank(text[at:first]), text[first:end]]
            at = end
    return "".join((*parts, _blank(text[at : declaration.end]), text[declaration.end :]))


# ---------------------------------------------------------------- reading


def _declarations(text: str, at: int, end: int, scope: str = "") -> Iterator[_Declaration]:
    """Yield the declarations between two places of a text without comments, those in namespaces too."""
    first, head = at, -1
    while at < end:
        letter = text[at]
        if first == at and (letter.isspace() or letter == ";"):
            first = at = at + 1
        elif first == at and _TEMPLATE.match(text, at, end):
            at = _behind_parameters(text, at, end)
        elif letter == "{" and (opened := _SCOPE.fullmatch(text[first:at].strip())):
            closed = _match(text, at, end)
            yield from _declarations(text, at + 1, closed, f"{scope}{opened[1]}::" if opened[1] else scope)
            first = at = closed + 1
        elif letter in _CLOSING:
            head = at if letter == "{" and head < 0 else head
            at = _match(text, at, end) + 1
            if letter == "{" and _is_function(_head(text[first:head])):
                yield _Declaration(first, at, _head(text[first:head]), scope)
                first, head = at, -1
        elif letter == ";":
            yield _Declaration(first, at + 1, _head(text[first : at if head < 0 else head]), scope)
            first, at, head = at + 1, at + 1, -1
        elif letter in ")]}":
            raise _UnmatchedError
        else:
            head = at if letter == "=" and head < 0 and "operator" not in text[max(first, at - 9) : at] else head
            at += 1


def _match(text: str, at: int, end: int) -> int:
    """Return the place of the bracket that closes the one at a place."""
    waiting: list[str] = []
    for place in range(at, end):
        letter = text[place]
        if letter in _CLOSING:
            waiting.append(_CLOSING[letter])
        elif letter in ")]}":
            if letter != waiting.pop():
                raise _UnmatchedError
            if not waiting:
                return place
    raise _UnmatchedError


def _behind_parameters(text: str, at: int, end: int) -> int:
    """Return the place behind the parameters of a template, or the same place where there are none."""
    while found := _TEMPLATE.match(text, at, end):
        depth, at = 1, found.end()
        while depth and at < end:
            depth += {"<": 1, ">": -1}.get(text[at], 0)
            at = _match(text, at, end) + 1 if text[at] in _CLOSING else at + 1
    return at


def _head(text: str) -> str:
    """Return the beginning of a declaration without template parameters and attributes."""
    text = text.strip()
    text = text[_behind_parameters(text, 0, len(text)) :].strip()
    while found := _ATTRIBUTE.search(text):
        at = found.end() - 1
        text = f"{text[: found.start()]} {text[_match(text, at, len(text)) + 1 :].removeprefix(']')}".strip()
    return text


def _is_function(head: str) -> bool:
    return "(" in head and _words(head)[:1] != ["typedef"] and not _TYPES & {*_words(head.partition("(")[0])}


# ---------------------------------------------------------------- whose it is


def _is_of_host(declaration: _Declaration, body: str, macros: Mapping[str, str]) -> bool:
    """Whether a declaration is none of device code."""
    head = declaration.head
    words = {*_words(head)}
    before = {*_words(head.partition("(")[0])}
    made = {word for name in before & macros.keys() for word in _words(macros[name])}
    made |= {word for name in made & macros.keys() for word in _words(macros[name])}
    if (words | made if _is_function(head) else words | made | {*_words(body)}) & _DEVICE:
        return _HOST_NAMES.search(head) is not None and "__global__" not in words
    if _HOST_NAMES.search(body) or "__host__" in words | made:
        return True
    unknown = (word for word in before - macros.keys() - {declaration.name} if _UNKNOWN_MACRO.fullmatch(word))
    if before & _TYPES or words & {"template"} or next(unknown, None) is not None:
        return False
    return not before & (_CONSTANT if not _is_function(head) else _CONSTANT - {"const"})


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _emptied(found: re.Match[str]) -> str:
    """Return a comment as blanks, and a text as blanks between quotation marks."""
    text = found[0]
    return _blank(text) if text[0] == "/" else f'"{_blank(text[1:-1])}"'
