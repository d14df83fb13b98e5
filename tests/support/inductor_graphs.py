"""The graphs that Inductor would make kernels of: kept, and run operator by operator, which needs no compiler."""

from __future__ import annotations

import copy
import importlib
import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import torch
from torch._ops import OpOverload

_boxed: Any = importlib.import_module("functorch.compile").make_boxed_func
_autograd: Any = importlib.import_module("torch._dynamo.backends.common").aot_autograd
_decompositions: Any = importlib.import_module("torch._inductor.compile_fx").select_decomp_table
_compile: Any = attrgetter("compile")(torch)


def code_of_sine(x: torch.Tensor) -> torch.Tensor:
    """Return what Inductor's code gives, which calls no kernel of a sine that could be overridden."""
    return torch.cos(x - math.pi / 2)


class Graphs:
    """Inductor's graphs, run operator by operator, but for sines."""

    def __init__(self) -> None:
        """Make a backend for `torch.compile` that keeps them."""
        self.modules: list[torch.fx.GraphModule] = []
        more = dict.fromkeys(("fw_compiler", "bw_compiler", "inference_compiler"), self.keep)
        self.backend: Any = _autograd(**more, decompositions=_decompositions())

    def keep(self, module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        """Keep a graph, and return what runs it."""
        del inputs
        self.modules.append(copy.deepcopy(module))
        for node in module.graph.nodes:
            node.target = code_of_sine if node.target is torch.ops.aten.sin.default else node.target
        module.recompile()
        return _boxed(module.forward)

    def names(self) -> set[str]:
        """Return the operators that the graphs call."""
        targets = [node.target for module in self.modules for node in module.graph.nodes if node.op == "call_function"]
        return {each.name().partition(".")[0] for each in targets if isinstance(each, OpOverload)}

    def calls(self) -> set[str]:
        """Return those of them that Inductor makes no kernels of."""
        return {name for name in self.names() if not name.startswith(("aten::", "prims::"))}


def compiled(function: Callable[..., Any], **more: Any) -> tuple[Any, Graphs]:
    """Return a compiled function, and the graphs that it will have."""
    graphs = Graphs()
    return _compile(function, backend=graphs.backend, fullgraph=True, **more), graphs
