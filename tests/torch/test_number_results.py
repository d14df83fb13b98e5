"""Numbers that operators return: tensors without dimensions, in real calls, in fakes and in `op.python`."""

import math

import pytest
import torch

import brickwork as bw


@bw.op("bwnumber::copied")
def copied(x: torch.Tensor):
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i]
    return out, len(x)


@bw.op("bwnumber::root")
def root(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(1, dtype=x.dtype)
    for i in range(x.shape[0]):
        out[0] += x[i] * x[i]
    return math.sqrt(out[0])


@bw.op("bwnumber::largest")
def largest(x: torch.Tensor) -> torch.Tensor:
    return max(abs(v) for v in x) if len(x) > 0 else 0.0


@bw.op("bwnumber::last")
def last(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(x.shape[0] + 1, dtype=x.dtype)
    before = x[0].item()
    for i in range(x.shape[0]):
        total[i + 1] = total[i] + x[i] - before
    return total[x.shape[0]].item()


@bw.op("bwnumber::mean_loss")
def mean_loss(x: torch.Tensor) -> torch.Tensor:
    loss = 0.0
    count = 0
    for i in range(x.shape[0]):
        if x[i] > 0:
            loss += x[i]
            count += 1
    return loss / max(count, 1)


@bw.op("bwnumber::share")
def share(n: int) -> torch.Tensor:
    hits = 0
    for i in range(n):
        if i % 3 == 0:
            hits += 1
    return 4.0 * hits / n


@bw.op("bwnumber::marked")
def marked(x: torch.Tensor, begin: int) -> torch.Tensor:
    if begin >= x.shape[0]:
        return 0
    first = x[begin]
    if first < 0:
        return -1
    count = 0
    for i in range(x.shape[0]):
        if x[i] >= first:
            count += 1
    return count


CASES = [(copied, 3), (root, 3), (largest, 3), (last, 3), (mean_loss, 3)]


@pytest.mark.parametrize(("operator", "n"), CASES, ids=lambda item: getattr(item, "name", item))
def test_a_number_is_a_tensor_without_dimensions(operator, n):
    x = torch.arange(1, n + 1, dtype=torch.float64)
    torch.testing.assert_close(operator(x), operator.python(x))
    namespace, name = operator.name.split("::")
    result = torch.library.opcheck(getattr(getattr(torch.ops, namespace), name).default, (x,))
    assert set(result.values()) == {"SUCCESS"}


def test_a_division_of_the_host_is_that_of_compiled_code():
    assert share(0).isnan()
    assert share.python(0).isnan()
    torch.testing.assert_close(share(10), share.python(10))


def test_a_number_that_comes_from_no_element_is_pythons_in_the_default_dtype():
    for dtype in (torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        for function in (share, share.python):
            assert function(7).dtype == dtype
            assert function(7).item() == torch.tensor(4.0 * 3 / 7).item()


@pytest.mark.parametrize(("begin", "expected"), [(9, 0), (1, -1), (0, 2)])
def test_an_early_return_of_a_number(begin, expected):
    x = torch.tensor([1.0, -1.0, 2.0])
    for function in (marked, marked.python):
        assert function(x, begin).dtype == torch.int64
        assert function(x, begin) == expected


def test_explain_goes_as_far_as_the_host_needs_no_values():
    x = torch.tensor([1.0, -1.0, 2.0])
    assert "host part: Python" in marked.explain(x, 0)
    marked(x, 0)
    assert "for i at" in marked.explain(x, 0)


@bw.op("tests::numbers_greatest")
def greatest(x: torch.Tensor) -> torch.Tensor:
    best = 0.0
    for i in range(len(x)):
        best = max(best, math.pow(min(x[i], 2.0), 2.0))
    return best


def test_export_puts_functions_of_its_own_in_place_of_pythons():
    class Model(torch.nn.Module):
        def forward(self, x):
            return greatest(x)

    x = torch.randn(5)
    torch.testing.assert_close(torch.export.export(Model(), (x,)).module()(x), greatest.python(x))
