"""Arguments that operators meet rarely: every dtype, odd layouts, shared and huge memory, and what is no tensor."""

import pytest
import torch

import brickwork as bw
from support.gpu import only_cpu
from support.operators import copy_scaled, noise, ramp, scale_, square, timex

pytestmark = pytest.mark.usefixtures("device")

DTYPES = [
    *(torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32),
    *(torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64),
]


@bw.op("bwtest::copied")
def copied(x: torch.Tensor) -> torch.Tensor:
    """A copy laid out as the argument."""
    out = torch.empty_like(x)
    for a, b, c, d in bw.ndrange(x.shape[0], x.shape[1], x.shape[2], x.shape[3]):
        out[a, b, c, d] = x[a, b, c, d]
    return out


@bw.op("bwtest::every")
def every(x: torch.Tensor, step: int) -> torch.Tensor:
    """Elements a step apart."""
    out = torch.zeros(3, dtype=torch.int64)
    for i in range(3):
        out[i] = x[i * step]
    return out


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type(dtype):
    x = torch.arange(5).to(dtype)
    torch.testing.assert_close(square(x).cpu(), (torch.arange(5) ** 2).to(dtype).cpu())
    y = torch.zeros(5, dtype=dtype)
    copy_scaled(x, y, by=1.0, shift=1)
    torch.testing.assert_close(y.cpu(), (torch.arange(5) + 1).to(dtype).cpu())


@only_cpu
@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: torch.zeros(3, dtype=torch.complex32), "complex32"),
        (lambda: torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.quint8), "quint8"),
        (lambda: torch.randn(3).to_sparse(), "sparse_coo"),
        (lambda: torch.randn(3, 3).to_sparse_csr(), "sparse_csr"),
        (lambda: torch.randn(3).to_mkldnn(), "mkldnn"),
        (lambda: torch.nested.nested_tensor([torch.randn(2), torch.randn(3)]), "a nested tensor"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_tensors_of_other_kinds_are_refused_by_name_at_the_users_line(make, what):
    for call in (lambda: square(make()), lambda: scale_(make())):
        with pytest.raises(bw.CompileError, match=rf"operators\.py:\d+: error BW301: argument `x` of .*{what}"):
            call()


LAYOUTS = {
    "channels last": lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "empty channels last": lambda: torch.empty(2, 0, 3, 4).to(memory_format=torch.channels_last),
    "single channels": lambda: torch.randn(1, 3, 1, 1).to(memory_format=torch.channels_last),
    "expanded": lambda: torch.randn(2, 1, 3, 1).expand(2, 4, 3, 5),
    "permuted with gaps": lambda: torch.randn(4, 6, 5, 8)[..., ::3].permute(2, 0, 3, 1),
    "odd strides of single axes": lambda: torch.randn(99).as_strided((1, 5, 1, 2), (7, 2, 0, 1)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_results_are_laid_out_as_torch_would(name):
    x = LAYOUTS[name]()
    result = copied(x)
    assert torch.equal(result, x)
    assert (result.shape, result.stride()) == (x.shape, torch.empty_like(x).stride())


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("turned", [False, True])
def test_a_given_slice_is_filled_and_its_surroundings_are_not_touched(name, turned):
    x = LAYOUTS[name]()
    shape = x.shape[::-1] if turned else x.shape
    whole = torch.full([2 * size + 2 for size in shape], 9.0)
    inner = tuple(slice(1, 1 + 2 * size, 2) for size in shape)
    out = whole[inner].permute(3, 2, 1, 0) if turned else whole[inner]
    assert copied(x, out=out) is out
    assert torch.equal(out, x)
    whole[inner] = 9.0
    assert (whole == 9).all()


def test_the_same_tensor_twice():
    x = torch.arange(5.0)
    copy_scaled(x, x, by=3.0)
    assert x.tolist() == [0, 3, 6, 9, 12]


@pytest.mark.parametrize("strides", [(1, 1), (2, 1)])
def test_buffers_that_overlap_themselves_get_the_last_value(strides):
    memory, expected = torch.zeros(20), torch.zeros(20)
    x = torch.randn(1, 1, 3, 4)
    copied(x, out=memory.as_strided((1, 1, 3, 4), (0, 0, *strides)))
    for i in range(3):
        for j in range(4):
            expected[i * strides[0] + j * strides[1]] = x[0, 0, i, j]
    assert torch.equal(memory, expected)


def test_offsets_beyond_32_bits():
    step = (1 << 30) + 8
    x = torch.empty(2 * step + 1, dtype=torch.uint8)
    for place in range(3):
        x[place * step] = place + 1
    assert every(x, step).tolist() == [1, 2, 3]
    assert every(x.as_strided((3,), (step,)), 1).tolist() == [1, 2, 3]


@only_cpu
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: square([1.0, 2.0]), r"square\(\): argument 'x' must be Tensor, not list"),
        (lambda x: square(None), r"square\(\): argument 'x' must be Tensor, not NoneType"),
        (lambda x: square(x.numpy()), r"square\(\): argument 'x' must be Tensor, not ndarray"),
        (lambda x: copy_scaled(x, None), r"copy_scaled\(\): argument 'into' must be Tensor, not NoneType"),
        (lambda x: square(x, out=None), r"square\(\): argument 'out' must be Tensor, not NoneType"),
        (lambda x: square(x, x), r"square\(\) takes 1 argument \(x\), not 2"),
        (lambda x: square(x, foo=1), r"square\(\) got an unexpected keyword argument 'foo'"),
        (lambda x: square(x, x=x), r"square\(\) multiple values for argument 'x'"),
        (lambda x: timex(x), r"timex\(\) missing a required argument: 'k'"),
        (lambda x: ramp(1.5), r"ramp\(\): argument 'n' must be int, not float"),
        (lambda x: ramp(3, "a"), r"ramp\(\): argument 'step' must be float, not str"),
        (lambda x: scale_(x, out=x), r"scale_\(\) got an unexpected keyword argument 'out'"),
    ],
)
def test_what_does_not_fit_the_function_is_refused_in_its_words(call, message):
    with pytest.raises(TypeError, match=message):
        call(torch.randn(3))


@pytest.mark.parametrize("key", [torch.tensor([1, 2]), torch.tensor(1.5), torch.tensor([1], dtype=torch.int32)])
def test_a_key_that_is_no_single_integer_is_refused(key):
    with pytest.raises(ValueError, match="argument 'key' must hold one int64"):
        noise(torch.zeros(3), 1.0, key=key)


@only_cpu
def test_warming_up_with_tensors_without_data_expects_no_shared_memory():
    meta = torch.empty(10, dtype=torch.int16, device="meta")[::2]
    copy_scaled.warmup(meta, torch.empty(10, dtype=torch.int16, device="meta")[::2])
    assert "may alias" not in copy_scaled.stats().specialisations[-1].signature
    count = len(copy_scaled.stats().specialisations)
    copy_scaled(torch.ones(10, dtype=torch.int16)[::2], torch.ones(10, dtype=torch.int16)[::2])
    assert len(copy_scaled.stats().specialisations) == count
