"""Arguments on GPUs: element types, odd shapes and layouts, shared memory, sizes beyond 31 bits, several devices."""

import pytest
import torch

import brickwork as bw
from support.gpu import GPU, moved, two_gpus
from support.gpu_operators import every, heat, shifted
from support.kernels import SUITE
from support.operators import copy_scaled, noise, scale_, square, timex, torch_timex, total

pytestmark = GPU
DTYPES = [
    *(torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32),
    *(torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64),
]
whole = bw.op("bwgpu::whole")(SUITE["transcendental"].function)


@bw.op("bwgpu::converted")
def converted(x: torch.Tensor, into: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        into[i] = x[i]


@bw.op("bwgpu::filled")
def filled(x: torch.Tensor, n: int, m: int) -> torch.Tensor:
    out = x.new_empty(n, m)
    for i, j in bw.ndrange(n, m):
        out[i, j] = x[()] + i - j
    return out


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_element_type_converts_to_every_other(dtype):
    numbers = torch.tensor([0, 1, 2, 3, 77, 1]).repeat(50)
    for other in DTYPES:
        x, into = numbers.to(dtype), torch.empty(300, dtype=other)
        on_gpu = moved((x, into), "cuda")
        converted(*on_gpu)
        converted(x, into)
        assert torch.equal(on_gpu[1].cpu(), into), f"{dtype} to {other}"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_arithmetic_in_every_element_type(dtype):
    x = (torch.arange(1000) % 12).to(dtype)
    assert torch.equal(square(x.cuda()).cpu(), square(x))
    y = torch.zeros(1000, dtype=dtype)
    on_gpu = moved((x, y), "cuda")
    copy_scaled(*on_gpu, by=1.0, shift=1)
    copy_scaled(x, y, by=1.0, shift=1)
    assert torch.equal(on_gpu[1].cpu(), y)


LAYOUTS = {
    "empty": lambda: torch.randn(0, 3),
    "empty rows": lambda: torch.randn(3, 0),
    "size one": lambda: torch.randn(1, 1),
    "transposed": lambda: torch.randn(70, 33).T,
    "a step of two": lambda: torch.randn(9, 140)[::2, ::2],
    "expanded": lambda: torch.randn(70).expand(3, 70),
    "an offset": lambda: torch.randn(3 * 70 + 1)[1:].view(3, 70),
    "uneven rows": lambda: torch.randn(64, 67)[:, :63],
    "rows of a multiple of four": lambda: torch.randn(64, 68),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name):
    (x,) = moved((LAYOUTS[name](),), "cuda")
    found = whole(x)
    assert found.stride() == torch.empty_like(x).stride()
    torch.testing.assert_close(found.cpu(), whole(x.cpu()), rtol=1e-5, atol=1e-5)


def test_zero_dimensional_tensors_and_results():
    x = torch.tensor(1.5, device="cuda")
    assert torch.equal(filled(x, 3, 2).cpu(), filled(x.cpu(), 3, 2))
    found = total(torch.ones(1000, device="cuda"))
    assert (found.shape, found.device.type, found.item()) == ((), "cuda", 1000.0)


@pytest.mark.parametrize("sizes", [(0, 5), (5, 0), (0, 0)])
def test_grids_of_size_zero(sizes):
    x = torch.tensor(1.5, device="cuda")
    assert filled(x, *sizes).shape == sizes
    assert torch.equal(filled(x, 2, 2).cpu(), filled(x.cpu(), 2, 2))


def test_channels_last_results_are_laid_out_as_torch_would():
    @bw.op("bwgpu::copied")
    def copied(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for a, b, c, d in bw.ndrange(x.shape[0], x.shape[1], x.shape[2], x.shape[3]):
            out[a, b, c, d] = x[a, b, c, d]
        return out

    for x in (
        torch.randn(2, 3, 4, 5, device="cuda").to(memory_format=torch.channels_last),
        torch.empty(2, 0, 3, 4, device="cuda").to(memory_format=torch.channels_last),
        torch.randn(2, 1, 3, 1, device="cuda").expand(2, 4, 3, 5),
        torch.randn(4, 6, 5, 8, device="cuda")[..., ::3].permute(2, 0, 3, 1),
    ):
        found = copied(x)
        assert torch.equal(found, x)
        assert found.stride() == torch.empty_like(x).stride()


def test_overlapping_arguments_give_the_sequential_answer():
    x = torch.arange(1000.0).remainder(7)
    (on_gpu,) = moved((x,), "cuda")
    for data in (x, on_gpu):
        copy_scaled(data[:-1], data[1:], by=1.0, shift=1)
        copy_scaled(data[3:], data[:-3], by=0.5)
        copy_scaled(data, data, by=2.0)
    assert torch.equal(on_gpu.cpu(), x)


def test_an_output_that_overlaps_itself_is_refused():
    x = torch.zeros(1, device="cuda").expand(5)
    with pytest.raises(RuntimeError, match="more than one element"):
        scale_(x)
    assert x[0].item() == 0


def test_steps_that_follow_one_another():
    u = torch.randn(5000)
    torch.testing.assert_close(heat(u.cuda(), 50).cpu(), heat(u, 50), rtol=1e-5, atol=1e-6)
    assert torch.equal(heat(u.cuda(), 0).cpu(), u)


def test_out_is_filled_and_its_surroundings_are_not():
    x = torch.randn(1000, device="cuda")
    memory = torch.full((2003,), 9.0, device="cuda")
    out = memory[1:2001:2]
    assert square(x, out=out) is out
    assert torch.equal(out, x * x)
    out.fill_(9.0)
    assert (memory == 9).all()


# ---------------------------------------------------------------- enormous

needs_memory = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_properties(0).total_memory < 24 << 30,
    reason="needs a GPU with 24 gigabytes",
)


@needs_memory
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16])
def test_more_elements_than_31_bits_count(dtype):
    size = 2**31 + 17
    x = torch.zeros(size, dtype=dtype, device="cuda")
    places = torch.tensor([0, 1, 2**31 - 1, 2**31, 2**31 + 16], device="cuda")
    x[places] = torch.tensor([1, 2, 3, 4, 5], dtype=dtype, device="cuda")
    found = shifted(x)
    assert found[places].tolist() == [2, 3, 4, 5, 6]
    assert found[12345].item() == 1
    assert int((found != 1).sum()) == 5


