"""Operators made of CUDA C++ and of launchers: what is refused without a GPU, and that they are right on one."""

import copy
import ctypes
import pickle
import struct
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from brickwork.diagnostics.location import NOWHERE
from brickwork.host.driver import INVALID_CONTEXT, Resources
from brickwork.pytorch.launchers import cuda_source, triton_launcher
from brickwork.pytorch.launchers.packing import packing
from brickwork.runtime.cuda_parameters import Parameter
from brickwork.runtime.cuda_toolkit import header_folder
from support.cuda_operators import SOURCE, add_, differentiable, scale, timex, written
from support.gpu import GPU, two_gpus

ONE = "__global__ void one(float* x) { x[0] = 1; }"


def on_gpu(test):
    for mark in GPU:
        test = mark(test)
    return test


def op(schema, **more):
    given = {"source": ONE, "entry": "one", "launch": lambda: bw.Launch(1, 1), "out": lambda: torch.empty(3)} | more
    return bw.cuda_op(schema, **given)


# ---------------------------------------------------------------- definition


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("bwcuda::bad", "a schema is"),
        ("bad(Tensor x) -> Tensor", 'an operator is named "namespace::name"'),
        ("bwcuda::bad(Tenser x) -> Tensor", "the schema of bwcuda::bad cannot be read"),
        ("bwcuda::bad(Tensor(a!) x) -> Tensor(a!)", "cannot return an argument"),
        ("bwcuda::bad(Tensor x) -> int", "can return tensors only"),
        ("bwcuda::bad(Tensor out) -> Tensor", "a result has the name of an argument"),
        ("bwcuda::class(Tensor x) -> Tensor", "has a meaning of its own"),
    ],
)
def test_schemas_that_are_refused(schema, message):
    with pytest.raises(ValueError, match=message):
        op(schema)


def test_functions_name_what_they_get():
    for more in ({"launch": lambda y: None}, {"out": lambda out: out}, {"entry": "one<{y}>"}):
        with pytest.raises(CompileError) as caught:
            op("bwcuda::named(Tensor x) -> Tensor", **more)
        assert caught.value.diagnostics[0].code == "BW304"


def test_what_must_be_said():
    with pytest.raises(ValueError, match="say `out=`"):
        op("bwcuda::said(Tensor x) -> Tensor", out=None)
    with pytest.raises(ValueError, match="has no tensor 'y'"):
        op("bwcuda::said(Tensor x) -> Tensor", contiguous=["y"])
    with pytest.raises(ValueError, match="has no tensor argument 'y'"):
        op("bwcuda::said(Tensor x) -> Tensor", dtypes={"y": torch.float32})


def test_integers_are_symbolic_in_the_schema():
    operator = op("bwcuda::symbolic(Tensor x, int n, int[2] sizes=[1, 2]) -> (Tensor y, Tensor)", out=lambda: None)
    assert str(torch.ops.bwcuda.symbolic.default._schema).count("SymInt") == 2
    assert operator.declared.names == ("x", "n", "sizes", "y", "out1")


# ---------------------------------------------------------------- without a GPU


def test_fakes_are_what_the_host_function_makes():
    with FakeTensorMode():
        result = scale(torch.empty(2, 3, device="cuda", dtype=torch.float64), 2.0)
        assert (result.shape, result.dtype, result.device.type) == ((2, 3), torch.float64, "cuda")
        assert add_(torch.empty(3, device="cuda")) is None
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            timex(torch.empty(3, 4, device="cuda"), torch.empty(2, 3, 4), 0.1)


def test_a_host_function_that_makes_the_wrong_thing():
    wrong = op("bwcuda::wrong(Tensor x) -> Tensor", out=lambda x: 1)
    same = op("bwcuda::same(Tensor x) -> Tensor", out=lambda x: x)
    with FakeTensorMode():
        x = torch.empty(3, device="cuda")
        with pytest.raises(TypeError, match="must make 1 tensors, but it made: int"):
            wrong(x)
        with pytest.raises(RuntimeError, match="`out` gave an argument back"):
            same(x)


def test_tensors_that_are_not_on_a_gpu():
    with pytest.raises(RuntimeError, match="argument 'x' must be on an NVIDIA GPU, but it is on cpu"):
        scale(torch.ones(3), 2.0)


