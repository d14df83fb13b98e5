"""What brickwork asks of the torch that is installed: the addresses of its functions, and how its tensors are laid out.

Nothing in here leaves torch's state changed; answers are the same for the whole process.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch

from brickwork.host.driver import open_library

_PYTHON_ERROR_RELEASES = ((2, 11), (2, 13))
"""The first and the last torch release whose `python_error` is known to have the layout of `host/support.py`."""

_IMPL_BYTES = 184
"""Bytes of a TensorImpl that may be read, at the least."""


_GET_POINTER = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_NEW_CAPSULE = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


@functools.cache
def private(path: str) -> Any:
    """Return something of torch's that has no public name, by its path below `torch`."""
    return attrgetter(path)(torch)


@functools.cache
def libraries() -> tuple[ctypes.CDLL, ...]:
    """Return torch's native libraries; looking a name up in the first finds those of all that it depends on."""
    folder = Path(torch.__file__).parent / "lib"
    names = {"linux": "lib{}.so", "darwin": "lib{}.dylib"}.get(sys.platform, "{}.dll")
    rooms = ("torch_cpu", "c10", "torch_cuda", "c10_cuda") if made_for_cuda() else ("torch_cpu", "c10")
    return tuple(ctypes.CDLL(str(folder / names.format(name))) for name in rooms)


@functools.cache
def made_for_cuda() -> bool:
    """Whether this torch can have tensors on NVIDIA GPUs; nothing of CUDA is started to find out."""
    return private("version.cuda") is not None


def cuda_major() -> int | None:
    """Return the version of CUDA that this torch is made for, such as 13; None if it is made for none."""
    version: str | None = private("version.cuda")
    return int(version.split(".")[0]) if version else None


@functools.cache
def can_launch() -> bool:
    """Whether native code can launch kernels: torch is made for CUDA, and the machine has NVIDIA's driver."""
    if not made_for_cuda():
        return False
    try:
        open_library()
    except OSError:
        return False
    return True


class TorchSymbols(Mapping[str, int]):
    """Some addresses by name, then what torch's libraries and Python export, looked up when asked for."""

    def __init__(self, first: Mapping[str, int] | None = None) -> None:
        """Take the names that come before torch's."""
        self._first = first or {}

    def __getitem__(self, name: str) -> int:
        """Return an address; KeyError if no library has the name."""
        if name in self._first:
            return self._first[name]
        driver = (open_library(),) if can_launch() else ()
        for library in (*libraries(), ctypes.pythonapi, *driver):
            try:
                address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
            except AttributeError:
                continue
            if address is not None:
                return address
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names that are known beforehand."""
        return iter(self._first)

    def __len__(self) -> int:
        """Return how many names are known beforehand."""
        return len(self._first)


@functools.cache
def has_symbol(name: str) -> bool:
    """Whether torch's native libraries export a name."""
    return any(hasattr(library, name) for library in libraries())


def release() -> tuple[int, int]:
    """Return torch's version, (major, minor)."""
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def knows_python_error() -> bool:
    """Whether this torch takes our exceptions for its `python_error` (else they become RuntimeErrors)."""
    first, last = _PYTHON_ERROR_RELEASES
    return first <= release() <= last


def dispatch_key(name: str) -> int:
    """Return the number of a dispatch key."""
    return int(getattr(private("_C.DispatchKey"), name))


@functools.cache
def plain_keys() -> int:
    """Return the bits that the key set of a plain dense tensor may have, on the CPU or on a GPU."""
    key, key_set = private("_C.DispatchKey"), private("_C.DispatchKeySet")
    keys = key_set(key.ADInplaceOrView)
    for device in ("CPU", "CUDA") if made_for_cuda() else ("CPU",):
        for kind in ("", "Autograd", "Autocast"):
            keys |= key_set(getattr(key, kind + device))
    return int(keys.raw_repr())


