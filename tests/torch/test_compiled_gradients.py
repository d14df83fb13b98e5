"""Gradients under `torch.compile`, in exported programs and packages, under checkpointing, and in a second process."""

import functools
import shutil

import pytest
import torch
from torch._dynamo import compiled_autograd
from torch._dynamo.utils import counters
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import brickwork as bw
from support.operators import noise, scale_, square, timex

pytestmark = pytest.mark.filterwarnings("ignore")

CODE = {"cpu": "aot_eager", "cuda": "inductor"}
"""Backends: on the CPU Inductor asks for a C++ compiler and much time, and one test of it is enough."""


@bw.op("bwcompiled::shifted")
def shifted(x: torch.Tensor, by: float) -> torch.Tensor:
    """A multiple of each element and one; its gradient reads no element."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * by + 1.0
    return out


@bw.op("bwcompiled::multiply")
def multiply(x: torch.Tensor, total: torch.Tensor) -> None:
    """Multiply a vector by another one, in place."""
    for i in range(x.shape[0]):
        total[i] = total[i] * x[i]


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    counters.clear()


def gradients(function, *inputs):
    return torch.autograd.grad(function(*inputs), [each for each in inputs if each.requires_grad])


def model(w, k):
    return (timex(w * 1.5, torch.sin(k), 0.1) * 2).square().sum()


def inputs(length, *, wanted=(True, True)):
    w, k = torch.randn(4, length), torch.randn(2, 4, length)
    return w.requires_grad_(wanted[0]), k.requires_grad_(wanted[1])


def test_many_shapes_and_no_graph_break(device):
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend=CODE[device])
    for length in (5, 7, 9, 12, 16):
        each = inputs(length)
        torch.testing.assert_close(gradients(compiled, *each), gradients(model, *each))
    assert counters["stats"]["unique_graphs"] <= 2
    assert not counters["graph_break"]
    before = counters["stats"]["unique_graphs"]
    for _ in range(5):
        gradients(compiled, *inputs(9))
    assert counters["stats"]["unique_graphs"] == before


@pytest.mark.parametrize("wanted", [(True, False), (False, True)])
def test_a_subset_of_gradients(device, wanted):
    each = inputs(6, wanted=wanted)
    compiled = torch.compile(model, fullgraph=True, backend=CODE[device])
    torch.testing.assert_close(gradients(compiled, *each), gradients(model, *each))


def test_what_reads_no_element_and_what_is_stored_into(device):
    def function(x):
        y = shifted(x * x, 3.0)
        scale_(y, 2.0)
        return y.sum()

    x = torch.randn(7, requires_grad=True)
    compiled = torch.compile(function, fullgraph=True, dynamic=True, backend=CODE[device])
    torch.testing.assert_close(gradients(compiled, x), gradients(function, x))
    torch.testing.assert_close(gradients(compiled, x), (12 * x.detach(),))


def test_random_numbers(device):
    def function(x):
        return (noise(x, 1.0) * x).sum()

    x = torch.randn(7, requires_grad=True)
    compiled = torch.compile(function, fullgraph=True, backend=CODE[device])
    torch.manual_seed(1)
    ours = gradients(compiled, x)
    torch.manual_seed(1)
    torch.testing.assert_close(ours, gradients(function, x))


@pytest.mark.parametrize("calls", [0, 1])
def test_compiled_autograd(device, calls):
    def function(w, k, total):
        total = total * 1
        multiply(k[0, 0], total)
        return timex(w, k, 0.1).sum() + total.sum()

    each = *inputs(5), torch.randn(5, requires_grad=True)
    for _ in range(calls):  # The first call goes by the dispatcher, others past it.
        gradients(function, *each)
    with compiled_autograd._enable(torch.compile(fullgraph=True, backend="eager")):
        function(*each).backward()
    torch.testing.assert_close(tuple(item.grad for item in each), gradients(function, *each))
    assert counters["compiled_autograd"]["captures"] == 1


def test_inductor_behind_a_padded_product(device):
    if device == "cpu" and shutil.which("g++") is None:
        pytest.skip("Inductor needs a C++ compiler for the CPU, and there is none here")

    def function(a, b, k):
        return timex(a @ b, k, 0.1).sum()

    a, b, k = torch.randn(4, 3), torch.randn(3, 17), torch.randn(2, 4, 17)
    each = [x.requires_grad_() for x in (a, b, k)]
    compiled = torch.compile(function, fullgraph=True, dynamic=True)
    torch.testing.assert_close(gradients(compiled, *each), gradients(function, *each), rtol=1e-4, atol=1e-4)


def test_checkpoints(device):
    def save(context, operator, *arguments, **named):
        saved = operator is torch.ops.bwtest.timex.default
        return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE

    contexts = functools.partial(create_selective_checkpoint_contexts, save)
    each = inputs(6)
    expected = gradients(model, *each)
    plain = functools.partial(checkpoint, model, use_reentrant=False)
    selective = functools.partial(checkpoint, model, use_reentrant=False, context_fn=contexts)
    for function in (plain, selective):
        torch.testing.assert_close(gradients(function, *each), expected)
        compiled = torch.compile(function, fullgraph=True, backend=CODE[device])
        torch.testing.assert_close(gradients(compiled, *each), expected)


def test_a_checkpoint_draws_the_same_numbers_again(device):
    x = torch.zeros(5, requires_grad=True)
    drawn = checkpoint(lambda x: noise(x, 1.0) * (x + 1), x, use_reentrant=False)
    (gradient,) = torch.autograd.grad(drawn.sum(), x)
    torch.testing.assert_close(gradient, drawn.detach() + 1)


class Model(torch.nn.Module):
    """timex with its weights."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(4, 6))

    def forward(self, k):
        return timex(self.w, k, 0.1) * 2


def test_exported_programs(device):
    network, k = Model(), torch.randn(2, 4, 6)
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(network, (k,), dynamic_shapes={"k": {0: batch}}, strict=True)
    assert any(node.target is torch.ops.bwtest.timex.default for node in program.graph.nodes)
    more = torch.randn(5, 4, 6)
    torch.testing.assert_close(program.module()(more), network(more))
    loss = program.module()(more).square().sum()
    loss.backward()


@pytest.mark.slow
def test_packages(device, tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("AOTInductor needs a C++ compiler, and there is none here")
    if torch.__version__ < "2.12":
        pytest.skip("torch 2.11 crashes when it loads a package, even of torch.sin alone")
    network, k = Model().eval(), torch.randn(2, 4, 6)
    program = torch.export.export(network, (k,))
    quick = {"aot_inductor.precompile_headers": False}  # they would take longer than all else
    path = torch._inductor.aoti_compile_and_package(
        program, package_path=str(tmp_path / "model.pt2"), inductor_configs=quick
    )
    loaded = torch._inductor.aoti_load_package(path)
    torch.testing.assert_close(loaded(k), network(k).detach())


def test_derivatives_of_a_compiled_function(device):
    compiled = torch.compile(lambda x: torch.func.grad(lambda x: square(x).sum())(x).sum(), backend=CODE[device])
    x = torch.randn(5, requires_grad=True)
    torch.testing.assert_close(gradients(compiled, x), (torch.full((5,), 2.0),))