def test_operators_pickle_and_copy_by_name():
    assert pickle.loads(pickle.dumps(scale)) is scale
    assert copy.deepcopy(scale) is scale
    assert (scale.__name__, scale.__module__) == ("scale", "support.cuda_operators")
    assert repr(scale) == "<brickwork operator bwcuda::scale(Tensor x, float factor) -> Tensor>"


def test_code_is_made_and_checked_without_a_gpu():
    x = torch.ones(3, dtype=torch.float16)
    assert scale.inspect("parameters", x.double(), 2.0, device="sm_90").startswith("const double*, double*, double")
    assert ".entry timex" in timex.inspect("ptx", torch.ones(3, 4), torch.ones(2, 3, 4), 0.1, device="sm_80")
    with pytest.raises(ValueError, match="there is no stage 'x'; there are: ptx, sass, parameters, log"):
        timex.inspect("x")
    with pytest.raises(
        RuntimeError, match=r"argument 'w' is of torch.float64, but parameter 1 of `timex` is `const float\*`"
    ):
        timex.warmup(torch.ones(3, 4).double(), torch.ones(2, 3, 4), 0.1, device="sm_90")


FILES = Path(__file__).parents[1] / "support" / "cuda_files"


@pytest.mark.skipif(header_folder("curand_kernel.h") is None, reason="needs curand_kernel.h: install nvidia-curand")
def test_a_file_of_an_extension_is_taken_as_it_is():
    samples = bw.cuda_op(
        "bwcuda::samples(Tensor mu, Tensor sigma, int n, int seed) -> Tensor",
        source=FILES / "sample.cu",
        entry="sample_normal_kernel",
        launch=lambda mu, sigma, n, seed, out: bw.Launch(1, 256, args=(mu, sigma, out, mu.shape[0], n, seed)),
        out=lambda mu, n: mu.new_empty(mu.shape[0], n),
        flags=["-O3", "--use_fast_math"],
    )
    column = torch.zeros(5, 1)
    samples.warmup(column, column, 7, 1, device="sm_90")
    assert "lines 28 to 37: `sample_normal_cuda` is code for the host, and skipped" in samples.inspect("log")


def test_flags_that_cannot_be_heeded_are_refused():
    with pytest.raises(ValueError, match=r"bwcuda::linked: the flag `-rdc=true`: there is no device linker here"):
        op("bwcuda::linked(Tensor x) -> Tensor", flags=["-O3", "-rdc=true"])


TAKES = "__global__ void takes(float* x, int n, double f, unsigned char* mask, float4 wide, short s) {}"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((None, 1, 1.0, None, bytes(16)), "takes 6 parameters"),
        (
            (1, 1, 1.0, None, bytes(16), 1),
            r"parameter 1 of `takes` is `float\*`, but the kernel's argument 1 is of type int",
        ),
        ((None, 1.5, 1.0, None, bytes(16), 1), "parameter 2 of `takes` is `int`"),
        ((None, 1, None, None, bytes(16), 1), "parameter 3 of `takes` is `double`, but .* is of type NoneType"),
        ((None, 1, 1, None, 3, 1), "parameter 5 of `takes` is `a type of 16 bytes`"),
        ((None, True, 1, None, bytes(16), torch.ones(1)), "parameter 6 of `takes` is `short`, but .* is a tensor"),
    ],
)
def test_what_a_kernel_does_not_take(args, message):
    takes = op("bwcuda::takes(Tensor x) -> ()", source=TAKES, entry="takes", launch=lambda: bw.Launch(1, 1, args=args))
    with pytest.raises(CompileError, match=message):
        takes.warmup(torch.ones(3), device="sm_90")


def test_integers_of_one_size_are_taken_for_each_other():
    for dtype in (torch.bool, torch.int8, torch.uint8):
        mask = torch.ones(3, dtype=dtype)
        launch = lambda mask: bw.Launch(1, 1, args=(None, 1, 1, mask, bytes(16), 1))  # noqa: E731
        takes = op("bwcuda::bytes(Tensor mask) -> ()", source=TAKES, entry="takes", launch=launch)
        takes.warmup(mask, device="sm_90")


