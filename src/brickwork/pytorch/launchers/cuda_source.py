"""`bw.cuda_op`: a kernel of CUDA C++, given as text, as an operator. NVRTC compiles it; Python says how it is launched.

A call checks (`launched_op.py`), asks the user's functions for results and geometry, and launches on the current
stream. Code is made for the first call on a GPU of each architecture, and for each choice of element types where the
kernel is named by them (`scale<{x}>`). What a kernel takes is known from its code; arguments are packed accordingly.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Collection, Sequence
from operator import index as whole
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

import torch

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError, DeviceError
from brickwork.frontend.text_locations import GivenText, calling_file, given_text
from brickwork.host.driver import INVALID_CONTEXT, driver
from brickwork.pytorch import libtorch
from brickwork.pytorch.declared_schema import Dtypes, declared, picker
from brickwork.pytorch.devices import devices, driver_error, refuse_capture
from brickwork.pytorch.launchers.launched_op import LaunchedOp
from brickwork.pytorch.launchers.packing import Packing, packing
from brickwork.pytorch.register import in_order
from brickwork.runtime.cuda_messages import kernel_place
from brickwork.runtime.cuda_parameters import CPP_TYPES
from brickwork.runtime.cuda_source import CudaCode, CudaText, compile_cuda
from brickwork.runtime.device_code import Gpu, function_on
from brickwork.runtime.inspection import disassembly
from brickwork.runtime.nvcc_flags import RefusedFlagError, nvrtc_flags
from brickwork.runtime.traceback import OwnFramesHidden

_FREE_SHARED_BYTES = 48 << 10
"""What a block may have of shared memory without its kernel asking for it."""
_ARCHITECTURE = re.compile(r"sm_(\d+)(\d)")


class Launch(NamedTuple):
    """The launch configuration of a kernel, as between `<<<` and `>>>`."""

    grid: int | tuple[int, ...]
    """How many thread blocks: along x, or along x, y and z."""
    block: int | tuple[int, ...]
    """How many threads a block has: along x, or along x, y and z."""
    shared: int = 0
    """Bytes of dynamic shared memory for each block."""
    args: tuple[Any, ...] | None = None
    """The kernel's arguments; without them, the operator's arguments in the order of the schema, then its results."""


class _Loaded:
    """A kernel loaded on one GPU, with how its arguments are packed."""

    __slots__ = ("code", "context", "function", "lock", "natives", "packings", "shared")

    def __init__(self, code: CudaCode, function: int, context: int) -> None:
        self.code, self.function, self.context = code, function, context
        self.shared = _FREE_SHARED_BYTES
        self.packings: dict[tuple[object, ...], Packing] = {}
        self.lock = threading.Lock()
        # What each call asks of the driver and of torch, looked up once.
        names = ("_C._cuda_getCurrentRawStream", "_C._cuda_getDevice")
        self.natives = (driver().launch, *map(libtorch.private, names))


class CudaOp(LaunchedOp):
    """An operator made of a kernel of CUDA C++."""

    def __init__(
        self,
        schema: str,
        *,
        source: str | Path,
        entry: str,
        launch: Callable[..., Launch],
        out: Callable[..., Any] | None,
        contiguous: bool | Collection[str],
        dtypes: Dtypes | None,
        flags: Sequence[str],
        include: Sequence[str | Path],
        fast_math: bool,
    ) -> None:
        """Take what `cuda_op` is given; nothing is compiled yet."""
        super().__init__(declared(schema), out, contiguous=contiguous, dtypes=dtypes)
        try:
            nvrtc_flags(flags)
        except RefusedFlagError as error:
            raise ValueError(f"{self.name}: {error}") from None
        folders = tuple(map(Path, include))
        if isinstance(source, Path):
            given = GivenText(source.read_text(encoding="utf-8"), self.name, str(source))
            folders = (source.parent, *folders)
            self._make_text = lambda: CudaText(given, tuple(flags), folders, fast_math)
        else:
            file = calling_file()
            self._make_text = lambda: CudaText(given_text(source, self.name, file), tuple(flags), folders, fast_math)
        self._entry = entry
        self._typed = self._named_in_entry()
        self._launch, self._for_launch = launch, picker("launch", launch, self.declared)
        self._kernels: dict[tuple[object, ...], _Loaded] = {}
        self._codes: list[CudaCode] = []
        self._lock = threading.RLock()
        self._register()

    @functools.cached_property
    def _text(self) -> CudaText:
        """The text and its place, which is looked for when it is first needed."""
        return self._make_text()

    def _named_in_entry(self) -> tuple[int, ...]:
        """Return the places of the arguments whose element types stand in the kernel's name."""
        names = [each.name for each in self.declared.parameters if each.is_tensor]
        found = re.findall(r"\{(\w*)\}", self._entry)
        unknown = next((name for name in found if name not in names), None)
        if unknown is not None:
            message = (
                f"`entry` of {self.name} asks for the element type of `{unknown}`, which is no tensor of the schema"
            )
            raise CompileError(
                Diagnostic(
                    code="BW304",
                    message=message,
                    loc=self._text.source.whole_line(1),
                    help=f"name any of: {', '.join(names)}",
                )
            )
        places = {each.name: at for at, each in enumerate(self.declared.parameters)}
        return tuple(places[name] for name in dict.fromkeys(found))

    # ------------------------------------------------------------ calls

    def _start(self, values: Sequence[Any], results: tuple[Any, ...], index: int) -> None:
        loaded = self._kernels.get((index, *[values[at].dtype for at in self._typed]))
        if loaded is None:
            loaded = self._load(values, index)
        everything = (*values, *results)
        made = self._launch(*self._for_launch(everything))
        if type(made) is not Launch:
            self._refuse_launch(made)
        grid, block, shared, given = made
        arguments = everything if given is None else given
        x, y, z = (grid, 1, 1) if type(grid) is int else _extents(grid)
        across, up, deep = (block, 1, 1) if type(block) is int else _extents(block)
        if not (x and y and z):
            return
        threads = across * up * deep
        if not (0 < x < 1 << 31 and 0 < y < 1 << 16 and 0 < z < 1 << 16 and 0 < threads <= 1 << 10 and shared >= 0):
            self._refuse_geometry(grid, block, shared)
        kinds, words = _taken(arguments, index, self)
        found = loaded.packings.get(kinds)
        if found is None:
            found = loaded.packings[kinds] = self._packing(loaded.code, kinds, arguments, everything)
        if shared > loaded.shared:
            self._allow_shared(loaded, shared, index)
        buffer = found.fill(words, self._refuse_numbers)
        launch, stream_of, current_device = loaded.natives
        geometry = (loaded.function, x, y, z, across, up, deep, shared, stream_of(index), None, buffer.table)
        code = launch(*geometry) if current_device() == index else INVALID_CONTEXT
        if code == INVALID_CONTEXT:
            with driver().using(loaded.context):
                code = launch(*geometry)
        found.give_back(buffer)
        if code:
            self._explain(code, loaded, (across, up, deep), shared)

    # ------------------------------------------------------------ code

    def _name(self, values: Sequence[Any]) -> str:
        """Return the kernel's name with the element types of arguments in it."""
        name = self._entry
        for at in self._typed:
            argument, dtype = self.declared.parameters[at].name, str(values[at].dtype).removeprefix("torch.")
            if dtype not in CPP_TYPES:
                raise RuntimeError(
                    f"{self.name}(): argument '{argument}' is of torch.{dtype}, which C++ has no type for"
                )
            name = name.replace(f"{{{argument}}}", CPP_TYPES[dtype])
        return name

    def _compiled(self, values: Sequence[Any], capability: tuple[int, int]) -> CudaCode:
        code = compile_cuda(self._text, self._name(values), capability, libtorch.cuda_major())
        self._codes.append(code)
        return code

    def _load(self, values: Sequence[Any], index: int) -> _Loaded:
        """Return the kernel for such arguments on a GPU, compiled if need be."""
        key = (index, *[values[at].dtype for at in self._typed])
        with self._lock:
            found = self._kernels.get(key)
            if found is None:
                refuse_capture(self.name, index)
                gpu: Gpu = devices().ready(index)
                code = self._compiled(values, gpu.capability)
                with driver().using(gpu.context):
                    made = driver().load(code.cubin or code.ptx.encode())
                    kernel = driver().kernel(made, code.symbol)
                found = self._kernels[key] = _Loaded(code, function_on(driver(), kernel, gpu), gpu.context)
            return found

    def _packing(
        self, code: CudaCode, kinds: tuple[object, ...], arguments: Sequence[Any], everything: Sequence[Any]
    ) -> Packing:
        """Return how arguments of such kinds are handed to the kernel; refuse those that it does not take."""
        names = [self._called(value, everything, place) for place, value in enumerate(arguments)]
        place = kernel_place(self._text.source, self._entry)
        return packing(self.name, self._entry, place, code.parameters, kinds, names)

    def _called(self, value: object, everything: Sequence[Any], place: int) -> str:
        """Return what an argument of the kernel is called in messages."""
        names = self.declared.names
        found = next((name for name, other in zip(names, everything, strict=True) if other is value), None)
        if found is None or not isinstance(value, torch.Tensor | float):
            return f"the kernel's argument {place + 1}"
        return f"{'result' if found in self.declared.results else 'argument'} '{found}'"

    def _allow_shared(self, loaded: _Loaded, shared: int, index: int) -> None:
        """Ask for more shared memory than a block has without asking."""
        with loaded.lock:
            most = driver().most_shared_bytes(index)
            if shared > most:
                raise DeviceError(
                    f"{self.name}: a block asks for {shared} bytes of dynamic shared memory, and {most} is the most"
                    f" that one can have on {torch.cuda.get_device_name(index)}"
                )
            with driver().using(loaded.context):
                driver().allow_shared(loaded.function, shared)
            loaded.shared = max(shared, loaded.shared)

    # ------------------------------------------------------------ what the user asks

    def warmup(self, /, *arguments: Any, device: str | torch.device | int | None = None, **named: Any) -> None:
        """Compile for arguments like these, which may be meta or fake tensors; nothing is run.

        Code is made for, and loaded on, the GPU that the arguments are on, or `device` (`cuda:1`), so that calls can be
        captured in graphs from then on; `device="sm_90"` compiles for GPUs that need not be here.
        """
        with OwnFramesHidden():
            self._warm(arguments, named, device)

    def inspect(self, stage: str, /, *arguments: Any, device: str | None = None, **named: Any) -> str:
        """Return a stage of the compilation for these arguments; without arguments, of the last one.

        They are `ptx`, `sass` (the machine code), `parameters` (what the kernel takes) and `log` (what of the text and
        the flags was skipped, and warnings).
        """
        with OwnFramesHidden():
            if arguments or named or device:
                self._warm(arguments, named, device)
            if not self._codes:
                raise ValueError(f"{self.name} is not compiled yet: pass arguments to inspect")
            code = self._codes[-1]
            match stage:
                case "ptx":
                    return code.ptx
                case "sass":
                    return disassembly(lambda: code.cubin)
                case "parameters":
                    return ", ".join(map(str, code.parameters))
                case "log":
                    return code.log
                case _:
                    raise ValueError(f"there is no stage {stage!r}; there are: ptx, sass, parameters, log")

    def _warm(self, arguments: tuple[Any, ...], named: dict[str, Any], device: str | torch.device | int | None) -> None:
        values = in_order(self._arguments, arguments, named)
        wanted = _ARCHITECTURE.fullmatch(device) if isinstance(device, str) else None
        if wanted is not None:
            self._try_launch(self._compiled(values, (int(wanted[1]), int(wanted[2]))), values)
            return
        given = next(
            (value.get_device() for value in values if isinstance(value, torch.Tensor) and value.is_cuda), None
        )
        index: int | None = given if device is None else torch.device(device).index
        self._load(values, torch.cuda.current_device() if index is None else index)

    def _try_launch(self, code: CudaCode, values: Sequence[Any]) -> None:
        """Refuse what the kernel does not take, as far as that can be known without data."""
        without = [value.to("meta") if isinstance(value, torch.Tensor) else value for value in values]
        everything = (*without, *self._made(without)) if self.declared.results else tuple(without)
        try:
            given = self._launch(*self._for_launch(everything)).args
        except (NotImplementedError, RuntimeError):  # it reads elements
            return
        arguments = everything if given is None else given
        self._packing(code, _kinds(arguments), arguments, everything)

    # ------------------------------------------------------------ refusals

    def _refuse_numbers(self, error: Exception) -> NoReturn:
        raise OverflowError(f"{self.name}: a number is too large for the kernel's parameter: {error}")

    def _refuse_launch(self, made: object) -> NoReturn:
        raise TypeError(f"{self.name}: `launch` returns a bw.Launch, but it returned {type(made).__name__}")

    def _refuse_geometry(self, grid: object, block: object, shared: int) -> NoReturn:
        raise ValueError(
            f"{self.name}: a grid has up to 2147483647 x 65535 x 65535 blocks, a block 1 to 1024 threads and 0 bytes of"
            f" shared memory or more, not {grid}, {block} and {shared}"
        )

    def _explain(self, code: int, loaded: _Loaded, block: tuple[int, ...], shared: int) -> NoReturn:
        """Raise the error for what the driver answered to a launch."""
        try:
            with driver().using(loaded.context):
                found = driver().resources(loaded.function)
        except DeviceError:  # nothing works any more
            raise driver_error(self.name, code) from None
        threads = block[0] * block[1] * block[2]
        if threads > found.threads:
            raise DeviceError(
                f"{self.name}: a block of `{self._entry}` can have {found.threads} threads, as each takes"
                f" {found.registers} registers, and it was launched with {threads}"
            )
        if found.shared_bytes and shared:
            more = f" (the kernel declares {found.shared_bytes} bytes of shared memory, and {shared} were asked for)"
            raise DeviceError(f"{driver_error(self.name, code)}{more}")
        raise driver_error(self.name, code)


