"""What PyTorch asks of every operator: opcheck, fakes, functionalisation, compile, export; and right values."""

import warnings

import pytest
import torch
from torch._subclasses import FakeTensorMode

from support.operators import CASES, FUNCTIONAL, copy_scaled, halves, noise, scale_, square, timex, torch_timex

pytestmark = pytest.mark.usefixtures("device")


@pytest.fixture(autouse=True)
def a_tensor_decides_on_the_device(request, device):
    given = getattr(request.node, "callspec", None)
    if device == "cuda" and given is not None and given.params.get("name") == "ramp":
        pytest.skip("without a tensor argument results are on the CPU")


def overload(case):
    return case.op._overload


def call(case, function=None):
    return (function or case.op)(*case.arguments(), **dict(case.named))


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_values_are_those_of_the_torch_formulation(name):
    case = CASES[name]
    arguments = case.arguments()
    torch.testing.assert_close(case.op(*arguments), case.expected(*arguments))


@pytest.mark.parametrize("name", CASES)
def test_opcheck_passes_unaided(name):
    case = CASES[name]
    result = torch.library.opcheck(overload(case), case.arguments(), dict(case.named))
    assert set(result.values()) == {"SUCCESS"}


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].op._schema.out])
def test_opcheck_passes_for_the_out_overload(name):
    case = CASES[name]
    results = call(case)
    buffers = [torch.empty_like(each) for each in (results if isinstance(results, tuple) else (results,))]
    named = dict(case.named) | dict(zip(case.op._schema.out.outputs, buffers, strict=True))
    utilities = ["test_schema", "test_faketensor", "test_aot_dispatch_dynamic"]
    random = [] if case.op._schema.random else utilities
    torch.library.opcheck(
        case.op._registration.overload("out"), case.arguments(), named, test_utils=random or utilities[:1]
    )


@pytest.mark.parametrize("name", CASES)
def test_fakes_have_the_shape_type_and_strides_of_results(name):
    case = CASES[name]
    arguments = case.arguments()
    real = case.op(*arguments, **dict(case.named))
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(each) if isinstance(each, torch.Tensor) else each for each in arguments]
        fake = case.op(*fakes, **dict(case.named))
    assert type(fake) is type(real) or isinstance(fake, torch.Tensor)
    for one, other in zip(*((each if isinstance(each, tuple) else (each,)) for each in (fake, real)), strict=True):
        if other is not None:
            assert (one.shape, one.dtype, one.stride()) == (other.shape, other.dtype, other.stride())


def test_meta_tensors_give_meta_results():
    result = timex(torch.empty(4, 16, device="meta"), torch.empty(2, 4, 16, device="meta"), 0.1)
    assert result.device.type == "meta"
    assert result.shape == (2, 4, 16)


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_compiled_graphs_agree_with_eager(name):
    torch._dynamo.reset()
    case = CASES[name]
    compiled = torch.compile(case.op, fullgraph=True, dynamic=True, backend="aot_eager")
    for _ in range(2):
        arguments = case.arguments()
        torch.testing.assert_close(compiled(*arguments), case.op(*arguments))


def test_inductor_agrees_with_eager_whatever_the_strides():
    torch._dynamo.reset()

    def model(w, k):
        return timex(w, (k * 2).transpose(0, 1).contiguous().transpose(0, 1), 0.1).sum(-1)

    w, k = torch.randn(4, 16), torch.randn(2, 4, 16)
    compiled = torch.compile(model, fullgraph=True)
    torch.testing.assert_close(compiled(w, k), model(w, k))


def test_dynamic_shapes_do_not_recompile():
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(lambda w, k: timex(w, k, 0.1) + 1, fullgraph=True, dynamic=True, backend=counter)
    for size in (5, 6, 9, 17):
        w, k = torch.randn(3, size), torch.randn(2, 3, size)
        torch.testing.assert_close(compiled(w, k), torch_timex(w, k, 0.1) + 1)
    assert counter.frame_count == 1
    before = len(timex.stats().specialisations)
    compiled(torch.randn(3, 21), torch.randn(2, 3, 21))
    assert len(timex.stats().specialisations) == before


