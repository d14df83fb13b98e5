"""Arguments that may be None, and lists of tensors: schemas, presence in machine code, what PyTorch asks; refusals."""

# ruff: noqa: UP006, UP007, UP035, UP045  # annotations as users write them

import copy
import gc
from collections.abc import Sequence
from typing import List, Optional, Union

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.definition import define
from support.sweep import sampled

Tensor = torch.Tensor

pytestmark = pytest.mark.usefixtures("device")


@bw.op("bwkinds::linear")
def linear(
    x: Tensor,
    w: Tensor,
    b: Optional[Tensor] = None,
    scale: float | None = None,
    *,
    shift: Optional[int] = 3,
    twice: Union[bool, None] = None,
) -> Tensor:
    n, m = x.shape
    o = w.shape[0]
    if b is not None:
        assert b.shape[0] == o, "one bias for each output"
    if scale is None:
        scale = 1.0
    out = torch.empty(n, o, dtype=x.dtype)
    for i in range(n):
        for j in range(o):
            s = 0.0
            for k in range(m):
                s += x[i, k] * w[j, k]
            if b is not None and twice is None:
                s += b[j]
            s *= scale
            out[i, j] = s if shift is None else s + shift
    return out


def torch_linear(x, w, b=None, scale=None, *, shift=3, twice=None):
    s = x @ w.T
    if b is not None and twice is None:
        s = s + b
    return s * (1.0 if scale is None else scale) + (shift or 0)


@bw.op("bwkinds::doubled")
def doubled(x: Tensor, count: Optional[Tensor] = None) -> Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        out[i] = x[i] * 2
        if count is not None:
            count[0] += 1
    return out


@bw.op("bwkinds::given_or_made")
def given_or_made(x: Tensor, b: Tensor | None) -> Tensor:
    if b is None:
        b = torch.ones(len(x))
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] + b[i]
    return out


@bw.op("bwkinds::only_optional")
def only_optional(x: Optional[Tensor] = None, n: Optional[int] = None) -> Tensor:
    if x is None:
        out = torch.zeros(2 if n is None else n)
    else:
        out = torch.empty_like(x)
        for i in range(len(x)):
            out[i] = x[i] + 1
    return out


@bw.op("bwkinds::joined")
def joined(xs: list[Tensor]) -> Tensor:
    n = 0
    for x in xs:
        n += x.shape[0]
    out = torch.empty(n)
    at = 0
    for x in xs:
        for i in range(x.shape[0]):
            out[at + i] = x[i]
        at += x.shape[0]
    return out


@bw.op("bwkinds::scale_all_")
def scale_all_(xs: Sequence[Tensor], by: float) -> None:
    for x in xs:
        if x.ndim == 1:
            for i in range(x.shape[0]):
                x[i] *= by
        else:
            for i, j in bw.ndrange(x.shape[0], x.shape[1]):
                x[i, j] *= by


@bw.op("bwkinds::weighted")
def weighted(xs: List[Tensor], ws: list[float], flags: list[bool], at: list[int]) -> Tensor:
    out = torch.zeros_like(xs[0])
    first = xs[-1]
    for i in range(len(out)):
        s = 0.0
        for k, (x, w) in enumerate(zip(xs, ws), 1):
            if flags[0] and k == 2:
                continue
            if k == 3:
                break
            s += x[i] * w + k
        for x in reversed(xs):
            s = s / 2 + x[i]
        out[i] = s + len(xs) + first[at[0]]
    return out


@bw.op("bwkinds::noisy")
def noisy(xs: list[Tensor]) -> Tensor:
    out = torch.zeros(len(xs), len(xs[0]))
    for k, x in enumerate(xs):
        for i in range(len(x)):
            out[k, i] = x[i] + bw.rand()
    return out


@bw.op("bwkinds::python_host")
def python_host(xs: list[Tensor], b: Optional[Tensor] = None) -> Tensor:
    m = torch.stack(xs).mean(0)
    parts = m.split(2)
    out = torch.zeros_like(m)
    for i in range(len(m)):
        for x in xs:
            out[i] += x[i] - m[i]
        if b is not None:
            out[i] += b[i]
    for i in range(2):
        out[i] += parts[0][i]
    return out


