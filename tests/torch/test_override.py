"""Overrides: a callable in place of an operator of PyTorch's, all around it as before, and nothing left of it after."""

import math
import os
import subprocess
import sys
import threading

import pytest
import torch

import brickwork as bw
from brickwork import ops
from brickwork.pytorch.overrides.replacement import Replacement

SINES = ("aten::sin", "aten::sin_", "aten::sin.out")


class Counted:
    """A callable that counts its calls."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, *arguments, **named):
        self.calls += 1
        return self.function(*arguments, **named)


def dump(*names):
    return [torch._C._dispatch_dump(name) for name in names]


@pytest.fixture(autouse=True)
def restored():
    """Whatever a test does, the dispatcher is afterwards as it was."""
    names = (*SINES, "aten::add.Tensor", "aten::cos", "aten::max.dim", "aten::mm")
    before = dump(*names)
    yield
    assert dump(*names) == before


def doubled(x):
    return 2 * x


def test_replaces_the_function_and_restores_it(device):
    x = torch.randn(5)
    expected = torch.sin(x)
    with bw.override("aten::sin", doubled, device=device) as handle:
        torch.testing.assert_close(torch.sin(x), 2 * x)
        torch.testing.assert_close(x.sin(), 2 * x)
        assert "aten::sin" in repr(handle)
    assert torch.equal(torch.sin(x), expected)
    assert "removed" in repr(handle)


def test_as_a_handle(device):
    x = torch.randn(5)
    expected = torch.sin(x)
    handle = bw.override("aten::sin", doubled)
    assert torch.equal(torch.sin(x), 2 * x)
    handle.remove()
    handle.remove()
    assert torch.equal(torch.sin(x), expected)


def test_restored_after_an_exception(device):
    with pytest.raises(KeyError), bw.override("aten::sin", doubled):
        raise KeyError
    x = torch.randn(3)
    torch.testing.assert_close(torch.sin(x).cpu(), x.cpu().sin())


def test_forms_that_write(device):
    x = torch.randn(4)
    with bw.override("aten::sin", doubled):
        y = x.clone()
        assert y.sin_() is y
        assert torch.equal(y, 2 * x)
        version = y._version
        assert torch.sin(x, out=y) is y
        assert torch.equal(y, 2 * x)
        assert y._version == version + 1
        z = torch.empty(0)
        assert torch.equal(torch.sin(x, out=z), 2 * x)


@pytest.mark.filterwarnings("error", "ignore::brickwork.BrickworkWarning")
def test_out_is_resized_and_cast_as_torch_does(device):
    x = torch.randn(2, 3).T
    with bw.override("aten::sin", doubled):
        out = torch.empty(2)
        with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
            torch.sin(x, out=out)
        assert torch.equal(out, 2 * x)
        assert out.stride() == x.stride()
        wide = torch.empty(3, 2, dtype=torch.float64)
        assert torch.equal(torch.sin(x, out=wide), (2 * x).double())
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
            torch.sin(x, out=torch.empty(3, 2, dtype=torch.int64))
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
            torch.arange(3).sin_()
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            torch.randn(1).expand(4).sin_()


def test_several_results(device):
    def backwards(x, dim, keepdim=False):
        values, places = torch.min(x, dim, keepdim)
        return values, places

    x = torch.randn(3, 4)
    with bw.override("aten::max.dim", backwards):
        assert torch.equal(torch.max(x, 1).values, torch.min(x, 1).values)
        values, places = torch.empty(0), torch.empty(0, dtype=torch.int64)
        torch.max(x, 1, keepdim=True, out=(values, places))
    assert torch.equal(values, torch.min(x, 1, keepdim=True).values)
    assert torch.equal(places, torch.min(x, 1, keepdim=True).indices)


def test_gradients_are_those_of_the_operator(device):
    x = torch.randn(6, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(torch.sin(x).sum(), x)
    own = Counted(ops.sin)
    with bw.override("aten::sin", own):
        y = torch.sin(x)
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        assert own.calls >= 2  # the sine, and the one in the gradient of the gradient's cosine
        assert torch.autograd.gradcheck(torch.sin, (x,))
    torch.testing.assert_close(first, expected)
    torch.testing.assert_close(second, -torch.sin(x.detach()))


def test_below_everything_else(device):
    x = torch.randn(3, 4)
    with bw.override("aten::sin", doubled):
        assert torch.equal(torch.vmap(torch.sin)(x), 2 * x)
        torch.testing.assert_close(torch.func.grad(lambda v: torch.sin(v).sum())(x), torch.cos(x))
        torch.testing.assert_close(torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))[1], torch.cos(x))
        with torch.no_grad():
            assert torch.equal(torch.sin(x), 2 * x)
        with torch.inference_mode():
            assert torch.equal(torch.sin(x), 2 * x)
        assert torch.sin(torch.empty(3, device="meta")).shape == (3,)
        with torch._subclasses.FakeTensorMode() as mode:
            assert torch.sin(mode.from_tensor(x)).shape == x.shape
        # The kernel for sparse tensors calls the operator on their values.
        assert torch.equal(torch.sin(x.to_sparse()).to_dense(), 2 * x)


def test_autocast_stays(device):
    seen = []

    def product(a, b):
        seen.append(a.dtype)
        return torch.mm(a, b)

    a = torch.randn(3, 3)
    with bw.override("aten::mm", product), torch.autocast(device, dtype=torch.bfloat16):
        assert torch.mm(a, a).dtype == torch.bfloat16
    assert seen == [torch.bfloat16]


def test_within_the_callable_the_operator_is_the_original(device):
    x = torch.randn(3)
    expected = 2 * torch.sin(x)
    with bw.override("aten::sin", lambda x: 2 * torch.sin(x)):
        assert torch.equal(torch.sin(x), expected)
        assert torch.equal(x.clone().sin_(), expected)
    with bw.override("aten::sin", lambda x: 2 * x.clone().sin_()):
        assert torch.equal(torch.sin(x), expected)


def test_nested_and_interleaved(device):
    x = torch.randn(3)
    sine = torch.sin(x)
    first = bw.override("aten::sin", lambda x: torch.sin(x) + 1)
    second = bw.override("aten::sin", lambda x: 2 * torch.sin(x))
    assert torch.equal(torch.sin(x), 2 * (sine + 1))
    first.remove()
    assert torch.equal(torch.sin(x), 2 * sine)
    third = bw.override("aten::sin", lambda x: NotImplemented)
    assert torch.equal(torch.sin(x), 2 * sine)
    second.remove()
    assert torch.equal(torch.sin(x), sine)
    third.remove()
    assert torch.equal(torch.sin(x), sine)


def test_what_the_callable_does_not_take_goes_on(device):
    x, y = torch.randn(4), torch.randn(4)
    expected = torch.add(x, y, alpha=3)
    with bw.override("aten::add", lambda a, b: a - b):
        assert torch.equal(x + y, x - y)
        assert torch.equal(torch.add(x, y, alpha=3), expected)
    with bw.override("aten::sin", lambda x: NotImplemented if x.dtype == torch.float64 else 2 * x):
        assert torch.equal(torch.sin(x), 2 * x)
        wide = x.double()
        torch.testing.assert_close(torch.sin(wide), torch.cos(wide - torch.pi / 2))


@pytest.mark.parametrize("number", [2, 2.5, True, 1 + 2j])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.bool])
@pytest.mark.parametrize("rank", [0, 1])
def test_numbers_go_on_as_numbers(device, number, dtype, rank):
    x = torch.ones((3,) * rank, dtype=dtype)
    expected = x + number
    with bw.override("aten::add", lambda a, b: NotImplemented):
        found = x + number
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


def test_a_brickwork_operator(device):
    with bw.override("aten::sin", ops.sin, device=device):
        for dtype in (torch.float32, torch.float64, torch.float16):
            x = torch.randn(5, 3, dtype=dtype)
            torch.testing.assert_close(torch.sin(x), ops.sin(x))
            torch.testing.assert_close(x.clone().sin_(), ops.sin(x))
        for other in (torch.arange(4), torch.randn(3, dtype=torch.complex64), torch.tensor([True])):
            torch.testing.assert_close(torch.sin(other).cpu(), torch.sin(other.cpu().clone()))
            assert torch.sin(other).dtype == torch.empty(0, dtype=other.dtype).sin().dtype


def test_results_are_checked(device):
    x = torch.randn(3)
    for wrong, match in (
        (
            lambda x: x.double(),
            r"returns torch.float64 of shape \(3,\).*returns torch.float32 of shape \(3,\)",
        ),
        (lambda x: x[:2], r"of shape \(2,\).*where the original"),
        (lambda x: (x, x), "must return a tensor, not Tensor, Tensor"),
        (lambda x: None, "must return a tensor, not NoneType"),
    ):
        with bw.override("aten::sin", wrong), pytest.raises((ValueError, TypeError), match=match):
            torch.sin(x)


def test_results_have_memory_of_their_own(device):
    x = torch.randn(3, requires_grad=True)
    with bw.override("aten::relu", lambda x: x):
        y = torch.relu(x)
        y.sum().backward()
    assert y.data_ptr() != x.data_ptr()
    assert x.is_leaf


def test_an_overload_that_writes(device):
    calls = []

    def fill(x):
        calls.append(x.shape)
        x.fill_(7)

    x = torch.randn(3)
    with bw.override("aten::sin_", fill):
        assert torch.sin(x).ne(7).any()
        assert x.sin_() is x
    assert x.eq(7).all()
    assert len(calls) == 1


def test_an_overload_that_writes_and_returns_something_new():
    def normalised(x, weight, bias, mean, variance, momentum, eps):
        mean.fill_(7)
        return 2 * x, mean.clone(), variance.clone(), x.new_empty(0)

    x, mean, variance = torch.randn(4, 3), torch.zeros(3), torch.ones(3)
    with bw.override("aten::_batch_norm_with_update", normalised):
        result = torch.ops.aten._batch_norm_with_update(x, None, None, mean, variance, 0.1, 1e-5)
    assert torch.equal(result[0], 2 * x)
    assert mean.eq(7).all()


def test_a_form_in_place_that_calls_the_one_with_out(device):
    rows, columns = torch.randn(3), torch.randn(4)
    with bw.override("aten::addr", torch.ops.aten.addr), pytest.raises(RuntimeError, match="match"):
        torch.randn(1, 4).addr_(rows, columns)


def test_one_of_several_overloads(device):
    x = torch.randn(2, 3)
    with bw.override("aten::sum.dim_IntList", lambda x, dim, keepdim=False: torch.mean(x, dim, keepdim)):
        torch.testing.assert_close(x.sum(1), x.mean(1))
    assert not torch.equal(x.sum(1), x.mean(1))


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("aten::sni", "no operator aten::sni; did you mean aten::sin"),
        ("sin", 'no operator sin, named as "namespace::name"'),
        ("aten::add.Tenser", "no overload aten::add.Tenser; there are: aten::add.Tensor"),
        ("aten::view", "returns a view of its argument"),
        ("aten::full", "takes no tensor"),
        ("aten::linear", "calls other operators; override those"),
        ("brickwork::sin", "an operator of brickwork"),
    ],
)
def test_names_that_mean_nothing(name, match):
    with pytest.raises(ValueError, match=match):
        bw.override(name, doubled)


def test_devices_that_are_not_there():
    with pytest.raises(ValueError, match="on cpu and cuda, not on meta"):
        bw.override("aten::sin", doubled, device="meta")
    with pytest.raises(ValueError, match="all GPUs: write device='cuda'"):
        bw.override("aten::sin", doubled, device="cuda:0")
    with pytest.raises(TypeError, match="takes the name of an operator"):
        bw.override(torch.ops.aten.sin, doubled)
    with pytest.raises(TypeError, match="takes a callable"):
        bw.override("aten::sin", 3)
    if not torch.cuda.is_available():
        with pytest.raises(bw.DeviceError, match="no GPU here"):
            bw.override("aten::sin", doubled, device="cuda")


def test_errors_of_the_callable_reach_the_caller(device):
    def broken(x):
        raise ZeroDivisionError("own")

    with bw.override("aten::sin", broken):
        with pytest.raises(ZeroDivisionError, match="own"):
            torch.sin(torch.randn(2))
        with pytest.raises(ZeroDivisionError, match="own"):
            torch.sin(torch.randn(2))


def test_threads(device):
    x = torch.randn(8)
    sine = torch.sin(x)
    stop, failures = threading.Event(), []

    def call():
        while not stop.is_set():
            found = torch.sin(x)
            if not (torch.equal(found, sine) or torch.equal(found, 2 * x)):
                failures.append(found)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        with bw.override("aten::sin", doubled):
            assert torch.equal(torch.sin(x), 2 * x)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures


# ---------------------------------------------------------------- operators of brickwork, natively


@bw.op("bwoverride::product")
def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a matrix product, and 1 more, so that it is told from torch's."""
    n, inner = a.shape
    m = b.shape[1]
    out = a.new_empty((n, m))
    for i in range(n):
        for j in range(m):
            s = 1.0
            for k in range(inner):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