def test_mutation_and_out_are_traced():
    torch._dynamo.reset()

    def model(x, buffer):
        y = x.clone()
        scale_(y, 3.0)
        square(y, out=buffer)
        copy_scaled(buffer, y, by=0.5)
        return y

    x = torch.randn(8)
    eager, traced = torch.empty(8), torch.empty(8)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, traced), model(x, eager))
    torch.testing.assert_close(traced, eager)
    torch.testing.assert_close(eager, 9 * x * x)


@pytest.mark.parametrize("strict", [False, True])
def test_export_keeps_the_operator(strict):
    class Model(torch.nn.Module):
        def forward(self, w, k):
            return timex(w, k, 0.1) * 2

    w, k = torch.randn(4, 16), torch.randn(2, 4, 16)
    time = torch.export.Dim("time", min=2)
    program = torch.export.export(Model(), (w, k), dynamic_shapes={"w": {1: time}, "k": {2: time}}, strict=strict)
    assert torch.ops.bwtest.timex.default in {node.target for node in program.graph.nodes}
    w, k = torch.randn(4, 9), torch.randn(2, 4, 9)
    torch.testing.assert_close(program.module()(w, k), torch_timex(w, k, 0.1) * 2)


def test_versions_of_written_tensors_are_bumped_and_of_read_ones_not():
    x, into = torch.randn(5), torch.empty(5)
    copy_scaled(x, into)
    assert (x._version, into._version) == (0, 1)
    square(x, out=into)
    assert (x._version, into._version) == (0, 2)


def test_a_write_after_saving_for_backward_is_found():
    x = torch.randn(4)
    leaf = torch.randn(4, requires_grad=True)
    product = (leaf * x).sum()
    scale_(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_inference_mode():
    with torch.inference_mode():
        x = torch.randn(4)
        torch.testing.assert_close(square(x), x * x)
        scale_(x)
    with torch.inference_mode():
        y = torch.empty(4)
        assert square(x, out=y) is y


def test_lazy_conjugates_and_negatives_are_resolved():
    z = torch.randn(6, dtype=torch.complex64)
    negative = z.conj().imag
    assert negative.is_neg()
    torch.testing.assert_close(square(negative), negative * negative)
    expected = negative * 3
    scale_(negative, 3.0)
    torch.testing.assert_close(negative, expected)


def test_several_results_into_given_buffers():
    x = torch.randn(7)
    even, odd = torch.empty(4), torch.empty(3)
    result = halves(x, out=(even, odd))
    assert result[0] is even
    torch.testing.assert_close((even, odd), (x[::2], x[1::2]))
    with pytest.raises(ValueError, match="returns 2 tensors"):
        halves(x, out=(even,))


def test_random_numbers_follow_torchs_generator(device):
    x = torch.zeros(1000)
    torch.manual_seed(3)
    one, two = noise(x, 1.0), noise(x, 1.0)
    torch.manual_seed(3)
    assert torch.equal(noise(x, 1.0), one)
    assert not torch.equal(one, two)
    generators = [torch.Generator(device=device).manual_seed(5) for _ in range(2)]
    before = torch.get_rng_state()
    assert torch.equal(noise(x, 1.0, generator=generators[0]), noise(x, 1.0, generator=generators[1]))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(noise(x, 1.0, key=7), noise(x, 1.0, key=torch.tensor(7)))
    assert not torch.equal(noise(x, 1.0, key=7), noise(x, 1.0, key=8))
    out = torch.empty(1000)
    assert torch.equal(noise(x, 1.0, key=7, out=out), noise(x, 1.0, key=7))


def test_random_operators_are_not_merged_by_the_compiler():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: noise(x, 1.0) - noise(x, 1.0), fullgraph=True, backend="aot_eager")
    assert compiled(torch.zeros(50)).abs().max() > 0


def test_vmap_falls_back_to_a_loop():
    x = torch.randn(3, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.testing.assert_close(torch.vmap(square)(x), x * x)
