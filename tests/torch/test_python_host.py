"""Operators whose host part runs in Python: values, the contract with PyTorch, what is written and refused."""

import pytest
import torch
from torch._subclasses import FakeTensorMode

import brickwork as bw
from brickwork.decorator import op
from brickwork.diagnostics.errors import CompileError
from support.operators import square


@bw.op("bwhost::smooth")
def smooth(x: torch.Tensor, k: float = 0.5) -> torch.Tensor:
    """torch calls, a slice, loops that share a scalar, whole-tensor arithmetic."""
    x = torch.relu(x)
    y = x[1:]
    out = torch.empty_like(y)
    s = 0.0
    for i in range(y.shape[0]):
        out[i] = y[i] * k + x[i]
        s += y[i]
    z = torch.exp(out) * s
    for i in range(z.shape[0]):
        z[i] = z[i] + s
    return z


def torch_smooth(x, k=0.5):
    x = torch.relu(x)
    s = x[1:].sum()
    return torch.exp(x[1:] * k + x[:-1]) * s + s


@bw.op("bwhost::steps")
def steps(x: torch.Tensor, n: int) -> torch.Tensor:
    """A loop with torch calls, and loops of elements in it."""
    h = torch.zeros_like(x)
    for _ in range(n):
        h = torch.tanh(h)
        m = 0.0
        for i in range(x.shape[0]):
            h[i] = h[i] + x[i]
            m = max(m, h[i])
        h = h / (m + 1.0)
    return h


def torch_steps(x, n):
    h = torch.zeros_like(x)
    for _ in range(n):
        h = torch.tanh(h) + x
        h = h / (h.max().clamp(min=0) + 1)
    return h


@bw.op("bwhost::bump_")
def bump_(x: torch.Tensor) -> None:
    """Stores through two views of an argument."""
    y = x.T[1:]
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = y[i, j] + 1


@bw.op("bwhost::choose")
def choose(x: torch.Tensor, n: int) -> torch.Tensor:
    """An `if` over a value that decides what is allocated and returned."""
    if n > 2:
        out = x.new_zeros(n)
    else:
        out = x.new_ones(2)
        return out
    for i in range(n):
        out[i] = x[i] + n
    return out