def test_arguments_are_packed_as_the_kernel_lays_them_out():
    taken = [
        Parameter("bool", pointer=False, const=False, size=1, alignment=1),
        Parameter("float32", pointer=True, const=True, size=8, alignment=8),
        Parameter("bfloat16", pointer=False, const=False, size=2, alignment=2),
        Parameter("", pointer=False, const=False, size=12, alignment=4),
        Parameter("float64", pointer=True, const=False, size=8, alignment=8),
        Parameter("float16", pointer=False, const=False, size=2, alignment=2),
        Parameter("int8", pointer=False, const=False, size=1, alignment=1),
    ]
    kinds = (bool, torch.float32, float, bytes, type(None), float, int)
    found = packing("ns::name", "kernel", NOWHERE, taken, kinds, ["argument"] * 7)
    buffer = found.fill([True, 0x1234, 1.00390625, b"abcdefghijkl", None, 1.5, -1], pytest.fail)
    data = bytes(buffer.memory)
    assert data == struct.pack("<?7xQH2x12sQeb", True, 0x1234, 0x3F80, b"abcdefghijkl", 0, 1.5, -1)
    found.give_back(buffer)
    assert found.fill([True, 1, float("nan"), bytes(12), None, 1.0, 0], pytest.fail) is buffer
    assert bytes(buffer.memory)[16:18] == b"\xc0\x7f"
    assert [buffer.table[place] for place in (0, 2, 4)] == [1, 2, None]
    with pytest.raises(OverflowError):
        found.fill([True, 1, 1.0, bytes(12), None, 1.0, 128], overflown)


def overflown(error):
    raise OverflowError(str(error))


class Played:
    """A driver that notes launches; tensors on the CPU stand for those on the GPU that is numbered -1."""

    def __init__(self):
        self.launches, self.current, self.bound, self.answers = [], -1, True, []
        self.contexts = []

    def launch(self, function, *geometry):
        *numbers, stream, none, table = geometry
        assert (function, stream, none) == (7, 50, None)
        assert [table[place] for place in (0, 2, 4)] == [1, 2, None]
        size = ctypes.c_size_t.from_address(table[3]).value
        self.launches.append((*numbers, ctypes.string_at(table[1], size)))
        return self.answers.pop() if self.answers else 0

    @contextmanager
    def using(self, context):
        self.contexts.append(context)
        yield

    def most_shared_bytes(self, device):
        return 1 << 16

    def allow_shared(self, function, size):
        self.launches.append(("shared", size))

    def resources(self, function):
        return Resources(registers=255, local_bytes=0, shared_bytes=0, constant_bytes=0, threads=128)


@pytest.fixture
def played(monkeypatch):
    """Have `scale` and `timex` compiled, and loaded by a driver that is played."""
    driver = Played()
    monkeypatch.setattr(cuda_source, "driver", lambda: driver)
    real = cuda_source.libtorch.private
    fakes = {"_C._cuda_getCurrentRawStream": lambda _: 50, "_C._cuda_getDevice": lambda: driver.current}
    monkeypatch.setattr(cuda_source.libtorch, "private", lambda path: fakes.get(path) or real(path))
    for operator in (scale, timex):
        monkeypatch.setattr(operator, "_kernels", {})
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "a GPU")

        def load(values, index, operator=operator):
            loaded = cuda_source._Loaded(operator._compiled(values, (9, 0)), 7, 0xC0)
            return operator._kernels.setdefault((index, *[values[at].dtype for at in operator._typed]), loaded)

        monkeypatch.setattr(operator, "_load", load)
    return driver


def test_a_launch_as_the_driver_sees_it(played):
    x, out = torch.ones(1000), torch.empty(1000)
    scale._start((x, 2.0), (out,), -1)
    packed = struct.pack("<QQdq", x.data_ptr(), out.data_ptr(), 2.0, 1000)
    assert played.launches == [(4, 1, 1, 256, 1, 1, 0, packed)]
    played.current = 3
    scale._start((x[:0], 2.0), (out[:0],), -1)
    scale._start((x[:1], 2.0), (out[:1],), -1)
    assert (len(played.launches), played.contexts) == (2, [0xC0])
    played.current, played.answers = -1, [INVALID_CONTEXT]
    scale._start((x, 2.0), (out,), -1)
    assert (len(played.launches), len(played.contexts)) == (4, 2)


