"""The lines of the user's source that instructions of device kernels were made of, for profilers and debuggers.

They are metadata of LLVM's, of which its back end makes `.file` and `.loc` of PTX and nothing else. Code is the same
with and without them.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from brickwork.codegen.builder import FunctionWriter, Module
from brickwork.diagnostics.location import NOWHERE, Location
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class KernelLines:
    """Notes the lines of one kernel in the module that it is in."""

    module: Module
    file: str
    scope: str
    """The metadata node of the kernel."""

    @property
    def header(self) -> str:
        """What stands behind the attributes of the kernel."""
        return f"!dbg {self.scope}"

    @contextmanager
    def at(self, writer: FunctionWriter, loc: Location) -> Generator[None]:
        """Note a place at what is written meanwhile."""
        outer = writer.note
        writer.note = self.note(loc) or outer
        yield
        writer.note = outer

    def note(self, loc: Location) -> str:
        """Return what stands behind an instruction that was made of a place."""
        if loc is NOWHERE or loc.file.startswith("<"):
            return ""
        scope = self.scope
        if loc.file != self.file:
            other = _file(self.module, loc.file)
            scope = self.module.metadata(f"!DILexicalBlockFile(scope: {scope}, file: {other}, discriminator: 0)")
        column = loc.column + 1
        return f", !dbg {self.module.metadata(f'!DILocation(line: {loc.line}, column: {column}, scope: {scope})')}"


def kernel_lines(module: Module, name: str, loc: Location) -> KernelLines:
    """Begin the notes of a kernel that was made of a place."""
    file = _file(module, loc.file)
    unit = module.metadata(
        f'distinct !DICompileUnit(language: DW_LANG_Python, file: {file}, producer: "brickwork", isOptimized: true,'
        " runtimeVersion: 0, emissionKind: DebugDirectivesOnly)"
    )
    kind = module.metadata("!DISubroutineType(types: !{null})")
    scope = module.metadata(
        f'distinct !DISubprogram(name: "{name}", scope: {file}, file: {file}, line: {loc.line}, type: {kind},'
        f" scopeLine: {loc.line}, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: {unit})"
    )
    version = module.metadata('!{i32 2, !"Debug Info Version", i32 3}')
    module.globals["!llvm.dbg.cu"] = f"!llvm.dbg.cu = !{{{unit}}}"
    module.globals["!llvm.module.flags"] = f"!llvm.module.flags = !{{{version}}}"
    return KernelLines(module, loc.file, scope)


def _file(module: Module, file: str) -> str:
    path = Path(file)
    name, folder = (text.replace("\\", "/").replace('"', "") for text in (path.name, str(path.parent)))
    return module.metadata(f'!DIFile(filename: "{name}", directory: "{folder}")')
