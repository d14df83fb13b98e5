"""nvcc's flags, as authors of extensions write them, in terms of NVRTC: passed on, put otherwise, ignored or refused.

What nvcc does beyond compiling device code (calling a host compiler, linking, packing several architectures) has no
meaning here. A flag that NVRTC has is passed on, and one that is known to neither is refused by NVRTC itself.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from brickwork.records import dataclass

_OWN = re.compile(r"-(?:ftz|fmad|frandom|fdevice|maxrregcount|modify-stack-limit|minimal|lineinfo|list)\b.*")
"""NVRTC's flags that begin as those of other tools do."""
_OTHERWISE = {
    "--expt-relaxed-constexpr": "",
    "-expt-relaxed-constexpr": "",
    "--expt-extended-lambda": "",
    "-expt-extended-lambda": "",
    "--extended-lambda": "",
    "-extended-lambda": "",
    "-O0": "--ptxas-options=-O0",
    "-O1": "--ptxas-options=-O1",
    "-O2": "--ptxas-options=-O2",
    "-O3": "",
    "--optimize=3": "",
    "-res-usage": "--ptxas-options=-v",
    "--resource-usage": "--ptxas-options=-v",
    "--generate-line-info": "-lineinfo",
}
"""What NVRTC calls a flag, or nothing where it does as the flag says anyway."""
_IGNORED = {
    r"--?(?:gencode|generate-code)\b.*": "code is made for the GPU that an operator is called on",
    r"(?:-arch|--gpu-architecture)=(?:native|all|all-major)": "code is made for the GPU that an operator is called on",
    r"(?:-code|--gpu-code)\b.*": "code is made for the GPU that an operator is called on",
    r"(?:-Xcompiler|--compiler-options|-ccbin|--compiler-bindir)\b.*": "no C++ compiler for the host takes part",
    r"-(?:f|W|m)[A-Za-z].*|-pthread|-fopenmp|-march=.*": "no C++ compiler for the host takes part",
    r"(?:-Xlinker|-Xfatbin|-cudart|--cudart|--linker-options)\b.*|-[lL].+|-l|-L|--shared|-shared": "nothing is linked",
    r"-g|--debug|-pg": "it is about code for the host; `-G` and `-lineinfo` are about kernels",
    r"-Xcudafe\b.*": "it is nvcc's frontend's; `--diag-suppress=NUMBER` is NVRTC's",
    r"--default-stream\b.*|-default-stream\b.*": "kernels run on PyTorch's current stream",
    r"-t\d*|-t=\d+|--threads\b.*|-v|--verbose|--keep|-keep|-x|-x=?cu|-c|-M|-MD|-MF|-MT|--dryrun": "one kernel is made",
}
"""Flags without meaning here, as patterns, and why."""
_REFUSED = {
    r"(?:-rdc|--relocatable-device-code)=true|-dc|--device-c|-dlto|--dlink-time-opt|-ewp": (
        "there is no device linker here: put the device code into one text, with `#include` for further files"
    ),
    r"--?(?:ptx|cubin|fatbin)": "a kernel is compiled and loaded: `inspect('ptx')` and `inspect('sass')` show its code",
    r"-o|--output-file\b.*|-run|--run": "a kernel is compiled and loaded, and no file is written",
    r"--Werror\b.*|-Werror\b.*": "NVRTC has no such flag: `--diag-error=NUMBER` makes an error of a warning",
    r"--options-file\b.*|-optf\b.*": "write the flags themselves",
}
"""Flags that ask for what there is not, as patterns, and what to do instead."""
_WITH_VALUE = re.compile(
    r"-gencode|--generate-code|-Xptxas|--ptxas-options|-Xcompiler|--compiler-options|-ccbin|--compiler-bindir|-Xlinker"
    r"|-Xfatbin|-Xcudafe|-maxrregcount|--maxrregcount|-arch|--gpu-architecture|-code|--gpu-code|-D|-U|-I|-include"
    r"|--define-macro|--undefine-macro|--include-path|--pre-include|-std|--std|-x|-t|--threads|-cudart|--cudart"
    r"|-default-stream|--default-stream|-o|-l|-L|-rdc|--relocatable-device-code|-diag-suppress|--diag-suppress"
)
"""Flags whose value may stand behind a blank."""
_JOINED = {"-D": "", "-U": "", "-I": "", "-l": "", "-L": ""}


@dataclass(frozen=True, slots=True)
class Flags:
    """Flags for NVRTC, and what became of those that are nvcc's."""

    options: tuple[str, ...]
    notes: tuple[str, ...]


class RefusedFlagError(ValueError):
    """A flag asks for what there is not."""


def nvrtc_flags(given: Sequence[str]) -> Flags:
    """Return what NVRTC is to be told for flags of nvcc or its own; RefusedFlagError for one that cannot be heeded."""
    options: list[str] = []
    notes: list[str] = []
    for flag in _single(given):
        refused = _why(flag, _REFUSED)
        ignored = "" if _OWN.match(flag) else _why(flag, _IGNORED)
        if refused:
            raise RefusedFlagError(f"the flag `{flag}`: {refused}")
        if ignored:
            notes.append(f"the flag `{flag}` is ignored: {ignored}")
        elif flag in _OTHERWISE:
            options += [_OTHERWISE[flag]] if _OTHERWISE[flag] else []
            notes += [] if _OTHERWISE[flag] else [f"the flag `{flag}` needs no mention"]
        else:
            options.append(flag)
    return Flags(tuple(options), tuple(notes))


def _single(given: Sequence[str]) -> Iterator[str]:
    """Yield the flags one by one, each with its value, however they are spread over texts."""
    words = [word for text in given for word in (shlex.split(text) if re.search(r"\s-|^-[\w-]+\s", text) else [text])]
    waiting = iter(re.sub(r"^--?diag_(\w+)", r"--diag-\1", word) for word in words)
    for word in waiting:
        value = next(waiting, None) if _WITH_VALUE.fullmatch(word) else None
        yield word if value is None else f"{word}{_JOINED.get(word, '=')}{value}"


def _why(flag: str, patterns: dict[str, str]) -> str:
    return next((reason for pattern, reason in patterns.items() if re.fullmatch(pattern, flag)), "")