def test_shared_memory_is_asked_for_once(played):
    w, k = torch.ones(1, 15000), torch.ones(1, 1, 15000)
    for _ in range(2):
        timex._start((w, k, 0.5), (k,), -1)
    assert [each[0] for each in played.launches] == ["shared", 1, 1]
    assert played.launches[1][6] == 60000
    w, k = torch.ones(1, 20000), torch.ones(1, 1, 20000)
    with pytest.raises(bw.DeviceError, match=r"asks for 80000 bytes .*, and 65536 is the most"):
        timex._start((w, k, 0.5), (k,), -1)


def test_a_launch_that_the_driver_refuses_is_explained(played):
    played.answers = [1]
    with pytest.raises(
        bw.DeviceError, match="can have 128 threads, as each takes 255 registers, and it was launched with"
    ):
        scale._start((torch.ones(3), 2.0), (torch.empty(3),), -1)


# ---------------------------------------------------------------- on a GPU


@on_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8])
def test_a_template_is_made_for_each_element_type(dtype):
    x = torch.arange(1000, device="cuda").to(dtype)
    assert torch.equal(scale(x, 2.0), (x.double() * 2.0).to(dtype))


@on_gpu
@pytest.mark.parametrize("t", [1, 31, 768, 20000])
def test_shared_memory_beyond_the_usual_limit(t):
    w, k = torch.randn(2, t, device="cuda"), torch.randn(2, 2, t, device="cuda")
    found = timex(w, k, 0.5)
    padded = torch.nn.functional.pad(k.double(), (t - 1, 0))
    expected = torch.nn.functional.conv1d(padded, w.double()[:, None], groups=2) + 0.5
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-3)


@on_gpu
def test_more_shared_memory_than_a_block_can_have():
    with pytest.raises(bw.DeviceError, match="is the most that one can have"):
        timex(torch.ones(1, 100_000, device="cuda"), torch.ones(1, 1, 100_000, device="cuda"), 0.0)


@on_gpu
def test_arguments_are_written_and_their_versions_go_up():
    x, bias = torch.zeros(1000, device="cuda"), torch.ones(1000, device="cuda")
    before = x._version
    assert add_(x) is None
    add_(x, bias)
    add_(x, bias, True)
    assert torch.equal(x, torch.full_like(x, 3))
    assert x._version == before + 3
    strided = op("bwcuda::strided(Tensor(a!) x) -> ()", contiguous=False, launch=lambda: bw.Launch(1, 1))
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        strided(torch.zeros(1, device="cuda").expand(3))


@on_gpu
def test_empty_tensors_launch_nothing():
    assert scale(torch.empty(0, 3, device="cuda"), 1.0).shape == (0, 3)


@on_gpu
def test_what_is_refused():
    x = torch.ones(4, 4, device="cuda")
    with pytest.raises(
        RuntimeError, match="Expected all tensors to be on the same device, but found at least two devices"
    ):
        timex(x, torch.ones(2, 4, 4), 0.1)
    with pytest.raises(RuntimeError, match=r"argument 'x' must be contiguous, .* pass `x.contiguous\(\)`"):
        scale(x.t(), 1.0)
    with pytest.raises(RuntimeError, match=r"argument 'k' is of torch.float64, but parameter 2"):
        timex(x, torch.ones(2, 4, 4, device="cuda").double(), 0.1)
    with pytest.raises(NotImplementedError, match="has no gradient"):
        scale(x.requires_grad_(), 1.0)


@on_gpu
def test_geometry_that_is_refused():
    def launching(launch):
        return op("bwcuda::geometry(Tensor(a!) x) -> ()", launch=launch)

    x = torch.zeros(3, device="cuda")
    launching(lambda: bw.Launch((1, 1), [1, 1, 1]))(x)
    assert x[0] == 1
    with pytest.raises(TypeError, match=r"`launch` returns a bw.Launch, but it returned tuple"):
        launching(lambda: (1, 1))(x)
    with pytest.raises(TypeError, match=r"one to three whole numbers, not 1\.5"):
        launching(lambda: bw.Launch(1.5, 1))(x)
    with pytest.raises(ValueError, match="a block 1 to 1024 threads"):
        launching(lambda: bw.Launch(1, 2048))(x)
    with pytest.raises(ValueError, match="a grid has up to"):
        launching(lambda: bw.Launch((1, 1 << 16), 1))(x)
    heavy = "__global__ void __launch_bounds__(64) one(float* x) { x[0] = 1; }"
    with pytest.raises(bw.DeviceError, match="can have 64 threads"):
        op("bwcuda::heavy(Tensor(a!) x) -> ()", source=heavy, launch=lambda: bw.Launch(1, 128))(x)