@bw.op("bwhost::both")
def both(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Calls of another operator and of torch.arange, rows, and two results."""
    a, b = square(x.reshape(-1)).chunk(2)
    index = torch.arange(a.shape[0], device=a.device)
    row = x[k]
    first = row[0]
    out = torch.empty_like(a)
    for i in range(out.shape[0]):
        out[i] = a[index[i]] + b[i] * first + row[i % row.shape[0]]
    return out, index * 2


def torch_both(x, k):
    a, b = (x * x).reshape(-1).chunk(2)
    index = torch.arange(a.shape[0])
    return a + b * x[k, 0] + x[k][index % x.shape[1]], index * 2


@bw.op("bwhost::table")
def table(n: int) -> torch.Tensor:
    """No argument is a tensor."""
    a = torch.arange(n)
    for i in range(n):
        a[i] = a[i] * a[i]
    return a


@bw.op("bwhost::noise")
def noise(x: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
    """Two loops that draw, and a copy that is only read."""
    x = x.contiguous()
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + scale * bw.rand()
    y = torch.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = bw.rand()
    return torch.stack((out, y))


@bw.op("bwhost::relax")
def relax(x: torch.Tensor, tolerance: float) -> torch.Tensor:
    """A loop that is left when elements say so."""
    u = x.clone()
    while True:
        v = torch.nn.functional.pad(u, (1, 1))
        worst = 0.0
        for i in range(u.shape[0]):
            new = (v[i] + v[i + 2]) / 2
            worst = max(worst, abs(new - u[i]))
            u[i] = new
        if worst < tolerance:
            break
    return u


@bw.op("bwhost::swapped")
def swapped(x: torch.Tensor, n: int) -> torch.Tensor:
    """Names that are exchanged between time steps."""
    u = torch.relu(x)
    v = torch.zeros_like(u)
    for _ in range(n):
        for i in range(u.shape[0]):
            v[i] = 2 * u[i] + 1
        u, v = v, u
    return u


@bw.op("bwhost::ones_of")
def ones_of(x: torch.Tensor) -> torch.Tensor:
    """A size that is read from an element."""
    n = int(x.sum().item())
    out = torch.empty(n)
    for i in range(n):
        out[i] = i
    return out


@bw.op("bwhost::masked")
def masked(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """A parameter's name given to another tensor, and torch's indexing by tensors."""
    x = x @ w
    x[x > 1] = 1.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = max(x[i, j], 0.0)
    return x


CASES = {
    "smooth": (smooth, lambda: (torch.randn(9), 0.25), torch_smooth),
    "steps": (steps, lambda: (torch.randn(7), 3), torch_steps),
    "choose": (choose, lambda: (torch.randn(4), 4), lambda x, n: x + n),
    "choose early": (choose, lambda: (torch.randn(4), 1), lambda x, n: torch.ones(2)),
    "both": (both, lambda: (torch.randn(3, 4), 1), torch_both),
    "masked": (masked, lambda: (torch.randn(3, 4), torch.randn(4, 5)), lambda x, w: (x @ w).clamp(0, 1)),
    "table": (table, lambda: (6,), lambda n: torch.arange(n) ** 2),
    "swapped": (swapped, lambda: (torch.rand(5), 3), lambda x, n: 8 * x + 7),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_reference(name):
    operator, make, expected = CASES[name]
    arguments = make()
    torch.testing.assert_close(operator(*arguments), expected(*arguments))
    torch.testing.assert_close(operator.python(*arguments), expected(*arguments))


@pytest.mark.parametrize("name", CASES)
def test_opcheck_passes_unaided(name):
    operator, make, _ = CASES[name]
    result = torch.library.opcheck(operator._overload, make())
    assert set(result.values()) == {"SUCCESS"}


@pytest.mark.parametrize("arguments", [(torch.ones(3, 4),), (torch.ones(4, 3).T,)])
def test_stores_through_views_are_of_the_argument(arguments):
    (x,) = arguments
    assert bump_._schema.default.schema == "bump_(Tensor(a!) x) -> ()"
    assert smooth.definition.mutated == frozenset()
    before = x._version
    bump_(x)
    assert x._version > before
    assert x[:, 0].eq(1).all()
    assert x[:, 1:].eq(2).all()
    torch.library.opcheck(bump_._overload, (x,))


@pytest.mark.parametrize("name", ["smooth", "steps", "both"])
def test_compiled_graphs_agree_with_eager(name):
    torch._dynamo.reset()
    operator, make, expected = CASES[name]
    compiled = torch.compile(operator, fullgraph=True, dynamic=True, backend="aot_eager")
    for _ in range(2):
        arguments = make()
        torch.testing.assert_close(compiled(*arguments), expected(*arguments))


def test_mutation_is_traced():
    torch._dynamo.reset()

    def model(x):
        y = x.clone()
        bump_(y)
        return y * 2

    x = torch.randn(3, 4)
    torch.testing.assert_close(torch.compile(model, fullgraph=True, backend="aot_eager")(x), model(x))


def test_fakes_and_meta_tensors():
    with FakeTensorMode() as mode:
        fake = smooth(mode.from_tensor(torch.randn(9)))
    assert (fake.shape, fake.dtype) == ((8,), torch.float32)
    assert steps(torch.empty(5, device="meta"), 2).shape == (5,)


def test_results_into_given_buffers():
    x, out = torch.randn(9), torch.empty(8)
    assert smooth(x, out=out) is out
    torch.testing.assert_close(out, torch_smooth(x))
    with pytest.raises(RuntimeError, match="shape"):
        smooth(x, out=torch.empty(9))
    with pytest.raises(RuntimeError, match="dtype"):
        smooth(x, out=torch.empty(8, dtype=torch.float64))
    x, results = torch.randn(3, 4), (torch.empty(6), torch.empty(6, dtype=torch.int64))
    assert both(x, 1, out=results)[0] is results[0]
    torch.testing.assert_close(results, torch_both(x, 1))
    torch.library.opcheck(smooth._registration.overload("out"), (torch.randn(9),), {"out": out})


def test_random_numbers_come_from_one_key_and_differ_between_loops():
    x = torch.zeros(1000)
    torch.testing.assert_close(noise(x, key=7), noise.python(x, key=7))
    one, two = noise(x, key=7)
    assert not torch.equal(one, two)
    assert abs(torch.corrcoef(torch.stack((one, two)))[0, 1]) < 0.15
    torch.manual_seed(3)
    first, second = noise(x), noise(x)
    torch.manual_seed(3)
    assert torch.equal(noise(x), first)
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    assert torch.equal(noise.python(x), first)


def test_host_code_may_wait_for_values():
    assert ones_of(torch.ones(3)).tolist() == [0.0, 1.0, 2.0]
    x = torch.rand(6)
    result = relax(x, 1e-3)
    assert result.abs().max() < 0.02
    torch.testing.assert_close(result, relax.python(x, 1e-3))


def test_an_operator_called_as_a_function_of_torch_is_itself():
    """Its name says nothing of what it does: neither in the host part, nor for an element."""

    @bw.op("bwhost::exp")
    def exp(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for at in bw.indices(x):
            out[at] = 2 * x[at]
        return out

    @bw.op("bwhost::calls_operators")
    def calls(x: torch.Tensor) -> torch.Tensor:
        y = torch.ops.bwhost.exp(x) + torch.ops.bwhost.exp.default(x) + torch.ops.aten.exp(x)
        for i in range(len(y)):
            y[i] += torch.ops.bwhost.exp(x[i]) + torch.ops.aten.exp(x[i])
        return y

    x = torch.randn(3)
    torch.testing.assert_close(calls(x), 6 * x + 2 * x.exp())
    torch.testing.assert_close(calls.python(x), calls(x))
    assert exp.name == "bwhost::exp"


def test_integers_widen_when_the_host_reads_an_element():
    @op("bwhost::widened")
    def widened(x: torch.Tensor) -> torch.Tensor:
        y = torch.abs(x)
        first = y[0]
        out = torch.zeros(2, dtype=torch.int64)
        big = first * 100
        out[0] = big
        return out

    assert widened(torch.tensor([100], dtype=torch.int8)).tolist() == [10000, 0]


def test_a_number_set_apart_from_the_loop_that_adds_to_it():
    @op("bwhost::apart")
    def apart(x: torch.Tensor) -> torch.Tensor:
        s = 0.0
        y = torch.relu(x)
        for i in range(y.shape[0]):
            s += y[i]
        z = torch.neg(y)
        s = s * 2
        return z + s

    x = torch.randn(5)
    y = torch.relu(x)
    torch.testing.assert_close(apart(x), 2 * y.sum() - y)
    torch.testing.assert_close(apart.python(x), 2 * y.sum() - y)
    torch.library.opcheck(apart._overload, (x,))


def test_explain_says_why_the_host_part_is_python():
    smooth(torch.randn(9))
    text = smooth.explain()
    assert "host part: Python, because" in text
    assert "calls torch.relu" in text
    assert "bwhost::smooth__loop1" in text
    assert "vectorised" in text


def test_warmup_compiles_the_pieces():
    @op("bwhost::warmed")
    def warmed(x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x)
        for i in range(y.shape[0]):
            y[i] = y[i] + 1
        return y

    assert "not compiled yet" in warmed.explain()
    warmed.warmup(torch.empty(5, device="meta"))
    assert len(warmed.stats().specialisations) == 1
    torch.testing.assert_close(warmed(torch.ones(5)), torch.full((5,), 2.0))
    assert len(warmed.stats().specialisations) == 1


def test_failures_name_the_users_file_and_line():
    @op("bwhost::beyond")
    def beyond(x: torch.Tensor) -> torch.Tensor:
        y = x[1:]
        out = torch.empty_like(y)
        for i in range(9):
            out[i] = y[i]
        return out

    line = beyond.definition.loc.line + 5
    with pytest.raises(IndexError, match=rf"index 4 is out of bounds.*test_python_host.py:{line - 1}"):
        beyond(torch.randn(5))


def test_memory_is_looked_at_where_the_source_does_not_tell():
    class Hidden:
        def __call__(self, x):
            return x[1:]

    hidden = Hidden()

    @op("bwhost::through")
    def through(x: torch.Tensor) -> torch.Tensor:
        y = hidden(x)
        for i in range(y.shape[0]):
            y[i] = 0
        return torch.relu(x)

    @op("bwhost::handed")
    def handed(x: torch.Tensor) -> torch.Tensor:
        y = hidden(x)
        out = torch.empty_like(y)
        for i in range(y.shape[0]):
            out[i] = y[i]
        return y

    x = torch.ones(4)
    with pytest.raises(CompileError, match=r"BW010: `y` shares memory with the argument `x`"):
        through(x)
    assert x.eq(1).all()
    with pytest.raises(CompileError, match=r"BW009: a result of `handed` shares memory with the argument `x`"):
        handed(x)


@bw.op("bwhost::weighted_sum")
def weighted_sum(x: torch.Tensor) -> torch.Tensor:
    """A loop between torch's own operators."""
    y = torch.sin(x) * 2
    out = torch.empty_like(y)
    for i in range(x.shape[0]):
        out[i] = y[i] * x[i]
    return out.cumsum(0)


def test_gradients_of_pieces_and_of_what_stands_between_them():
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(weighted_sum, (x,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(weighted_sum, (x,))
    y = x.detach()

    def plain(x):
        return (torch.sin(x) * 2 * x).cumsum(0)

    ours, theirs = (torch.func.hessian(lambda x, f=f: f(x).sum())(y) for f in (weighted_sum, plain))
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(torch.vmap(weighted_sum)(torch.stack([y, 2 * y]))[1], plain(2 * y))
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: weighted_sum(x).sum(), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(torch.autograd.grad(compiled(x), x), torch.autograd.grad(plain(x).sum(), x))


@bw.op("bwhost::turns")
def turns(x: torch.Tensor, w: torch.Tensor, count: int) -> torch.Tensor:
    """What a loop reads, the next turn but one stores into."""
    a, b = x.clone(), torch.zeros_like(x)
    for _ in range(count):
        for i in range(x.shape[0]):
            b[i] = a[i] * a[i - 1] * w[i]
        a, b = b, a
    return a


def test_gradients_where_tensors_change_places_in_the_host_part():
    x, w = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    for count in (1, 2, 3):
        assert torch.autograd.gradcheck(lambda x, w, count=count: turns(x, w, count), (x, w))
    assert torch.autograd.gradgradcheck(lambda x, w: turns(x, w, 3), (x, w))


@bw.op("tests::host_made_alike")
def made_alike(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x.relu()
    out, total = torch.empty_like(x), torch.zeros(x.shape[0], dtype=x.dtype)
    for i in range(x.shape[0]):
        out[i] = y[i] * w[i]
        total[i] += w[i]
    return out + total.flip(0)


@bw.op("tests::host_computed")
def stored_into_computed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y, z = x.sin(), x.clone()
    for i in range(x.shape[0]):
        y[i] += w[i] * z[i]
    return y.cumsum(0)


@pytest.mark.parametrize("op", [made_alike, stored_into_computed])
def test_what_the_host_makes_of_what_samples_share_is_one_for_each(op):
    x, w = torch.randn(2, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    expected = torch.stack([torch.stack([op(one, other) for other in w]) for one in x])
    torch.testing.assert_close(torch.vmap(op, (None, 0))(x[0], w), expected[0])
    torch.testing.assert_close(torch.vmap(op, (0, None))(x, w[0]), expected[:, 0])
    torch.testing.assert_close(torch.vmap(torch.vmap(op, (None, 0)), (0, None))(x, w), expected)
    torch.testing.assert_close(torch.vmap(torch.vmap(op, (0, None)), (None, 0))(x, w), expected.transpose(0, 1))

    def loss(x, w):
        return op(x, w).square().sum()

    found = torch.vmap(torch.func.grad(loss), (None, 0))(x[0], w)
    torch.testing.assert_close(found, torch.stack([torch.func.grad(loss)(x[0], other) for other in w]))


TABLE, SEEN = [1.0, 2.0], []


@bw.op("tests::host_shares_lists")
def shares_lists(x: torch.Tensor) -> torch.Tensor:
    y = x.relu()
    SEEN.append(len(x))
    out = torch.empty_like(y)
    for i in range(len(x)):
        out[i] = y[i] * TABLE[i]
    return out


def test_lists_are_constants_in_loops_and_shared_in_a_host_part_in_python():
    TABLE[0] = 9.0
    found = [shares_lists(torch.ones(2, dtype=dtype)).tolist() for dtype in (torch.float32, torch.float64)]
    assert found == [[1.0, 2.0]] * 2
    assert SEEN[-2:] == [2, 2]


@bw.op("bwhost::gated_states")
def gated_states(q: torch.Tensor, k: torch.Tensor, g: torch.Tensor, state: torch.Tensor | None = None) -> torch.Tensor:
    """Linear attention as published references write it: parts of tensors have names in a loop that Python runs."""
    s = torch.zeros(q.shape[0], q.shape[1], q.shape[3], k.shape[3]).to(q)
    if state is not None:
        s = state
    out = torch.zeros_like(q)
    for t in range(q.shape[2]):
        gate = g[:, :, t].exp()
        key, row = k[:, :, t], q[:, :, t, :]
        pairs = key.unsqueeze(-1) * row.unsqueeze(-2)
        s = s.clone() * gate.unsqueeze(-1).unsqueeze(-1) + pairs
        out[:, :, t] = torch.einsum("bhd,bhdm->bhm", row, s)
    return out


@pytest.mark.parametrize("given", [False, True])
def test_parts_that_have_names_in_a_loop_of_pythons(given):
    torch.manual_seed(0)
    arguments = [torch.randn(2, 3, 5, 4), torch.randn(2, 3, 5, 4), torch.randn(2, 3, 5)]
    arguments += [torch.randn(2, 3, 4, 4)] if given else []
    torch.testing.assert_close(gated_states(*arguments), gated_states.python(*arguments))
