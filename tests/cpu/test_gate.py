import threading

import pytest
import torch
from torch._subclasses import FakeTensorMode

from brickwork.diagnostics.errors import InternalError
from brickwork.ir.build import apply, constant, integer, read
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Allocate, Program, Return, ScalarParameter, Symbol, TensorParameter, TensorType
from brickwork.pytorch import libtorch
from brickwork.pytorch.gate import ArgumentKind, Gate, thunk_object
from brickwork.target.cpu import host_target
from support.entries import Operator, elementwise, kernel, size, tensor, type_of

T = ArgumentKind.TENSOR


def squaring(arguments="Tensor x", kinds=(T,)):
    def factory(values):
        x = tensor("x", type_of(values[0]))
        out = tensor("out", x.type if x.type.contiguous else TensorType(x.type.dtype, x.type.rank))
        sizes = tuple(size(x, axis) for axis in range(x.type.rank))
        body = elementwise(x, out, lambda value, _: apply("mul", value, value))
        return Program(
            name="squaring",
            parameters=(TensorParameter(x),),
            body=(Allocate(tensor=out, sizes=sizes, like=x), kernel("k", body, (x, out)), Return(tensors=(out,))),
        )

    return Operator(arguments, "Tensor", list(kinds), factory)


@pytest.fixture(scope="module")
def square():
    operator = squaring()
    torch.library.register_fake(operator.name, torch.empty_like)
    return operator