@on_gpu
def test_lists_are_checked_item_by_item():
    source = "__global__ void first(float* x, const float* y) { x[0] = y[0]; }"
    first = op(
        "bwcuda::first(Tensor(a!) x, Tensor[] items) -> ()",
        source=source,
        entry="first",
        launch=lambda x, items: bw.Launch(1, 1, args=(x, items[1])),
        dtypes={"items": torch.float32},
    )
    x, y = torch.zeros(3, device="cuda"), torch.ones(3, 4, device="cuda")
    first(x, [x, y])
    assert x[0] == 1
    for items, message in (
        ([x, y.t()], r"argument 'items\[1\]' must be contiguous"),
        ([x.double(), y], r"argument 'items\[0\]' must be of torch.float32"),
        ([x, y.cpu()], "at least two devices"),
    ):
        with pytest.raises(RuntimeError, match=message):
            first(x, items)


@on_gpu
def test_a_number_that_a_parameter_cannot_hold():
    x = torch.zeros(3, device="cuda")
    source = "__global__ void one(float* x, int n) {}"
    large = op("bwcuda::large(Tensor(a!) x, int n) -> ()", source=source, launch=lambda: bw.Launch(1, 1))
    large(x, 3)
    with pytest.raises(OverflowError, match="too large for the kernel's parameter"):
        large(x, 1 << 40)