@functools.cache
def keys_of_modes(names: tuple[str, ...]) -> int:
    """Return the bits of dispatch keys by name."""
    key, key_set = private("_C.DispatchKey"), private("_C.DispatchKeySet")
    keys = key_set(getattr(key, names[0]))
    for name in names[1:]:
        keys |= key_set(getattr(key, name))
    return int(keys.raw_repr())


def in_transform() -> bool:
    """Whether a function transform (`torch.func`, `torch.vmap`) is running on this thread."""
    return private("_C._functorch.peek_interpreter_stack")() is not None


def keys_of(tensor: torch.Tensor) -> int:
    """Return the bits of a tensor's key set."""
    return int(private("_C._dispatch_keys")(tensor).raw_repr())


@contextmanager
def _plainly() -> Generator[None, None, None]:
    """Make tensors as they are outside of all modes and transforms of functions, in which a first call may be."""
    transforms = private("_C._functorch")
    allowed = transforms.get_inplace_requires_grad_allowed()
    transforms.set_inplace_requires_grad_allowed(True)
    try:
        with (
            private("_C.DisableTorchFunction")(),
            private("_C._DisableFuncTorch")(),
            private("utils._python_dispatch._disable_current_modes")(),
        ):
            yield
    finally:
        transforms.set_inplace_requires_grad_allowed(allowed)


@functools.cache
def key_set_offset() -> int:
    """Return the place of the key set in a TensorImpl, found by looking for known ones; -1 if it is not to be seen."""
    with _plainly(), torch.no_grad():
        plain = torch.empty(1, device="cpu")
        samples = [
            plain,
            torch.empty(1, device="meta"),
            torch.empty(1, dtype=torch.complex64, device="cpu").conj(),
            private("_neg_view")(plain),
        ]
        with torch.inference_mode():
            samples.append(torch.empty(1, device="cpu"))
        wanted = [keys_of(sample) for sample in samples]
        found = set(range(0, _IMPL_BYTES, 8)) if len(set(wanted)) == len(wanted) else set[int]()
        for sample, keys in zip(samples, wanted, strict=True):
            found &= {offset for offset, word in words_of(sample) if word == keys}
    return found.pop() if len(found) == 1 else -1


@functools.cache
def autograd_offset() -> int:
    """Return the place in a TensorImpl of what autograd keeps of it, null where nothing; 0 if it is not to be seen."""
    with _plainly(), torch.inference_mode(mode=False):
        found = set(range(8, _IMPL_BYTES, 8))
        for _ in range(4):
            tensor = torch.empty(1, device="cpu")
            before = dict(words_of(tensor))
            after = dict(words_of(tensor.requires_grad_()))
            found &= {offset for offset in found if before[offset] == 0 and after[offset] != 0}
    return found.pop() if len(found) == 1 else 0


def words_of(tensor: torch.Tensor) -> list[tuple[int, int]]:
    """Return the words of a tensor's TensorImpl with their offsets."""
    handle = handle_of(tensor)
    implementation = ctypes.c_void_p.from_address(handle).value
    words = (ctypes.c_uint64 * (_IMPL_BYTES // 8)).from_address(implementation or 0)
    result = [(index * 8, int(word)) for index, word in enumerate(words)]
    libraries()[0].aoti_torch_delete_tensor_object(ctypes.c_void_p(handle))
    return result


def handle_of(tensor: torch.Tensor) -> int:
    """Return a new owned handle on a tensor."""
    return _GET_POINTER(private("_C._aoti.unsafe_alloc_void_ptr_from_tensor")(tensor), None)


def tensor_of(handle: int) -> torch.Tensor:
    """Return the tensor behind a handle; the handle stays its owner's."""
    copy = ctypes.c_void_p()
    libraries()[0].aoti_torch_new_tensor_handle(ctypes.c_void_p(handle), ctypes.byref(copy))
    return private("_C._aoti.alloc_tensors_by_stealing_from_void_ptrs")([_NEW_CAPSULE(copy, None, None)])[0]