def _extents(given: Any) -> tuple[int, int, int]:
    """Return the numbers along x, y and z."""
    items = cast("tuple[Any, ...]", given if isinstance(given, tuple | list) else (given,))
    try:
        numbers = [whole(item) for item in items]
    except TypeError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        raise TypeError(f"`grid` and `block` of a launch are one to three whole numbers, not {given!r}")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _kinds(arguments: Sequence[Any]) -> tuple[object, ...]:
    """Return the kinds of a kernel's arguments, by which they are packed: an element type for a tensor, else a type."""
    return tuple(value.dtype if isinstance(value, torch.Tensor) else cast("object", type(value)) for value in arguments)


def _taken(arguments: Sequence[Any], index: int, operator: CudaOp) -> tuple[tuple[object, ...], list[Any]]:
    """Return the kinds of a kernel's arguments, and what is packed."""
    kinds: list[object] = []
    words: list[Any] = []
    for value in arguments:
        if isinstance(value, torch.Tensor):
            if value.get_device() != index:
                raise RuntimeError(
                    f"{operator.name}: `launch` gives the kernel a tensor on {value.device}; the others are on"
                    f" cuda:{index}"
                )
            kinds.append(value.dtype)
            words.append(value.data_ptr())
        else:
            kinds.append(cast("object", type(value)))
            words.append(value)
    return tuple(kinds), words