X, W, B = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5)
CALLS = {
    "neither": (linear, (X, W), {}),
    "bias": (linear, (X, W, B), {}),
    "scale": (linear, (X, W, None, 2.0), {"shift": None}),
    "everything": (linear, (X, W, B, 0.5), {"shift": 7, "twice": True}),
    "strided": (linear, (X, W.T.contiguous().T, torch.randn(10)[::2]), {}),
    "uncounted": (doubled, (B,), {}),
    "counted": (doubled, (B, torch.zeros(1)), {}),
    "made": (given_or_made, (B, None), {}),
    "given": (given_or_made, (B, B), {}),
    "expanded": (given_or_made, (B, torch.ones(1).expand(5)), {}),
    "nothing": (only_optional, (), {}),
    "a number": (only_optional, (None, 3), {}),
    "something": (only_optional, (B,), {}),
    "one": (joined, ([B],), {}),
    "several": (joined, ([B, torch.randn(0), torch.randn(8)[::2], B],), {}),
    "in place": (scale_all_, ([torch.randn(3), torch.randn(2, 2).T, torch.randn(4)[1:]], 2.0), {}),
    "zipped": (weighted, ([B, B + 1, B + 2], [1.0, 2.0], [True], [3]), {}),
    "stopped": (weighted, ([B, B + 1, B + 2], [1.0, 2.0, 3.0], [False], [-1]), {}),
    "random": (noisy, ([B, B],), {}),
    "Python": (python_host, ([B, B + 1],), {}),
    "Python with": (python_host, ([B, B + 1], torch.ones(5)), {}),
}


def on_device(value):
    if isinstance(value, list | tuple):
        return type(value)(map(on_device, value))
    return value.to(torch.get_default_device()) if isinstance(value, Tensor) else value


def arguments(name):
    op, given, named = CALLS[name]
    return op, on_device(given), named


@pytest.mark.parametrize("name", sampled(CALLS))
def test_agrees_with_the_reference_and_passes_opcheck(name):
    op, given, named = arguments(name)
    if op is only_optional and not isinstance(given[:1], tuple):
        pytest.skip("without tensors results are on the CPU")
    op.check(*given, **named)


def test_values_are_those_of_the_torch_formulation():
    for name in ("neither", "bias", "scale", "everything", "strided"):
        op, given, named = arguments(name)
        torch.testing.assert_close(op(*given, **named), torch_linear(*given, **named))
    tensors = on_device([B, torch.randn(0), torch.randn(8)[::2]])
    torch.testing.assert_close(joined(tensors), torch.cat(tensors))


def test_schemas_say_what_may_be_none_and_what_is_written():
    schemas = {op.__name__: str(op._overload._schema) for op, _, _ in CALLS.values()}
    options = "*, SymInt? shift=3, bool? twice=None"
    assert (
        schemas["linear"]
        == f"bwkinds::linear(Tensor x, Tensor w, Tensor? b=None, float? scale=None, {options}) -> Tensor"
    )
    assert schemas["doubled"] == "bwkinds::doubled(Tensor x, Tensor(a!)? count=None) -> Tensor"
    assert schemas["joined"] == "bwkinds::joined(Tensor[] xs) -> Tensor"
    assert schemas["scale_all_"] == "bwkinds::scale_all_(Tensor(a!)[] xs, float by) -> ()"


def test_each_presence_and_length_has_code_of_its_own_and_none_is_compiled_twice():
    @bw.op("bwkinds::counting")
    def counting(xs: list[Tensor], b: Optional[Tensor] = None, n: Optional[int] = None) -> Tensor:
        out = torch.zeros(1)
        for i in range(1):
            out[i] = len(xs) + (0 if b is None else b[0]) + (0 if n is None else n)
        return out

    x = torch.ones(3)
    for _ in range(3):
        assert [counting([x]).item(), counting([x, x]).item(), counting([x], x).item()] == [1, 2, 2]
        assert [counting([x], None, 5).item(), counting([x], n=6, b=x).item()] == [6, 8]
    assert len(counting.stats().specialisations) == 5


def test_nothing_is_held_after_a_call():
    calls = [
        lambda x: linear(x, x, x[0], 2.0, shift=None),
        lambda x: linear(x, x),
        lambda x: joined([x[0], x[1]]),
        lambda x: doubled(x[0], x[1]),
    ]
    given = [torch.randn(4, 4) for _ in calls]

    def uses(times):
        for call, x in zip(calls, given, strict=True):
            for _ in range(times):
                call(x)
        gc.collect()
        return [torch._C._storage_Use_Count(x.untyped_storage()._cdata) for x in given]

    assert uses(1) == uses(5)


def test_versions_of_what_is_written_go_up():
    count, xs = torch.zeros(1), [torch.ones(2), torch.ones(3)]
    doubled(torch.ones(4), count)
    scale_all_(xs, 3.0)
    assert (count.item(), count._version) == (4, 1)
    assert [(each.tolist(), each._version) for each in xs] == [([3.0] * 2, 1), ([3.0] * 3, 1)]


