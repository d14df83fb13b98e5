"""Operators that Inductor makes part of its own kernels: which, that they mean the same, and which stay calls."""

import math
import shutil

import pytest
import torch
from torch._inductor import metrics
from torch._inductor.utils import run_and_get_code

import brickwork as bw
from brickwork import ops
from support.inductor_graphs import compiled

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


# ---------------------------------------------------------------- what is fused


@bw.op("bwfusion::sine")
def sine(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for index in bw.indices(x):
        out[index] = math.sin(x[index])
    return out


@bw.op("bwfusion::gelu")
def gelu(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            v = x[i, j]
            out[i, j] = 0.5 * v * (1.0 + math.erf(v * 0.7071067811865476))
    return out


@bw.op("bwfusion::soft_step")
def soft_step(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            if x[i, j] > 1.0:
                out[i, j] = 1.0
            elif x[i, j] > -1.0:
                v = x[i, j] + 1.0
                out[i, j] = v * v / 4.0
    return out


@bw.op("bwfusion::scaled")
def scaled(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    B, C = x.shape
    out = torch.empty_like(x)
    for i in range(B):
        for j in range(C):
            out[i, j] = x[i, j] * (w[j] + (1.0 - eps)) / B
    return out


@bw.op("bwfusion::both")
def both(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    assert x.shape == y.shape, "the shapes differ"
    low, high = torch.empty(x.shape), torch.empty(x.shape)
    for i, j in bw.indices(x):
        low[i, j] = min(x[i, j], y[i, j])
    for i, j in bw.indices(x):
        high[i, j] = x[i, j] - low[i, j] + max(y[i, j], 0.0)
    return low, high


@bw.op("bwfusion::turned")
def turned(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * y[j, i]
    return out


@bw.op("bwfusion::powers")
def powers(x: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.empty_like(x)
    for index in bw.indices(x):
        v = abs(x[index]) + 0.5
        out[index] = v**2.5 + math.log1p(v) * n + math.atan2(v, 2.0) - math.hypot(v, 1.0)
    return out


@bw.op("bwfusion::weighted")
def weighted(xs: list[torch.Tensor], weights: list[float], bias: torch.Tensor | None = None) -> torch.Tensor:
    out = torch.empty_like(xs[0])
    for i in range(len(out)):
        out[i] = xs[0][i] * weights[0] + xs[1][i] * weights[1]
        if bias is not None:
            out[i] += bias[()]
    return out


def square():
    return torch.randn(5, 5)


FUSED = {
    "sine": (sine, lambda: (torch.randn(2, 3, 4),)),
    "gelu": (gelu, lambda: (square(),)),
    "soft_step": (soft_step, lambda: (3 * square(),)),
    "scaled": (lambda x, w: scaled(x, w.detach(), 0.3), lambda: (square(), torch.randn(5))),
    "both": (lambda x, y: torch.add(*both(x, y)), lambda: (square(), square())),
    "turned": (turned, lambda: (torch.randn(3, 5), torch.randn(5, 3))),
    "powers": (lambda x: powers(x, 3), lambda: (square(),)),
    "weighted": (lambda x, y, b: weighted([x, y], [0.5, 2.0], b), lambda: (*torch.randn(2, 7), torch.randn(()))),
    "without a bias": (lambda x, y: weighted([x, y], [0.5, 2.0]), lambda: (*torch.randn(2, 7),)),
    "ops.sin": (ops.sin, lambda: (torch.randn(7),)),
}


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("dynamic", [False, True])
def test_forward_and_backward_are_torchs_operators(name, dynamic):
    function, make = FUSED[name]
    run, graphs = compiled(lambda *inputs: torch.tanh(function(*inputs)), dynamic=dynamic)
    inputs = [each.requires_grad_() for each in make()]
    found, expected = run(*inputs), torch.tanh(function(*inputs))
    torch.testing.assert_close(found, expected)
    grad = torch.randn_like(found)
    of = [each for each in inputs if name != "scaled" or each.dim() == 2]
    torch.testing.assert_close(torch.autograd.grad(found, of, grad), torch.autograd.grad(expected, of, grad))
    sums = {"bwfusion::weighted__backward_l2x1_with_00"} if name == "weighted" else set()
    assert graphs.calls() == sums, "the gradient of a number that all elements read is a sum"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_types(dtype):
    run, graphs = compiled(scaled)
    x, w = square().to(dtype), torch.randn(5)
    found, expected = run(x, w, 0.25), scaled(x, w, 0.25)
    assert found.dtype == dtype
    torch.testing.assert_close(found, expected)
    assert not graphs.calls()
    assert sine(x).dtype == compiled(sine)[0](x).dtype


@bw.op("bwfusion::masked")
def masked(x: torch.Tensor, mask: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] / n[i] if mask[i] and n[i] != 3 else -x[i]
    return out


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_integers_and_conditions(dtype):
    run, graphs = compiled(masked)
    inputs = torch.randn(9), torch.rand(9) < 0.5, torch.randint(0, 5, (9,)).to(dtype)
    torch.testing.assert_close(run(*inputs), masked(*inputs), rtol=0, atol=0, equal_nan=True)
    assert not graphs.calls()


@bw.op("bwfusion::special")
def special(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    a, b, c = torch.empty_like(x), torch.empty_like(x), torch.empty_like(x)
    d = torch.empty(x.shape, dtype=torch.bool)
    for i in range(len(x)):
        a[i] = min(x[i], y[i])
        b[i] = max(x[i], y[i])
        c[i] = (
            abs(x[i])
            if x[i] < y[i]
            else math.copysign(x[i] / y[i], -y[i])
            if math.isfinite(x[i])
            else torch.round(x[i])
        )
        d[i] = x[i] >= y[i] or math.isnan(x[i]) or math.isinf(y[i])
    return a, b, c, d


def test_special_values_are_the_same():
    values = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 1e-45, 3e38])
    x, y = (each.flatten() for each in torch.meshgrid(values, values, indexing="ij"))
    run, graphs = compiled(special)
    for found, expected in zip(run(x, y), special(x, y), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
        if found.is_floating_point():
            signs = [torch.where(each.isnan(), 0.0, each).signbit() for each in (found, expected)]
            assert torch.equal(*signs)
    assert not graphs.calls()


def test_python_floats_do_not_widen():
    run, graphs = compiled(lambda x, eps: scaled(x, x[0], eps))
    x = square()
    torch.testing.assert_close(run(x, 1 / 3), scaled(x, x[0], 1 / 3), rtol=0, atol=2e-7)
    types = {node.meta["val"].dtype for each in graphs.modules for node in each.graph.nodes if "val" in node.meta}
    assert types == {torch.float32}


@pytest.mark.parametrize(
    "layout",
    {
        "transposed": lambda: torch.randn(4, 6).t(),
        "strided": lambda: torch.randn(4, 12)[:, ::2],
        "expanded": lambda: torch.randn(4, 1).expand(4, 6),
        "channels last": lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "of one row": lambda: torch.randn(1, 6),
        "empty": lambda: torch.randn(0, 6),
    }.items(),
    ids=lambda item: item[0],
)
def test_layouts_are_those_of_the_operator(layout):
    x = layout[1]()
    run, graphs = compiled(sine)
    assert run(x).stride() == sine(x).stride()
    torch.testing.assert_close(run(x), sine(x))
    assert not graphs.calls()


def test_gradients_in_another_order():
    run, graphs = compiled(lambda x: (sine(x).t() * torch.arange(12.0).view(4, 3)).sum())
    x = torch.randn(3, 4, requires_grad=True)
    run(x).backward()
    torch.testing.assert_close(x.grad, torch.cos(x) * torch.arange(12.0).view(4, 3).t())
    assert x.grad.is_contiguous()
    assert not graphs.calls()


@bw.op("bwfusion::copies")
def copies(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    one, other = torch.empty_like(x), torch.empty_like(x)
    for i in range(len(x)):
        one[i] = x[i]
        other[i] = x[i]
    return one, other


def test_results_have_memory_of_their_own():
    run, graphs = compiled(copies)
    x = torch.randn(5)
    one, other = run(x)
    assert len({each.data_ptr() for each in (x, one, other)}) == 3
    assert torch.equal(one, x)
    assert torch.equal(other, x)
    assert not graphs.calls()


def test_sizes_that_change_compile_nothing():
    run, graphs = compiled(lambda x, w: scaled(x, w, 0.5) + 1, dynamic=True)
    for size in (3, 5, 8):
        x, w = torch.randn(size, size + 1), torch.randn(size + 1)
        torch.testing.assert_close(run(x, w), scaled(x, w, 0.5) + 1)
    assert len(graphs.modules) == 1
    assert not graphs.calls()


def test_numbers_that_change():
    run, graphs = compiled(lambda x, eps: scaled(x, x[0], eps) + 1, dynamic=True)
    x = square()
    for eps in (0.5, 1.5, 1 / 3):
        torch.testing.assert_close(run(x, eps), scaled(x, x[0], eps) + 1)
    assert not graphs.calls()


def test_under_autocast():
    run, graphs = compiled(lambda x: gelu(x @ x))
    x = square()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, expected = run(x), gelu(x @ x)
    assert found.dtype == expected.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected)
    assert not graphs.calls()


def test_a_gradient_of_the_users():
    @bw.op("bwfusion::users")
    def users(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(len(x)):
            out[i] = x[i] * x[i]
        return out

    @users.backward
    def _(x, grad):
        return sine(grad) * x

    run, graphs = compiled(users)
    x = torch.randn(4, requires_grad=True)
    run(x).sum().backward()
    torch.testing.assert_close(x.grad, x * math.sin(1))
    assert not graphs.calls()


# ---------------------------------------------------------------- what stays a call


def loop(body, heads="for i in range(len(x)):", result="torch.empty_like(x)"):
    lines = [f"out = {result}", *heads.splitlines(), *("    " + line for line in body.splitlines()), "return out"]
    return "".join(f"    {line}\n" for line in lines)


REFUSED = {
    "a neighbour is read": loop("out[i] = x[i - 1] if i > 0 else 0.0"),
    "an index is a number": loop("out[i] = x[i] * i"),
    "a value goes on": "    s = 0.0\n" + loop("s += x[i]\nout[i] = s"),
    "a part is written": loop("out[i] = x[i]", "for i in range(1, len(x)):", "torch.zeros_like(x)"),
    "an element is written twice": loop("out[i] = x[j]", "for i in range(len(x)):\n  for j in range(len(x)):"),
    "a diagonal": loop("out[i] = x[i]", result="torch.zeros(len(x), len(x))").replace("out[i]", "out[i, i]"),
    "a reversed store": loop("out[len(x) - 1 - i] = x[i]"),
    "an assertion in the loop": loop("assert x[i] < 100\nout[i] = x[i]"),
    "an index from data": loop("out[i] = x[int(abs(x[i])) % len(x)]"),
    "random numbers": loop("out[i] = x[i] + 0 * bw.rand()"),
    "a floor of a quotient": loop("out[i] = x[i] // 0.7"),
    "a modulus": loop("out[i] = x[i] % 0.7"),
    "a root": loop("h = 0.5\nout[i] = abs(x[i]) ** h"),
    "a cube root": loop("out[i] = math.cbrt(x[i])"),
    "the gamma function": loop("out[i] = math.gamma(x[i] + 9)"),
    "an integer of a float": loop("out[i] = int(x[i])"),
    "a while": loop("v = x[i]\nwhile v > 0.5:\n    v /= 2\nout[i] = v"),
    "a loop in the loop": loop("v = x[i]\nfor _ in range(3):\n    v = v * v\nout[i] = v"),
    "an early end": loop("if x[i] > 9:\n    break\nout[i] = x[i]", result="torch.zeros_like(x)"),
    "a loop after the loop": loop("out[i] = x[i]").replace(
        "    return", "    for i in range(len(x)):\n        out[i] = out[len(x) - 1 - i] + 0.0\n    return"
    ),
}
"""What keeps an operator from being fused, and the rest of its source."""


@pytest.mark.parametrize("reason", REFUSED)
def test_other_operators_stay_calls(reason, tmp_path):
    name = "refused_" + "_".join(reason.split())
    path = tmp_path / f"{name}.py"
    head = f"@bw.op('bwfusion::{name}')\ndef {name}(x: torch.Tensor) -> torch.Tensor:\n"
    path.write_text(f"import math\nimport torch\nimport brickwork as bw\n\n\n{head}{REFUSED[reason]}")
    namespace = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    operator = namespace[name]
    run, graphs = compiled(lambda x: operator(x) + 1)
    x = torch.randn(6)
    torch.testing.assert_close(run(x), operator(x) + 1)
    assert graphs.calls() == {f"bwfusion::{name}"}


@bw.op("bwfusion::doubled")
def doubled(x: torch.Tensor) -> None:
    for i in range(len(x)):
        x[i] = x[i] * 2.0


def test_stores_into_arguments_stay_calls():
    def function(x):
        y = x + 1
        doubled(y)
        return y

    run, graphs = compiled(function)
    x = torch.randn(4)
    torch.testing.assert_close(run(x), 2 * x + 2)
    assert any("auto_functionalized" in str(node.target) for each in graphs.modules for node in each.graph.nodes)


@bw.op("bwfusion::part")
def part(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] + y[i]
    return out


def test_sizes_that_are_not_equal_stay_calls():
    run, graphs = compiled(part)
    x, longer = torch.randn(4), torch.randn(6)
    torch.testing.assert_close(run(x, longer), x + longer[:4])
    assert graphs.calls() == {"bwfusion::part"}
    with pytest.raises(IndexError):
        run(longer, x)


def test_assertions_hold():
    run, _ = compiled(both)
    with pytest.raises(Exception, match="the shapes differ"):
        run(torch.randn(3, 4), torch.randn(4, 3))


def test_fuse_keeps_an_operator_a_call_with_its_gradients():
    @bw.op("bwfusion::kept", fuse=False)
    def kept(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(len(x)):
            out[i] = math.sin(x[i])
        return out

    run, graphs = compiled(kept)
    x = torch.randn(5, requires_grad=True)
    run(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.cos(x))
    assert graphs.calls() == {"bwfusion::kept", "bwfusion::kept__backward_1"}


def test_interpreted_operators_stay_calls():
    with bw.config.override(check="interpret"):

        @bw.op("bwfusion::interpreted")
        def interpreted(x: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(x)
            for i in range(len(x)):
                out[i] = math.sin(x[i])
            return out

        run, graphs = compiled(interpreted)
        run(torch.randn(3))
    assert graphs.calls() == {"bwfusion::interpreted"}


def test_others_than_inductor_keep_the_operator():
    class Model(torch.nn.Module):
        def forward(self, x):
            return gelu(x) + 1

    exported = torch.export.export(Model(), (square(),))
    assert "bwfusion.gelu" in exported.graph_module.code
    assert "bwfusion.gelu" in exported.run_decompositions().graph_module.code


def test_explained():
    assert gelu.explain("fusion", square()) == "Inductor makes gelu a part of its own kernels"
    text = part.explain("fusion", torch.randn(3), torch.randn(4))
    assert text.startswith("Inductor calls part: `y` is not known to be of the size of its loops, at ")
    assert text.endswith(f"{__file__}:{part.definition.loc.line + 3}")
    assert "it stores into `x`" in doubled.explain("fusion", torch.randn(3))


# ---------------------------------------------------------------- what changes


def test_another_definition_is_another_graph():
    def define(function):
        return bw.op("bwfusion::again")(function)

    def double(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(len(x)):
            out[i] = x[i] * 2.0
        return out

    def triple(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(len(x)):
            out[i] = x[i] * 3.0
        return out

    define(double)
    run, graphs = compiled(lambda x: torch.ops.bwfusion.again(x))
    assert run(torch.ones(1)).item() == 2.0
    define(triple)
    assert run(torch.ones(1)).item() == 3.0
    assert not graphs.calls()


@pytest.mark.slow
def test_inductors_kernels():
    if shutil.which("g++") is None:
        pytest.skip("Inductor's code for the CPU needs a C++ compiler")
    bias = torch.randn(8)

    def function(x, y):
        return torch.relu(gelu(x) * y + bias)

    x, y = torch.randn(2, 6, 8).unbind()
    metrics.reset()
    found, code = run_and_get_code(torch.compile(function, fullgraph=True), x, y)
    torch.testing.assert_close(found, function(x, y))
    assert metrics.generated_kernel_count == 1
    assert "bwfusion" not in code[0]