@needs_memory
def test_an_index_times_its_stride_beyond_31_bits():
    step = (1 << 30) + 8
    x = torch.empty(2 * step + 1, dtype=torch.uint8, device="cuda")
    for place in range(3):
        x[place * step] = place + 1
    assert every(x, step).tolist() == [1, 2, 3]
    assert every(x.as_strided((3,), (step,)), 1).tolist() == [1, 2, 3]
    assert torch.equal(square(x.as_strided((3,), (step,))), torch.tensor([1, 4, 9], dtype=torch.uint8, device="cuda"))


# ---------------------------------------------------------------- devices


def test_tensors_on_the_cpu_and_a_gpu_are_not_mixed():
    w, k = torch.randn(2, 4), torch.randn(1, 2, 4)
    message = "Expected all tensors to be on the same device, but found at least two devices"
    for arguments in ((w.cuda(), k, 0.1), (w, k.cuda(), 0.1)):
        with pytest.raises(RuntimeError, match=message):
            timex(*arguments)
    with pytest.raises(RuntimeError, match=message):
        square(torch.randn(4, device="cuda"), out=torch.empty(4))
    torch.testing.assert_close(timex(w.cuda(), k.cuda(), 0.1).cpu(), torch_timex(w, k, 0.1))


@two_gpus
def test_tensors_on_another_gpu_than_the_current_one():
    assert torch.cuda.current_device() == 0
    x = torch.randn(1000)
    for device in ("cuda:1", "cuda:0", "cuda:1"):
        there = x.to(device)
        found = square(there)
        assert found.device == torch.device(device)
        assert torch.equal(found.cpu(), x * x)
        heat(there, 3)
        assert torch.cuda.current_device() == 0


@two_gpus
def test_random_numbers_come_from_the_generator_of_the_tensors_device():
    there = torch.zeros(100, device="cuda:1")
    torch.cuda.manual_seed_all(4)
    first_state = torch.cuda.get_rng_state(0)
    first = noise(there, 1.0)
    assert torch.equal(torch.cuda.get_rng_state(0), first_state)
    torch.cuda.manual_seed_all(4)
    assert torch.equal(noise(there, 1.0), first)


@two_gpus
def test_tensors_on_two_gpus_are_not_mixed():
    w, k = torch.randn(2, 4, device="cuda:0"), torch.randn(1, 2, 4, device="cuda:1")
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        timex(w, k, 0.1)


@two_gpus
def test_the_current_stream_of_the_tensors_device_is_taken():
    x = torch.randn(1 << 20, device="cuda:1")
    stream = torch.cuda.Stream(device="cuda:1")
    stream.wait_stream(torch.cuda.current_stream(x.device))
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        y = x * 2
        found = square(y)
    stream.synchronize()
    assert torch.equal(found, 4 * x * x)