def cuda_op(
    schema: str,
    *,
    source: str | Path,
    entry: str,
    launch: Callable[..., Launch],
    out: Callable[..., Any] | None = None,
    contiguous: bool | Collection[str] = True,
    dtypes: Dtypes | None = None,
    flags: Sequence[str] = (),
    include: Sequence[str | Path] = (),
    fast_math: bool = False,
) -> CudaOp:
    """Make an operator of a kernel of CUDA C++, compiled by NVRTC: no nvcc and no C++ compiler are needed.

    Args:
        schema: Name, arguments and results, as in `torch.library.define`: `"ns::scale(Tensor x, float a) -> Tensor"`.
        source: The CUDA C++ text, or the path of a file with it, as it is written for nvcc: what is for the host is
            skipped, which `inspect("log")` notes.
        entry: The kernel's name in it. `{x}` stands for the C++ type of the elements of argument `x`: `"scale<{x}>"`.
        launch: Returns the `Launch` (grid and block) of a call. It gets those arguments and results that its parameters
            name.
        out: Returns the results for the kernel to fill, as new tensors. It gets arguments as `launch` does.
        contiguous: Which tensors have to be contiguous: all, none, or those named.
        dtypes: Which element types arguments may have, beyond what the kernel's own types say.
        flags: Further options, of nvcc or NVRTC. Those about the host are ignored, which `inspect("log")` notes.
        include: Folders of headers.
        fast_math: Compile with NVRTC's `--use_fast_math`.

    Raises:
        ValueError: The schema cannot be read, `contiguous` or `dtypes` names no tensor of it, or a flag is refused.
        CompileError: `entry`, `launch` or `out` names what the schema lacks.

    A text that NVRTC refuses is a `CompileError` of the first call, or of `warmup`, with the lines in your file.
    """
    with OwnFramesHidden():
        return CudaOp(
            schema,
            source=source,
            entry=entry,
            launch=launch,
            out=out,
            contiguous=contiguous,
            dtypes=dtypes,
            flags=flags,
            include=include,
            fast_math=fast_math,
        )