def test_overlapping_items_give_the_sequential_answer():
    x = torch.arange(6.0)
    expected = x.clone()
    scale_all_.python([expected[:4], expected[2:]], 2.0)
    scale_all_([x[:4], x[2:]], 2.0)
    torch.testing.assert_close(x, expected)
    with pytest.raises(RuntimeError, match="single memory location"):
        scale_all_([torch.ones(3), torch.ones(1).expand(3)], 2.0)


def test_gradients_in_lists_and_optionals():
    x = torch.ones(3, requires_grad=True)
    for call in (lambda: joined([x]), lambda: given_or_made(torch.ones(3), x), lambda: only_optional(x)):
        assert call().requires_grad


def test_compiled_graphs_agree_with_eager():
    torch._dynamo.reset()

    def both(x, w, b, xs):
        y = linear(x, w, b, shift=None) + linear(x, w)
        count = torch.zeros(1)
        z = doubled(b, count)
        scale_all_(xs, 2.0)
        return y, z, count, joined(xs)

    given = on_device((X, W, B))
    one, other = [on_device([B.clone(), X[0].clone()]) for _ in range(2)]
    compiled = torch.compile(both, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*given, one), both(*given, other))
    torch.testing.assert_close(one, other)


def test_out_takes_the_result():
    x, w, b = on_device((X, W, B))
    out = torch.empty(3, 5)
    assert linear(x, w, b, out=out) is out
    torch.testing.assert_close(out, torch_linear(x, w, b))
    total = torch.empty(10)
    joined([b, b], out=total)
    torch.testing.assert_close(total, torch.cat([b, b]))


def test_warmup_takes_what_is_absent():
    meta = [each.to("meta") for each in (X, W, B)]
    linear.warmup(*meta)
    linear.warmup(meta[0], meta[1], None)
    joined.warmup([meta[2], meta[2]])


def test_vmap_calls_with_what_is_absent():
    x, w, b = on_device((torch.randn(2, 3, 4), W, B))
    torch.testing.assert_close(torch.vmap(lambda each: linear(each, w))(x), torch_linear(x, w))
    torch.testing.assert_close(torch.vmap(lambda each: linear(each, w, b))(x), torch_linear(x, w, b))


def test_using_what_is_absent_is_an_error_at_the_call_with_the_line():
    @bw.op("bwkinds::careless")
    def careless(x: Tensor, b: Optional[Tensor] = None) -> Tensor:
        out = torch.empty_like(x)
        for i in range(len(x)):
            out[i] = x[i] + b[i]
        return out

    x = torch.ones(3)
    assert careless(x, x).tolist() == [2.0] * 3
    with pytest.raises(CompileError, match=r"`b`, which is None in this call") as caught:
        careless(x)
    assert caught.value.diagnostics[0].loc.line == careless.definition.loc.line + 3


def test_wrong_types_are_named():
    x = torch.ones(3)
    with pytest.raises(TypeError, match=r"argument 'b' must be Tensor or None, not float"):
        linear(X, W, 1.0)
    with pytest.raises(TypeError, match=r"argument 'xs' must be list\[Tensor\], not list of Tensor and int"):
        joined([x, 1])
    with pytest.raises(TypeError, match=r"argument 'xs' must be list\[Tensor\], not Tensor"):
        joined(x)
    with pytest.raises(CompileError, match=r"argument `xs\[1\]` of joined is torch.complex32"):
        joined([x, torch.zeros(2, dtype=torch.complex32)])


def optional_item(xs: list[Optional[Tensor]]) -> None:
    pass


def optional_list(xs: Optional[list[int]] = None) -> None:
    pass


def none_for_a_list(x: Tensor, xs: list[int] = None) -> None:  # noqa: RUF013  # as users write it
    pass


@bw.op("bwkinds::maybe_scaled")
def maybe_scaled(x: Tensor, scale: float = None, bias: Tensor = None) -> Tensor:  # noqa: RUF013  # as was long written
    out = torch.empty_like(x)
    if scale is None:
        scale = 2.0
    for i in range(len(x)):
        out[i] = x[i] * scale
        if bias is not None:
            out[i] += bias[i]
    return out


def test_a_default_of_none_says_that_an_argument_may_be_none():
    x = torch.randn(4)
    assert str(torch.ops.bwkinds.maybe_scaled.default._schema).startswith(
        "bwkinds::maybe_scaled(Tensor x, float? scale=None, Tensor? bias=None)"
    )
    torch.testing.assert_close(maybe_scaled(x), 2 * x)
    torch.testing.assert_close(maybe_scaled(x, None, x), 3 * x)
    torch.testing.assert_close(maybe_scaled(x, 3.0), maybe_scaled.python(x, 3.0))


