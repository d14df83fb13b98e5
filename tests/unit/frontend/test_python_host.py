"""Host parts that run in Python, by syntax alone: pieces and what they share, liveness, aliases, refusals."""

import ast
import types

import pytest
import torch

import brickwork.language.random as bw
from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.definition import define
from brickwork.frontend.liveness import Liveness
from brickwork.frontend.lower import lower
from brickwork.frontend.outline_pieces import Input, piece_definition, python_body
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.nodes import TensorType
from brickwork.ir.signature import Signature
from brickwork.ir.text import print_program
from brickwork.ir.verify import verify_program
from support.lowering import memory, program_of, run


def relu_then_scale(x: torch.Tensor, k: float) -> torch.Tensor:
    y = torch.relu(x)
    s = 0.0
    for i in range(y.shape[0]):
        s += y[i] * k
    z = torch.exp(y) * s
    for i in range(z.shape[0]):
        z[i] = z[i] + s
    return z


def nested(x: torch.Tensor, n: int) -> torch.Tensor:
    h = torch.zeros_like(x)
    for _ in range(n):
        h = torch.tanh(h)
        for i in range(x.shape[0]):
            h[i] = h[i] + x[i]
    return h


def names(piece):
    return piece.inputs, piece.outputs, piece.repeated


def test_pieces_and_the_names_they_share():
    one, two = define(relu_then_scale).split.pieces
    assert names(one) == (("k", "s", "y"), ("s",), False)
    assert names(two) == (("s", "z"), (), False)
    (inner,) = define(nested).split.pieces
    assert names(inner) == (("h", "x"), (), True)


def test_a_piece_is_a_definition_with_the_users_lines():
    whole = define(relu_then_scale)
    piece = whole.split.pieces[1]
    inputs = Input("s", "cell"), Input("z", "tensor")
    made = piece_definition(whole, piece, inputs)
    assert [item.kind for item in made.parameters] == ["tensor", "tensor"]
    assert made.mutated == {"z"}
    assert (made.loc.file, made.loc.line) == (whole.loc.file, whole.loc.line + 6)
    other = piece_definition(whole, piece, (Input("s", "float"), Input("z", "tensor")))
    assert len({whole.fingerprint, made.fingerprint, other.fingerprint}) == 3


@pytest.mark.parametrize(
    ("source", "entry"),
    [
        ("s += sum(x[j] for j in y)", {"s", "x", "y", "sum"}),
        ("s += (k := n) + k", {"s", "n", "k"}),
        ("b = a\na = 1", {"a"}),
        ("if c:\n    s = 1\nt = s", {"c", "s"}),
        ("for i in r:\n    s = i\nt = s", {"r", "s"}),
        ("while True:\n    s = 1\n    break\nt = s", set()),
        ("while c:\n    s = 1\nt = s", {"c", "s"}),
        ("for i in r:\n    if c:\n        break\n    s = 1\nelse_ = s", {"r", "c", "s"}),
        ("s += 1", {"s"}),
        ("x[i] = v", {"x", "i", "v"}),
        ("a, b = b, a", {"a", "b"}),
        ("return a\nb = c", {"a"}),
    ],
)
def test_names_wanted_at_the_entry(source, entry):
    assert Liveness(ast.parse(source).body).entry == entry


def rebound(x: torch.Tensor):
    x = torch.relu(x)
    x[0] = 1.0


def sliced(x: torch.Tensor, y: torch.Tensor):
    z = y[2:] if y.shape[0] > 2 else y
    for i in range(z.shape[0]):
        z[i] = x[i]


def methods(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, w: torch.Tensor):
    torch.relu_(x)
    y.select(0, 1).add_(1)
    torch.add(w, 1, out=z)


def helped(x: torch.Tensor, y: torch.Tensor):
    part = tail(x)
    part[0] = y[0]
    torch.relu(y)


def tail(x):
    return x[1:]


def added(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor):
    x = x + y
    x[0] = 3.0
    part = z[1:]
    part += 1


def unbound(x: torch.Tensor, y: torch.Tensor):
    a, b = y.unbind(0)
    for i in range(a.shape[0]):
        a[i] = b[i] + x[i]


def later(x: torch.Tensor, y: torch.Tensor):
    a = torch.relu(x)
    for _ in range(3):
        for i in range(a.shape[0]):
            a[i] = 1.0
        a = y.narrow(0, 0, 2)


@pytest.mark.parametrize(
    ("function", "mutated"),
    [(rebound, ""), (sliced, "y"), (methods, "xyz"), (helped, "x"), (added, "z"), (unbound, "y"), (later, "y")],
)
def test_arguments_written_through_views(function, mutated):
    assert define(function).mutated == {*mutated}


def copied(x: torch.Tensor):
    y = x.contiguous()
    y[0] = 1


def viewed(x: torch.Tensor):
    y = x[1:]
    return y


def converted(x: torch.Tensor):
    return x.to(torch.float64)


def handed_on(x: torch.Tensor, y: torch.Tensor):
    z = torch.relu(x)
    y = z
    return y, x


def drawn(x: torch.Tensor):
    h = torch.relu(x)
    for _ in range(3):
        h = torch.relu(h)
        for i in range(3):
            h[i] = bw.rand()
    return h


def unassigned(x: torch.Tensor):
    y = torch.relu(x)
    for i in range(y.shape[0]):
        last = y[i]
    return y * last


