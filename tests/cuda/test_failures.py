"""What goes wrong on a GPU: nothing is written outside, the first failure is told once, and work goes on."""

import pytest
import torch

import brickwork as bw
from support.gpu import GPU, script, two_gpus
from support.gpu_operators import gather, root, scatter, scatter_add
from support.operators import square

pytestmark = GPU
BEYOND = r"(?s)index 1007 is out of bounds .* 'x' .*shape .1000,"


def works():
    x = torch.randn(1000, device="cuda")
    index = torch.randperm(1000, device="cuda")
    assert torch.equal(gather(x, index), x[index])
    assert torch.equal(square(x), x * x)
    bw.check_errors()


def bad_index(value=1007):
    index = torch.arange(1000, device="cuda")
    index[500] = value
    return index


def test_an_index_out_of_bounds_is_told_by_check_errors():
    gather(torch.randn(1000, device="cuda"), bad_index())
    with pytest.raises(IndexError, match=BEYOND) as caught:
        bw.check_errors()
    assert "gather" in str(caught.value)
    assert "gpu_operators.py:" in str(caught.value)
    bw.check_errors()
    works()


def test_an_index_out_of_bounds_is_told_by_the_next_call():
    x = torch.randn(1000, device="cuda")
    gather(x, bad_index(-1001))
    torch.cuda.synchronize()
    with pytest.raises(IndexError, match=r"(?s)index -1001 is out of bounds .* 'x' .*gather"):
        square(x)
    assert torch.equal(square(x), x * x)
    works()


def test_negative_indices_count_from_the_end():
    x = torch.randn(1000, device="cuda")
    index = -1 - torch.arange(1000, device="cuda")
    assert torch.equal(gather(x, index), x.flip(0))
    bw.check_errors()


@pytest.mark.parametrize("operator", [scatter, scatter_add])
@pytest.mark.parametrize("value", [1000, 1007, -1001, 2**31, 2**40, -(2**62)])
def test_nothing_is_written_outside(operator, value):
    memory = torch.full((3000,), 7.0, device="cuda")
    out = memory[1000:2000]
    out.zero_()
    operator(out, bad_index(value), torch.ones(1000, device="cuda"))
    with pytest.raises(IndexError, match=f"index {value} is out of bounds"):
        bw.check_errors()
    assert (memory[:1000] == 7).all()
    assert (memory[2000:] == 7).all()
    assert ((out == 0) | (out == 1)).all()
    assert out[500] == 0
    assert out[0] == 1
    works()


def test_asserts_in_loops_are_told_likewise():
    x = torch.ones(1000, device="cuda")
    x[3] = -1
    root(x)
    with pytest.raises(AssertionError, match="a negative element has no root"):
        bw.check_errors()
    assert torch.equal(root(x.abs()), x.abs())
    bw.check_errors()


def test_of_two_failures_one_is_told_and_only_once():
    x = torch.randn(1000, device="cuda")
    index = bad_index()
    index[20] = 2000
    index[900] = -5000
    gather(x, index)
    with pytest.raises(IndexError, match=r"index (1007|2000|-5000) is out of bounds"):
        bw.check_errors()
    bw.check_errors()
    works()


def test_failures_in_a_replayed_graph_are_told_by_check_errors():
    x, index = torch.randn(1000, device="cuda"), torch.arange(1000, device="cuda")
    gather(x, index)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = gather(x, index)
    graph.replay()
    assert torch.equal(found, x)
    bw.check_errors()
    index.copy_(bad_index())
    graph.replay()
    with pytest.raises(IndexError, match=BEYOND):
        bw.check_errors()
    index.copy_(torch.arange(999, -1, -1))
    graph.replay()
    assert torch.equal(found, x.flip(0))
    works()


@two_gpus
def test_failures_on_another_gpu_are_told_likewise():
    gather(torch.randn(1000, device="cuda:1"), bad_index().to("cuda:1"))
    with pytest.raises(IndexError, match=BEYOND):
        bw.check_errors()
    x, index = torch.randn(1000, device="cuda:1"), torch.arange(999, -1, -1, device="cuda:1")
    assert torch.equal(gather(x, index), x.flip(0))
    works()


def test_an_index_into_an_empty_tensor():
    gather(torch.empty(0, device="cuda"), torch.zeros(4, dtype=torch.int64, device="cuda"))
    with pytest.raises(IndexError, match=r"index 0 is out of bounds"):
        bw.check_errors()
    works()


UNTOLD = """
import torch
import brickwork as bw
from support.gpu_operators import gather
gather(torch.ones(3, device="cuda"), torch.tensor([7], device="cuda"))
torch.cuda.synchronize()
print(torch.ones(3, device="cuda").sum().item())
"""


def test_a_process_that_never_asks_ends_in_order(tmp_path):
    assert "3.0" in script(tmp_path, UNTOLD)


# ---------------------------------------------------------------- determinism


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def test_sums_by_index_agree_with_torch():
    index = torch.randint(0, 50, (100_000,), device="cuda")
    x = torch.randn(100_000, device="cuda")
    expected = torch.zeros(50, dtype=torch.float64, device="cuda").index_add_(0, index, x.double())
    out = torch.zeros(50, device="cuda")
    scatter_add(out, index, x)
    torch.testing.assert_close(out.double(), expected, rtol=1e-3, atol=1e-2)


@pytest.mark.usefixtures("deterministic")
def test_sums_of_floats_by_index_are_refused_where_determinism_is_asked_for():
    index = torch.randint(0, 50, (10_000,), device="cuda")
    with pytest.raises(RuntimeError, match="deterministic"):
        scatter_add(torch.zeros(50, device="cuda"), index, torch.randn(10_000, device="cuda"))


@pytest.mark.usefixtures("deterministic")
def test_sums_of_integers_by_index_are_deterministic():
    index = torch.randint(0, 50, (10_000,), device="cuda")
    x = torch.randint(-9, 9, (10_000,), device="cuda")
    out = torch.zeros(50, dtype=torch.int64, device="cuda")
    scatter_add(out, index, x)
    assert torch.equal(out, torch.zeros_like(out).index_add_(0, index, x))


@pytest.mark.usefixtures("deterministic")
def test_other_operators_run_where_determinism_is_asked_for():
    works()