@on_gpu
def test_another_stream_and_a_graph():
    x = torch.arange(100.0, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        result = scale(x, 3.0)
    stream.synchronize()
    assert torch.equal(result, 3 * x)
    fresh = bw.cuda_op(
        "bwcuda::fresh(Tensor x, float factor) -> Tensor",
        source=SOURCE,
        entry="scale<{x}>",
        launch=lambda x, factor, out: bw.Launch(1, 256, args=(x, out, factor, x.numel())),
        out=torch.empty_like,
    )
    fresh.warmup(x, 1.0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = fresh(x, 2.0)
    x += 1
    graph.replay()
    assert torch.equal(result, 2 * x)


@on_gpu
def test_threads():
    x = torch.arange(1000.0, device="cuda")
    found = {}

    def work(number):
        for _ in range(50):
            found[number] = scale(x, float(number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(torch.equal(found[number], number * x) for number in range(8))


@on_gpu
def test_opcheck():
    scale.check(torch.randn(3, 4, device="cuda"), 2.0)
    timex.check(torch.randn(3, 8, device="cuda"), torch.randn(2, 3, 8, device="cuda"), 0.1)
    add_.check(torch.randn(8, device="cuda"), torch.randn(8, device="cuda"), True)


@on_gpu
def test_compiled_graphs():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, f: scale(x, f) + 1, fullgraph=True, dynamic=True, backend="aot_eager")
    for size in (2, 3, 300, 4000):
        x = torch.randn(size, device="cuda")
        torch.testing.assert_close(compiled(x, 2.0), 2 * x + 1)


@on_gpu
@pytest.mark.filterwarnings("error")
def test_vmap():
    x = torch.randn(3, 5, device="cuda")
    torch.testing.assert_close(torch.vmap(lambda row: scale(row, 2.0))(x), 2 * x)
    torch.testing.assert_close(torch.vmap(lambda row: scale(row, 2.0), in_dims=1)(x), 2 * x.t())
    nested = torch.vmap(torch.vmap(lambda row: scale(row, 2.0)), in_dims=2, out_dims=2)
    torch.testing.assert_close(nested(x[None]), 2 * x[None])


@on_gpu
def test_gradients():
    x = torch.randn(3, 5, device="cuda", dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: differentiable(x, 3.0), (x,))
    assert torch.autograd.gradgradcheck(lambda x: differentiable(x, 3.0), (x,))
    found = torch.func.vmap(torch.func.grad(lambda row: (differentiable(row, 3.0) ** 2).sum()))(x.detach())
    torch.testing.assert_close(found, 18 * x.detach())
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: differentiable(x, 3.0).sin(), fullgraph=True, backend="aot_eager")
    (found,) = torch.autograd.grad(compiled(x).sum(), x)
    torch.testing.assert_close(found, 3 * (3 * x).cos())
    with pytest.raises(NotImplementedError, match="has no forward mode"):
        torch.func.jvp(lambda x: differentiable(x, 3.0), (x.detach(),), (x.detach(),))
    differentiable.check(x, 3.0)


@on_gpu
def test_gradients_of_what_is_written():
    x, bias = torch.randn(5, device="cuda"), torch.randn(5, device="cuda", requires_grad=True)
    y = x.clone()
    written(y, bias)
    (found,) = torch.autograd.grad(y.sum(), bias)
    assert torch.equal(found, torch.ones(5, device="cuda"))


def test_a_launcher_on_the_cpu_under_tritons_interpreter(monkeypatch):
    def launcher(x, out):
        torch.mul(x, 2, out=out)

    operator = bw.triton_op(
        "bwcuda::interpreted(Tensor x, Tensor[] more) -> Tensor", launcher, out=torch.empty_like, contiguous=True
    )
    x = torch.randn(3, 4)
    with pytest.raises(RuntimeError, match=r"must be on an NVIDIA GPU, but it is on cpu; .*TRITON_INTERPRET=1"):
        operator(x, [x])
    triton = SimpleNamespace(knobs=SimpleNamespace(runtime=SimpleNamespace(interpret=False)))
    monkeypatch.setitem(sys.modules, "triton", triton)
    with pytest.raises(RuntimeError, match="TRITON_INTERPRET=1"):
        operator(x, [x])
    triton.knobs.runtime.interpret = True
    assert torch.equal(operator(x, [x]), 2 * x)
    monkeypatch.delitem(sys.modules, "triton")
    monkeypatch.setattr(triton_launcher, "_interprets", lambda: True)
    operator.check(x, [x])
    assert torch.equal(torch.vmap(lambda row: operator(row, [row]), in_dims=1, out_dims=1)(x), 2 * x)
    with pytest.raises(RuntimeError, match=r"argument 'x' must be contiguous"):
        operator(x.t(), [x])
    wrong = bw.triton_op("bwcuda::away(Tensor x) -> Tensor", launcher, out=lambda x: torch.empty(3, device="meta"))
    with pytest.raises(RuntimeError, match=r"result 'out' is on meta, and the arguments are on cpu"):
        wrong(x)
    with pytest.raises(RuntimeError, match=r"argument 'x' must be on an NVIDIA GPU, but it is on cpu$"):
        scale(x, 2.0)


@on_gpu
def test_a_launcher_of_triton():
    pytest.importorskip("triton")
    from support.triton_kernels import launcher

    operator = bw.triton_op("bwcuda::twice(Tensor x) -> Tensor", launcher, out=torch.empty_like, contiguous=True)
    x = torch.randn(1000, device="cuda")
    assert torch.equal(operator(x), 2 * x)
    operator.check(x)
    with pytest.raises(RuntimeError, match="must be contiguous"):
        operator(torch.ones(3, 4, device="cuda").t())


@on_gpu
def test_any_launcher():
    def launcher(x, out):
        torch.mul(x, 2, out=out)

    operator = bw.triton_op("bwcuda::doubled(Tensor x) -> Tensor", launcher, out=torch.empty_like)
    x = torch.randn(10, 10, device="cuda")
    assert torch.equal(operator(x.t()), 2 * x.t())
    wrong = bw.triton_op("bwcuda::returning(Tensor x) -> Tensor", lambda x: x, out=torch.empty_like)
    with pytest.raises(TypeError, match="returns nothing"):
        wrong(x)


@on_gpu
@two_gpus
def test_each_gpu_has_its_own():
    for device in ("cuda:1", "cuda:0"):
        x = torch.arange(100.0, device=device)
        result = scale(x, 2.0)
        assert result.device == torch.device(device)
        assert torch.equal(result, 2 * x)
    with pytest.raises(RuntimeError, match=r"cuda:0 and cuda:1|cuda:1 and cuda:0"):
        timex(torch.ones(4, 4, device="cuda:0"), torch.ones(2, 4, 4, device="cuda:1"), 0.1)