def float_for_an_int(x: Tensor, n: int = 1.5) -> None:
    pass


def many(*xs: Tensor) -> None:
    pass


def named(**xs: Tensor) -> None:
    pass


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (optional_item, "`xs` is annotated as `list[Optional[Tensor]]`, and an item of a list cannot be None"),
        (optional_list, "`xs` is annotated as `Optional[list[int]]`, and a list cannot be None"),
        (none_for_a_list, "`xs` is None by default, and is annotated as `list[int]`"),
        (float_for_an_int, "the default of `n` is `1.5`, which is no int"),
        (many, "`xs` takes any number of arguments"),
        (named, "`xs` takes any number of arguments"),
    ],
)
def test_refused_by_name(function, words):
    with pytest.raises(CompileError) as caught:
        define(function)
    assert [(item.code, item.message) for item in caught.value.diagnostics] == [("BW007", words)]
    assert caught.value.diagnostics[0].help


def test_an_index_that_varies_is_refused():
    @bw.op("bwkinds::varying")
    def varying(xs: list[Tensor]) -> Tensor:
        out = torch.zeros(len(xs))
        for k in range(len(xs)):
            out[k] = xs[k][0]
        return out

    with pytest.raises(CompileError, match="a tensor with 1 dimension cannot be chosen by a variable"):
        varying([torch.ones(2), torch.ones(3)])


def test_copies_of_arguments_are_deep_in_checks():
    xs = [torch.ones(2)]
    scale_all_.check(copy.copy(xs), 2.0)
    assert xs[0].tolist() == [1.0, 1.0]


@bw.op("bwkinds::defaulted")
def defaulted(
    x: Tensor,
    a: int = -3,
    b: float = float("inf"),
    c: float = float("-inf"),
    d: bool = True,
    e: tuple[int, ...] = (1, -2),
    /,
    f: float = 1e-320,
    g: float = 2,
    h: list[float] = [1.0, 2.5],
    *,
    k: list[bool] = [True],
    nan: float = float("nan"),
    last: Optional[int] = None,
) -> Tensor:
    out = torch.zeros(11, dtype=x.dtype)
    out[0], out[1], out[2], out[3], out[4], out[5] = a, b, c, d, e[1], f * 1e300 * 1e20
    out[6], out[7], out[8], out[10] = g, h[1], k[0], last is None
    out[9] = -1.0 if nan != nan else nan
    return out


def test_defaults_of_all_kinds():
    x = torch.zeros(2, dtype=torch.float64)
    defaulted.check(x)
    defaulted.check(x, 5, 1.5, k=[False], last=3)
    expected = torch.tensor([-3, float("inf"), float("-inf"), 1, -2, 1, 2, 2.5, 1, -1, 1], dtype=torch.float64)
    torch.testing.assert_close(defaulted(x), expected, rtol=1e-3, atol=0)
    assert defaulted(x, 7, nan=4.0)[torch.tensor([0, 9])].tolist() == [7.0, 4.0]
    out = torch.empty(11, dtype=torch.float64)
    assert defaulted(x, out=out) is out
    compiled = torch.compile(lambda x: defaulted(x, 1), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), defaulted(x, 1), equal_nan=True)


def test_a_host_variable_keeps_its_value_for_the_loops_before():
    @bw.op("bwkinds::steps")
    def steps(x: Tensor, c: int) -> Tensor:
        n = 1
        out = torch.zeros_like(x)
        for i in range(len(x)):
            out[i] += n
        if c > 0:
            n = 10
        for i in range(len(x)):
            out[i] += n
        n += 1
        for i in range(len(x)):
            out[i] += n
        return out

    x = torch.zeros(2)
    assert steps(x, 1).tolist() == [22.0, 22.0] == steps.python(x, 1).tolist()
    assert steps(x, 0).tolist() == [4.0, 4.0] == steps.python(x, 0).tolist()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda x: x.to(torch.complex32), "complex64"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "dequantize"),
        (lambda x: x.to_sparse(), "to_dense"),
        (lambda x: x.to_mkldnn(), "to_dense"),
        (lambda x: torch.nested.nested_tensor([x, x]), "list of tensors"),
        (lambda x: x.to(torch.float8_e4m3fn), "float16"),
    ],
)
def test_tensors_of_other_kinds_are_refused_with_what_to_write(make, words):
    with torch.device("cpu"):
        given = make(torch.ones(3))
        for call in (lambda: doubled(given), lambda: joined([given]), lambda: given_or_made(torch.ones(3), given)):
            with pytest.raises(CompileError) as caught:
                call()
            assert words in caught.value.diagnostics[0].help
