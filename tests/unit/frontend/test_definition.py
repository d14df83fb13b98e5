"""What `define` finds out of the source alone, and the host part as a function of its own."""

import torch
from torch import Tensor

from brickwork.frontend.definition import define
from brickwork.frontend.host_python import host_function
from brickwork.frontend.parameters import NO_DEFAULT
from brickwork.language.random import rand

FACTOR = 2.0


def put(target, i, value):
    target[i] = value


def two(x: Tensor, n: int = 3, *, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    a = torch.empty_like(x)
    b = x.new_zeros((n, x.shape[0] + 1))
    assert n < 10, "n is too large"
    for i in range(x.shape[0]):
        a[i] = x[i] * scale * FACTOR
    return a, b


def writes(x: "torch.Tensor", y: Tensor, z: Tensor, w: "Float[Tensor, 'n']") -> None:  # noqa: F821
    row = x
    for i in range(y.shape[0]):
        line = row[i]
        line[0] = y[i]
        put(z, i, w[i] + rand())


def total(x: Tensor) -> Tensor:
    s = 0
    for i in range(x.shape[0]):
        s += x[i]
    return s


def uses_torch(x: Tensor) -> Tensor:
    y = torch.relu(x)
    out = torch.empty_like(y)
    for i in range(x.shape[0]):
        out[i] = y[i]
    return out


def test_parameters_and_results():
    found = define(two)
    assert [(item.name, item.kind, item.keyword_only) for item in found.parameters] == [
        ("x", "tensor", False),
        ("n", "int", False),
        ("scale", "float", True),
    ]
    assert [item.default for item in found.parameters] == [NO_DEFAULT, 3, 1.0]
    assert (found.results, found.returns_tuple, found.host, found.draws_random) == (2, True, "native", False)
    assert found.mutated == frozenset()
    assert found.loc.line == two.__code__.co_firstlineno


def test_stores_through_views_and_helpers_are_found():
    found = define(writes)
    assert found.mutated == {"x", "z"}
    assert found.results == 0
    assert found.draws_random


def test_a_host_part_that_needs_python_says_why():
    found = define(uses_torch)
    assert found.host == "python"
    assert "torch.relu" in found.reason


def test_the_host_function_leaves_the_loops_out():
    host = host_function(define(two))
    a, b = host(torch.empty(5, device="meta"), 4)
    assert (a.shape, b.shape) == ((5,), (4, 6))
    assert host(torch.empty(5, device="meta"))[1].shape == (3, 6)


def test_the_host_function_runs_on_fake_tensors_with_symbolic_sizes():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv())
    with mode:
        fake = mode.from_tensor(torch.empty(5))
        a, b = host_function(define(two))(fake, 4)
    assert a.shape == fake.shape
    assert b.shape[1] == fake.shape[0] + 1


def test_a_scalar_result_is_a_tensor_without_dimensions():
    host = host_function(define(total))
    assert host(torch.empty(3, device="meta", dtype=torch.float64)).dtype == torch.float64
    assert host(torch.empty(3, device="meta", dtype=torch.int8)).dtype == torch.int64
    assert host(torch.empty(3, device="meta")).shape == ()


def test_fingerprints_follow_constants():
    def made(constant):
        def scaled(x: Tensor) -> None:
            for i in range(x.shape[0]):
                x[i] *= constant

        return define(scaled).fingerprint

    assert made(2) == made(2)
    assert made(2) != made(3)


def test_items_of_captured_lists_are_those_of_the_definition():
    table, lines = [1.0, 2.0], ([1, 2], [3, 4])

    def weighted(x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] * table[i] * lines[1][i]
        return out

    found = define(weighted)
    table[0], lines[1][0] = 9.0, 9
    assert found.source.captured["table"] == [1.0, 2.0]
    assert found.source.captured["lines"] == ([1, 2], [3, 4])
    assert found.fingerprint != define(weighted).fingerprint


T, Real, Count = torch.Tensor, float, int


def scaled_by_aliases(x: T, s: Real, n: "Count", y: "T") -> None:
    for i in range(n):
        y[i] = x[i] * s


def test_annotations_may_have_names_of_the_users_own():
    kinds = [item.kind for item in define(scaled_by_aliases).parameters]
    assert kinds == ["tensor", "float", "int", "tensor"]