@bw.op("bwoverride::first_five")
def first_five(x: torch.Tensor) -> torch.Tensor:
    """Fail for fewer than five elements."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + x[4]
    return out


@pytest.fixture
def served(monkeypatch):
    """The calls that Python has answered."""
    calls = []
    serve = Replacement.serve

    def noted(self, keys, arguments, named):
        calls.append(arguments)
        return serve(self, keys, arguments, named)

    monkeypatch.setattr(Replacement, "serve", noted)
    return calls


def test_calls_reach_machine_code(device, served):
    @bw.op("bwoverride::own_sine")
    def sine(x: torch.Tensor) -> torch.Tensor:
        """Another sine than that of other tests, whose code may be there already."""
        out = torch.empty_like(x)
        for at in bw.indices(x):
            out[at] = math.sin(x[at])
        return out

    x = torch.randn(6)
    for rounds in range(2):
        with bw.override("aten::sin", sine):
            for _ in range(3):
                torch.testing.assert_close(torch.sin(x), sine(x))
            assert len(served) == 1 - rounds  # the second time the code is there already
            served.clear()
            x.requires_grad_()
            torch.sin(x).sum().backward()
            torch.testing.assert_close(x.grad, torch.cos(x).detach())
            assert not served
            assert torch.vmap(torch.sin)(torch.randn(2, 3)).shape == (2, 3)
            served.clear()
        x = x.detach()


def test_other_types_miss_the_machine_code(device, served):
    with bw.override("aten::mm", product):
        for dtype in (torch.float32, torch.float64, torch.complex64):
            a = torch.randn(3, 2, dtype=dtype)
            for _ in range(2):
                torch.testing.assert_close(torch.mm(a, a.T), (a[:, None] * a[None]).sum(2) + 1)
        assert len(served) == 3
        meta = torch.empty(3, 2, device="meta")
        assert torch.mm(meta, meta.T).shape == (3, 3)


def test_types_that_do_not_compile_are_tried_once(device):
    with bw.override("aten::mm", lambda a, b: tried.append(a.dtype) or product(a[0], b)):
        tried = []
        a = torch.randn(3, 3)
        expected = torch.einsum("ij,jk->ik", a, a)
        for _ in range(3):
            torch.testing.assert_close(torch.mm(a, a), expected)
    assert len(tried) == 1


def test_failures_in_machine_code_reach_the_caller():
    with bw.override("aten::sin", first_five):
        x = torch.arange(5.0)
        assert torch.equal(torch.sin(x), x + 4)
        for _ in range(2):
            with pytest.raises(IndexError, match="index 4 is out of bounds"):
                torch.sin(torch.randn(3))


def test_machine_code_twice_and_between(device, served):
    x = torch.randn(5)
    sine = torch.sin(x)
    first = bw.override("aten::sin", ops.sin)
    second = bw.override("aten::sin", doubled)
    third = bw.override("aten::sin", ops.sin)
    torch.testing.assert_close(torch.sin(x), sine)
    first.remove()
    torch.testing.assert_close(torch.sin(x), sine)
    third.remove()
    assert torch.equal(torch.sin(x), 2 * x)
    second.remove()
    assert torch.equal(torch.sin(x), sine)


def test_native_code_warns_of_nothing_else(tmp_path):
    program = """