@pytest.mark.parametrize(
    "error",
    [
        TypeError("only float32"),
        IndexError("index 7"),
        ZeroDivisionError("division"),
        AssertionError(),
        NotImplementedError("later"),
        InternalError("broken"),
        KeyError("ä\N{SNOWMAN}"),
        KeyboardInterrupt(),
        SystemExit(3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_python_raises_reaches_the_caller(error):
    square = squaring()
    square.error = error
    x = torch.randn(3)
    for call in (square, square.overload, lambda x: torch.ops.bwentry.__getattr__(square.name[9:])(x)):
        with pytest.raises(type(error)) as caught:
            call(x)
        assert caught.value is error
    square.error = None
    assert torch.equal(square(x), x * x)


def test_a_miss_that_helps_nothing_ends():
    gate = Gate("bwentry::useless", [T], lambda values: None, lambda values, wanted: None, thunk_object(host_target()))
    torch.library.define("bwentry::useless", "(Tensor x) -> Tensor")
    gate.register()
    for _ in range(2):
        with pytest.raises(InternalError, match="no code of bwentry::useless takes the arguments"):
            torch.ops.bwentry.useless(torch.randn(3))


def test_errors_that_are_the_users_show_no_frames_of_ours():
    square = squaring()
    square.error = InternalError("x")
    with pytest.raises(InternalError) as caught:
        square(torch.randn(3))
    assert all("brickwork/pytorch" not in str(entry.path) for entry in caught.traceback)


def test_where_torchs_class_is_not_known_errors_are_runtime_errors(monkeypatch):
    monkeypatch.setattr(libtorch, "knows_python_error", lambda: False)
    square = squaring()
    square.error = IndexError("index 7")
    for _ in range(100):
        with pytest.raises(RuntimeError, match="IndexError: index 7"):
            square(torch.randn(3))


def test_gradients_are_refused_never_zero(square):
    x = torch.randn(3)
    with pytest.raises(NotImplementedError, match="has no gradient yet"):
        square(x.clone().requires_grad_())
    with torch.no_grad():
        assert torch.equal(square(x.clone().requires_grad_()), x * x)
    assert torch.equal(square(x.clone().requires_grad_().detach()), x * x)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones(3))
        with pytest.raises(NotImplementedError, match="has no gradient yet"):
            square(dual)
        with torch.no_grad(), pytest.raises(NotImplementedError, match="has no gradient yet"):
            square(dual)
        assert torch.equal(square(x), x * x)


def test_function_transforms_are_refused_where_they_need_gradients(square):
    x = torch.randn(3)
    for transform in (
        lambda: torch.func.grad(lambda x: square(x).sum())(x),
        lambda: torch.func.jvp(square, (x,), (torch.ones(3),)),
        lambda: torch.func.vmap(torch.func.grad(lambda x: square(x).sum()))(x[None]),
        lambda: torch.func.hessian(lambda x: square(x).sum())(x),
        lambda: torch.func.vjp(square, x),
    ):
        with pytest.raises(NotImplementedError, match="has no gradient yet"):
            transform()


def test_function_transforms_pass_where_they_do_not(square):
    x = torch.randn(4, 3)
    torch.testing.assert_close(torch.func.vmap(square)(x), x * x)
    torch.testing.assert_close(torch.func.grad(lambda y: (square(x) * y).sum())(x), x * x)
    torch.testing.assert_close(torch.func.grad(lambda y: (square(y.detach()) * y).sum())(x), x * x)


def test_views_by_negation_and_conjugation_are_resolved(square):
    x = torch.randn(4)
    view = torch._neg_view(x)
    torch.testing.assert_close(square(view), x * x)
    with torch.inference_mode():
        torch.testing.assert_close(square(torch._neg_view(torch.ones(3))), torch.ones(3))
    imaginary = torch.randn(3, dtype=torch.complex64).conj().imag
    assert imaginary.is_neg()
    torch.testing.assert_close(square(imaginary), imaginary.resolve_neg() ** 2)


def test_fakes_never_reach_machine_code(square):
    with FakeTensorMode():
        y = square(torch.empty(8))
        assert type(y).__name__ == "FakeTensor"
        assert y.shape == (8,)
        with pytest.raises(NotImplementedError):
            square(torch.empty(8, requires_grad=True))
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert type(square(torch.ones(3))).__name__ == "FakeTensor"


def test_what_a_fake_raises_keeps_its_type():
    square = squaring()

    def fake(x):
        raise ZeroDivisionError("in the fake")

    torch.library.register_fake(square.name, fake)
    with FakeTensorMode(), pytest.raises(ZeroDivisionError, match="in the fake"):
        square(torch.empty(8))


def test_dispatch_modes_and_subclasses_see_the_operator(square):
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    x = torch.randn(3)
    with Mode():
        torch.testing.assert_close(square(x), x * x)
    assert square.name.replace("::", ".") + ".default" in seen

    class Wrapped(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            wrapper = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            wrapper.inner = inner
            return wrapper

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            seen.append("wrapped")
            return function(args[0].inner)

    torch.testing.assert_close(square(Wrapped(x)), x * x)
    assert seen[-1] == "wrapped"


def test_compiled_graphs_hold_the_operator_whole():
    scale = scaling()
    compiled = torch.compile(lambda x, n: scale(x + 1, n) + 1, backend="aot_eager", fullgraph=True, dynamic=True)
    for length in (3, 4, 7):
        x = torch.randn(length)
        torch.testing.assert_close(compiled(x, length), (x + 1) * length + 1)


def scaling():
    def factory(values):
        x, n = tensor("x", type_of(values[0])), Symbol("n", 990, INT64)
        out = tensor("out", x.type)
        from brickwork.ir.build import cast

        body = elementwise(x, out, lambda value, _: apply("mul", value, cast(read(n), FLOAT32)))
        return Program(
            name="scaling",
            parameters=(TensorParameter(x), ScalarParameter(n)),
            body=(
                Allocate(tensor=out, sizes=(size(x, 0),)),
                kernel("k", body, (x, out), (n,)),
                Return(tensors=(out,)),
            ),
        )

    operator = Operator("Tensor x, SymInt n", "Tensor", [T, ArgumentKind.INT], factory)
    torch.library.register_fake(operator.name, lambda x, n: torch.empty_like(x))
    return operator


def test_opcheck_accepts_an_operator_behind_gates(square):
    torch.library.opcheck(square.overload, (torch.randn(5),))
    torch.library.opcheck(square.overload, (torch.randn(5, 4).t(),))


def test_operators_without_tensors():
    def factory(values):
        n, out = Symbol("n", 995, INT64), tensor("out", type_of(torch.empty(1)))
        made = Allocate(tensor=out, sizes=(read(n),), fill=constant(2.0, FLOAT32))
        return Program(name="ones", parameters=(ScalarParameter(n),), body=(made, Return(tensors=(out,))))

    twos = Operator("SymInt n", "Tensor", [ArgumentKind.INT], factory)
    torch.library.register_fake(twos.name, lambda n: torch.empty(n))
    assert twos(3).tolist() == [2, 2, 2]
    with FakeTensorMode():
        assert type(twos(3)).__name__ == "FakeTensor"


def test_threads_that_miss_together_compile_once():
    square = squaring()
    x, results = torch.randn(10), []
    start = threading.Barrier(8)

    def call():
        start.wait()
        for _ in range(50):
            results.append(torch.equal(square(x), x * x))

    known, compile_one = [], square._miss

    def miss(values):
        kind = type_of(values[0])
        if kind not in known:
            known.append(kind)
            compile_one(values)

    square.gate._on_miss = miss
    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 400
    assert len(square.compiled) == 1


def test_a_cleared_gate_compiles_anew(square):
    square = squaring()
    x = torch.randn(2)
    square(x)
    square.gate.clear()
    square.compiled.clear()
    square(x)
    assert len(square.compiled) == 1


def test_lists_of_tensors_and_optional_tensors_are_read_and_given_back():
    seen = []

    def factory(values):
        seen.append(values)
        raise ValueError("no")

    kinds = [T, ArgumentKind.TENSOR_LIST, ArgumentKind.OPTIONAL_TENSOR, ArgumentKind.BOOL_LIST]
    operator = Operator("Tensor x, Tensor[] xs, Tensor? y, bool[] flags", "Tensor", kinds, factory)
    x = torch.randn(3)
    before = torch._C._storage_Use_Count(x.untyped_storage()._cdata)
    with pytest.raises(ValueError, match="no"):
        operator(x[:], [x[:], x[1:]], None, [True, False])
    with pytest.raises(ValueError, match="no"):
        operator(x[:], [], x[:2], [])
    assert len(seen[0][1]) == 2
    assert seen[0][2] is None
    assert seen[0][3] == [True, False]
    assert seen[1][2].shape == (2,)
    with pytest.raises(NotImplementedError):
        operator(x, [x.clone().requires_grad_()], None, [])
    with pytest.raises(NotImplementedError):
        operator(x, [], x.clone().requires_grad_(), [])
    seen.clear()
    assert torch._C._storage_Use_Count(x.untyped_storage()._cdata) == before


def test_the_key_set_is_where_it_was_found():
    offset = libtorch.key_set_offset()
    assert offset > 0
    for data in (torch.randn(3), torch.randn(2, dtype=torch.complex64).conj(), torch.empty(1, device="meta")):
        assert dict(libtorch.words_of(data))[offset] == torch._C._dispatch_keys(data).raw_repr()


def test_without_the_key_set_python_answers(monkeypatch):
    monkeypatch.setattr(libtorch, "key_set_offset", lambda: -1)
    square = squaring()
    x = torch.randn(3)
    assert torch.equal(square(x), x * x)
    with pytest.raises(NotImplementedError):
        square(x.clone().requires_grad_())
    with torch.autograd.forward_ad.dual_level(), pytest.raises(NotImplementedError):
        square(torch.autograd.forward_ad.make_dual(x, x))


def test_what_no_entry_serves_is_told_by_the_miss():
    square = squaring()
    square(torch.randn(3))
    square.error = TypeError("x has to be a CPU tensor")
    with pytest.raises(TypeError):
        square(torch.randn(3).double())
    assert integer(0).dtype is INT64