def returns_early(x: torch.Tensor):
    out, other = torch.empty_like(x), torch.zeros_like(x)
    for i in range(x.shape[0]):
        if x[i] > 1:
            return out
    return other


def first_large(x, n):
    for i in range(n):
        if x[i] > 1:
            return i
    return n


@pytest.mark.parametrize(
    ("function", "code", "words"),
    [
        (copied, "BW010", "`y` is what `.contiguous()` gave"),
        (viewed, "BW009", "`y` is, or may be, a view of the argument `x`"),
        (converted, "BW009", "`x.to(torch.float64)` is, or may be, a view"),
        (handed_on, "BW009", "`x` is an argument and cannot be returned"),
        (drawn, "BW901", "random numbers are drawn inside a loop that runs in Python"),
        (returns_early, "BW012", "`return` inside a loop"),
        (unassigned, "BW005", "`last` may be read before it is assigned"),
    ],
)
def test_refused_at_definition(function, code, words):
    with pytest.raises(CompileError) as caught:
        define(function)
    assert [(item.code, item.message[: len(words)]) for item in caught.value.diagnostics] == [(code, words)]


def by_rank(x: torch.Tensor):
    if x.ndim == 1:
        out = torch.empty_like(x)
    else:
        out = torch.zeros_like(x)
    return out


def by_value(x: torch.Tensor, n: int):
    if n > 1:
        return torch.empty_like(x)
    return torch.zeros_like(x)


def transposed(x: torch.Tensor):
    y = x.T
    out = torch.empty(3)
    for i in range(3):
        out[i] = y[i, 0]
    return out


def channels_last(x: torch.Tensor):
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    out[0] = x[0]
    return out


def scratch(x: torch.Tensor):
    for i in range(x.shape[0]):
        held = torch.zeros(i + 1)
        for j in range(i + 1):
            held[j] = x[i]


def of_an_element(x: torch.Tensor, sizes: torch.Tensor):
    out = x.new_empty(int(sizes[0]))
    for i in range(out.shape[0]):
        out[i] = x[i]
    return out


def compared(x: torch.Tensor):
    return x > 0


def whole(x: torch.Tensor):
    return x * 2


def normalised(x):
    return x / x.norm()


def by_helper(x: torch.Tensor):
    return normalised(x)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (by_helper, "calls normalised, which calls torch"),
        (by_rank, ""),
        (by_value, "decides by a value what is allocated or returned"),
        (transposed, "takes `.T` of a tensor"),
        (channels_last, "passes `memory_format` to torch.empty_like"),
        (scratch, "makes a tensor inside a loop"),
        (of_an_element, "makes a tensor of what loops compute"),
        (compared, "computes with a tensor as a whole"),
        (whole, "computes with a tensor as a whole"),
    ],
)
def test_what_needs_python(function, reason):
    found = define(function)
    assert found.host == ("python" if reason else "native")
    assert found.reason.endswith(reason)


def turns(x: torch.Tensor, out: torch.Tensor):
    for i in range(x.shape[0]):
        k = 0
        while True:
            v = x[i] - k
            if v < 1.0:
                found = k
                break
            k += 1
        out[i] = v + 10 * found


def test_what_every_break_of_an_endless_loop_finds_assigned_is_so_after_it():
    x, out = memory([0.5, 1.5, 2.75]), memory([0.0] * 3)
    run(turns, x, out)
    assert out.data == [0.5, 10.5, 20.75]
    verify_program(program_of(turns, x, out))


def left_early(x: torch.Tensor, out: torch.Tensor):
    while True:
        if x[0] > 1.0:
            break
        v = x[0]
        break
    out[0] = v


def test_a_break_before_the_assignment_is_seen():
    with pytest.raises(CompileError, match="`v` may be read before it is assigned"):
        program_of(left_early, memory([0.5]), memory([0.0]))


def test_numbers_read_through_modules_are_those_of_the_definition(monkeypatch):
    module = types.ModuleType("constants")
    module.SCALE = 3
    monkeypatch.setitem(globals(), "constants", module)

    def scaled(x: torch.Tensor, out: torch.Tensor):
        for i in range(x.shape[0]):
            out[i] = x[i] * constants.SCALE  # noqa: F821

    def host(x: torch.Tensor):
        return torch.relu(x) * constants.SCALE  # noqa: F821

    one, two = define(scaled), define(host)
    module.SCALE = 5
    tensor = TensorType(FLOAT32, 1, contiguous=True, unit_axis=0)
    text = print_program(lower(one, Signature((tensor, tensor))))
    assert "3.0" in text
    assert "5.0" not in text
    assert python_body(two)(None, torch.ones(1)).item() == 3
    assert define(host).fingerprint != two.fingerprint


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("c = 1\nwhile c > 0:\n    y = f(y)\n    c = g(y)\n", {"c", "f", "g", "y"}),
        ("k = 1\nparts = [k for k in z]\nh(k)\n", {"k", "h", "z"}),
        ("k = 1\nz = a and (k := 3)\nh(k)\n", {"k", "h", "a"}),
    ],
)
def test_names_are_wanted_by_the_test_of_a_while_and_past_what_may_not_assign_them(source, wanted):
    body = ast.parse(source).body
    liveness = Liveness(body)
    assert liveness.wanted_after(body[0]) == wanted
    if isinstance(body[1], ast.While):
        assert liveness.wanted_after(body[1].body[-1]) >= {"c"}