import warnings
import torch
import brickwork as bw
from brickwork import ops
warnings.filterwarnings("ignore", "aten::sin on", bw.BrickworkWarning)
with bw.override("aten::sin", ops.sin):
    torch.sin(torch.ones(3))
"""
    environment = {**os.environ, "BRICKWORK_CACHE_DIR": str(tmp_path)}
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        program.replace("brickwork as bw", "brickwork as bw, brickwork.ops"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout + done.stderr == ""


# ---------------------------------------------------------------- under torch.compile


def compiled(function, *, backend="aot_eager_decomp_partition"):
    """Compile with a backend that uses Inductor's tables, and count the graphs."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    return torch.compile(function, fullgraph=True, backend=backend)


def graphs():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def test_inductor_calls_the_callable(device):
    x = torch.randn(4, 3).T
    run = compiled(lambda x: torch.sin(x) + 1, backend="inductor")
    with bw.override("aten::sin", lambda x: (2 * x).clone(memory_format=torch.contiguous_format)):
        found = run(x)
    torch.testing.assert_close(found, 2 * x + 1)
    assert found.stride() == x.stride()
    torch.testing.assert_close(run(x), torch.sin(x) + 1)


def test_graphs_follow_overrides_and_are_kept(device):
    x = torch.randn(5)
    run, other = compiled(lambda x: torch.nn.functional.gelu(x) + torch.sin(x)), torch.sin(x)
    plain = torch.nn.functional.gelu(x)
    for number in (2, 3, 4):
        torch.testing.assert_close(run(x), plain + other)
        with bw.override("aten::gelu", lambda x, number=number: number * x):
            torch.testing.assert_close(run(x), number * x + other)
    torch.testing.assert_close(run(x), plain + other)
    assert graphs() <= 3  # one of before the first override, and one for each state since


