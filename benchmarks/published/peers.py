"""How the published kernels are called on the arguments of the operators beside them, and what their results mean.

The kernels come as a folder with a file for each operator. `NAME.so` is a shared object that registers `peers::NAME`
with torch, and `peers::NAME_backward` where there is a gradient; `NAME.py` has functions of those names. Two operators
are torchvision's own and need no file. What a kernel wants in another layout is made before anything is timed, and what
it gives in other terms is converted only to be compared.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch

Tensors = tuple[torch.Tensor, ...]


def listed(raw: Any) -> tuple[Any, ...]:
    """Return the results of an operator, of which there may be one alone."""
    return tuple(cast("list[Any]", raw)) if isinstance(raw, tuple | list) else (raw,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A published kernel beside an operator.

    `prepared` turns the operator's arguments into the kernel's, `results` what it returns into the operator's results;
    None stands for one that it does not have. `upstream` are the results whose gradients the backward kernel takes,
    `saved` makes its arguments of the prepared ones, of what the forward returned and of those gradients, and
    `gradients` turns what it returns into gradients in the order of `Published.gradient`.
    """

    prepared: Callable[[tuple[Any, ...]], tuple[Any, ...]] = tuple
    results: Callable[[tuple[Any, ...]], tuple[torch.Tensor | None, ...]] = tuple
    upstream: tuple[int, ...] = (0,)
    saved: Callable[[tuple[Any, ...], tuple[Any, ...], Tensors], tuple[Any, ...]] = lambda p, _, g: (*p, *g)
    gradients: Callable[[tuple[Any, ...], tuple[Any, ...]], Tensors] = lambda g, _: g
    forward: str = ""
    """The kernel's name where it is none of `peers`."""
    backward: str = ""
    tolerance: float = 0.0
    """What differences are allowed where the kernels compute something else on purpose; 0: those of the type."""


class Kernels:
    """The published kernels of a folder, loaded when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        """Take a folder with a file for each operator."""
        self._folder = folder
        self._loaded: dict[str, Callable[[str], Any]] = {}

    def find(self, name: str, kernel: str) -> Callable[..., Any]:
        """Return a kernel of an operator; `kernel` is its name in `peers`, or `library::name`."""
        library, _, plain = kernel.rpartition("::")
        if library:
            importlib.import_module(library)
            return getattr(getattr(torch.ops, library), plain).default
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name](kernel)

    def _load(self, name: str) -> Callable[[str], Any]:
        shared, source = self._folder / f"{name}.so", self._folder / f"{name}.py"
        if shared.exists():
            cast("Any", torch.ops).load_library(str(shared))
            return lambda kernel: getattr(torch.ops.peers, kernel).default
        if source.exists():
            spec = importlib.util.spec_from_file_location(f"published_peer_{name}", source)
            assert spec is not None, "a file of Python"
            assert spec.loader is not None, "a file of Python"
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return lambda kernel: getattr(module, kernel)
        raise FileNotFoundError(f"there is neither {shared.name} nor {source.name} in {self._folder}")


def _wkv5_saved(p: tuple[Any, ...], _: tuple[Any, ...], g: Tensors) -> tuple[Any, ...]:
    r, k, v, w, u = p
    return r, k, v, w, w.log(), u, *g


def _upfirdn2d_saved(p: tuple[Any, ...], raw: tuple[Any, ...], g: Tensors) -> tuple[Any, ...]:
    """Return the arguments of the filter that gives the gradient, with which published code calls the same kernel."""
    x, f, up, down, before, _, flip, gain = p
    after = x.shape[3] * up - raw[0].shape[3] * down + before - up + 1
    return *g, f, down, up, f.shape[1] - before - 1, after, not flip, gain


def _roi_align_saved(p: tuple[Any, ...], _: tuple[Any, ...], g: Tensors) -> tuple[Any, ...]:
    x, rois, scale, height, width, ratio, aligned = p
    return *g, rois, scale, height, width, *x.shape, ratio, aligned


def _render_gradients(g: tuple[Any, ...], p: tuple[Any, ...]) -> Tensors:
    """Undo the scale of the published centres, which lie between -1 and 1, and join the parts of the conics."""
    centres, colours, conics, opacity = g
    height, width = p[6], p[7]
    parts = [conics[:, 0, 0], 2 * conics[:, 0, 1], conics[:, 1, 1], opacity[:, 0]]
    return centres[:, :2] / centres.new_tensor([0.5 * width, 0.5 * height]), colours, torch.stack(parts, 1)


PEERS: dict[str, Peer] = {
    "wkv4": Peer(gradients=lambda g, p: (g[0] / p[0], *g[1:])),
    "wkv5": Peer(saved=_wkv5_saved, gradients=lambda g, p: (*g[:3], g[3] / (p[3] * p[3].log()), g[4])),
    "wkv6": Peer(gradients=lambda g, p: (*g[:3], g[3] / p[3], g[4])),
    "selective_scan": Peer(
        prepared=lambda given: (*given[:3], given[3][:, None], given[4][:, None], *given[5:]),
        results=lambda raw: (raw[2],),
        saved=lambda p, raw, g: (*p, *g, raw[1], raw[0]),
        gradients=lambda g, _: (*g[:3], g[3].squeeze(1), g[4].squeeze(1), g[5], g[7], g[6]),
    ),
    "furthest_point_sample": Peer(),
    "ball_query": Peer(),
    "knn": Peer(),
    "three_interpolate": Peer(),
    "chamfer_distance": Peer(upstream=(0, 1), saved=lambda p, raw, g: (*p, *raw[2:], *g)),
    "ms_deform_attn": Peer(),
    "roi_align": Peer(
        forward="torchvision::roi_align", backward="torchvision::_roi_align_backward", saved=_roi_align_saved
    ),
    "deformable_im2col": Peer(),
    "grid_encode": Peer(),
    "correlation": Peer(),
    "carafe_naive": Peer(),
    "upfirdn2d": Peer(
        prepared=lambda given: (*given[:6], False, given[6]),
        saved=_upfirdn2d_saved,
        backward="upfirdn2d",
    ),
    "segment_csr": Peer(),
    "scatter_add": Peer(saved=lambda p, _, g: (*p[:2], *g)),
    "dynamic_scatter": Peer(saved=lambda p, raw, g: (*p[:2], *raw, *g)),
    "nms": Peer(),
    "layer_norm": Peer(saved=lambda p, raw, g: (*p, *raw[1:], *g)),
    "rotary": Peer(
        prepared=lambda given: (given[0], given[1][:, None, None]),
        saved=lambda p, _, g: (*g, p[1]),
    ),
    "causal_softmax": Peer(saved=lambda p, raw, g: (*g, *raw, p[1])),
    "silu_and_mul": Peer(),
    "awq_gemv": Peer(
        prepared=lambda given: (given[0][None], *given[1:]),
        results=lambda raw: (raw[0][0],),
    ),
    "quantize_blockwise": Peer(),
    "soft_dtw": Peer(saved=lambda p, raw, g: (*p, raw[1], *g), results=lambda raw: (raw[0],)),
    "rnnt_loss": Peer(results=lambda raw: (raw[0],), saved=lambda p, raw, g: (*p, *raw, *g)),
    "render_gaussians": Peer(saved=lambda p, raw, g: (*p, *raw[1:], *g), gradients=_render_gradients),
    "composite_rays": Peer(
        upstream=(0, 2),
        saved=lambda p, raw, g: (*p, raw[0], raw[2], *g),
        tolerance=5e-3,  # the published kernel gives the sample at which a ray becomes opaque no gradient
    ),
}
"""By the operators' names."""