@pytest.mark.parametrize("number", [2, 2.5])
def test_compiled_numbers_stay_numbers(device, number):
    seen = []

    def product(x, other):
        seen.append(other)
        return torch.mul(x, other)

    x = torch.randn(5)
    run = compiled(lambda x: x + number)
    with bw.override("aten::add", product):
        assert torch.equal(run(x), x * number)
    assert seen == [number]
    assert torch.equal(run(x), x + number)


def test_compiled_gradients_follow_overrides(device):
    x = torch.randn(5, requires_grad=True)
    run = compiled(torch.sin)
    for _ in range(2):
        with bw.override("aten::cos", lambda x: torch.full_like(x, 7)):
            (found,) = torch.autograd.grad(run(x).sum(), x)
        assert torch.equal(found, torch.full_like(x, 7))
        (found,) = torch.autograd.grad(run(x).sum(), x)
        torch.testing.assert_close(found, torch.cos(x.detach()))


def test_compiled_writes_follow_overrides(device):
    def write(x):
        y = x + 1
        y.sin_()
        return y

    x = torch.randn(5)
    run = compiled(write)
    with bw.override("aten::sin", doubled):
        assert torch.equal(run(x), 2 * (x + 1))
    torch.testing.assert_close(run(x), torch.sin(x + 1))


def test_within_a_compiled_function(device):
    def both(x):
        with bw.override("aten::sin", doubled):
            y = torch.sin(x)
        return y, torch.sin(x)

    torch._dynamo.reset()
    run = torch.compile(both, backend="aot_eager_decomp_partition")
    x = torch.randn(5)
    for _ in range(2):
        first, second = run(x)
        assert torch.equal(first, 2 * x)
        torch.testing.assert_close(second, torch.sin(x))
