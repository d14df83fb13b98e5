"""What Python does for tensors on GPUs, as far as it can be seen without one: places, stages, readiness, failures."""

import ctypes
import os

import pytest
import torch
from torch._subclasses import FakeTensorMode

import brickwork as bw
from brickwork import ops
from brickwork.codegen.builder import FailureSite
from brickwork.codegen.convention import RECORD_FAILED, RECORD_LOCK, RECORD_OWNER, RECORD_SITE, RECORD_WORDS
from brickwork.codegen.entry_description import EntryDescription
from brickwork.codegen.support import CUDA_ALLOCATE, CUDA_DRAW
from brickwork.diagnostics.location import NOWHERE
from brickwork.host.driver import Driver
from brickwork.ir.nodes import Failure, FailureKind
from brickwork.ir.signature import Signature
from brickwork.pytorch import devices as room
from brickwork.pytorch import specialise
from brickwork.pytorch.arguments import signature_of_call
from brickwork.pytorch.devices import Devices, check_errors, driver_error, out_of_memory, refuse_capture
from brickwork.pytorch.gate import ArgumentKind
from brickwork.pytorch.specialise import Place, Specialiser, place_named
from brickwork.runtime import cache, kernels_ahead
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.compile import Compilation
from brickwork.runtime.cuda_toolkit import find_libdevice, find_tool
from brickwork.runtime.kernel_texts import joined
from brickwork.target.cuda import cuda_target
from brickwork.transform.explanation import Explanation
from support.fake_driver import FakeLibrary
from support.operators import noise, scale_, square

NO_LIBDEVICE = "needs libdevice: install triton or nvidia-nvvm"


def has_libdevice():
    try:
        find_libdevice()
    except bw.DeviceError:
        return False
    return True


@pytest.fixture
def two(monkeypatch):
    """A process with two GPUs of one kind and one of another, none of them ready."""
    library = FakeLibrary(capabilities=((9, 0), (9, 0), (8, 6)))
    nvidia, found = Driver(library), Devices()
    monkeypatch.setattr(room, "driver", lambda: nvidia)
    monkeypatch.setattr(room, "devices", lambda: found)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda index: None)
    return library, found


def artifact():
    """An artifact of two kernels, whose PTX stands in for what would be compiled."""
    stages = {"ptx": joined({"first": ".target sm_90", "second": ".target sm_90"}, "//")}
    keys = {"first": cache.key_of(("first",)), "second": cache.key_of(("second",))}
    return Artifact(
        b"", EntryDescription("ns::op", "entry", ()), Explanation(), stages, kernels=keys, architecture="sm_90"
    )


def test_a_gpu_is_made_ready_when_it_is_first_needed(two):
    library, found = two
    assert not any(found.table)
    gpu = found.ready(1)
    assert (gpu.name, gpu.capability) == ("GPU 1", (9, 0))
    assert list(found.table[:7]) == [3, 0, 0, 90, 0x1001, 0, 0]
    assert found.record
    record = found.record
    found.ready(2)
    assert list(found.table[:7]) == [3, 0, 0, 90, 0x1001, 86, 0x1002]
    assert (found.record, library.contexts) == (record, [])


def test_a_kernel_is_loaded_when_it_is_asked_for_where_it_can_run(two):
    library, found = two
    found.ready(2)
    symbols = found.link(artifact(), 0)
    cells = [ctypes.c_uint64.from_address(symbols[f"bw_kernel_{number}"]) for number in range(2)]
    assert symbols["bw_record"] == found.record
    assert ctypes.c_uint64.from_address(symbols["bw_record_device"]).value == found.record
    assert [cell.value for cell in cells] == [0, 0]
    assert library.functions == []
    found.load_for_launch(symbols["bw_kernel_1"], 5, "ns::op")
    assert cells[0].value == 0
    assert library.functions == [(0x1000, cells[1].value)]
    found.load_for_launch(symbols["bw_kernel_1"], 5, "ns::op")
    found.ready(1)
    assert library.functions == [(0x1000, cells[1].value), (0x1001, cells[1].value)]


def test_all_kernels_of_an_artifact_are_loaded_together(two):
    library, found = two
    made = artifact()
    symbols, others = found.link(made, 0), found.link(artifact(), 0)
    found.load_all(made)
    cells = [ctypes.c_uint64.from_address(each[f"bw_kernel_{n}"]).value for each in (symbols, others) for n in range(2)]
    assert [bool(cell) for cell in cells] == [True, True, False, False]
    found.load_all(made)
    assert len(library.loaded) == 2


def test_nothing_is_loaded_while_a_graph_is_captured(two):
    library, found = two
    library.capturing.add(5)
    cell = found.link(artifact(), 0)["bw_kernel_0"]
    with pytest.raises(RuntimeError, match=r"ns::op is not ready .* call op\.warmup\(\.\.\.\)"):
        found.load_for_launch(cell, 5, "ns::op")
    found.load_for_launch(cell, 6, "ns::op")
    assert len(library.loaded) == 1


def test_a_gpu_that_is_too_old_is_told(two, monkeypatch):
    library, found = two
    monkeypatch.setattr(library, "capabilities", ((7, 0),))
    with pytest.raises(bw.DeviceError, match=r"GPU 0 has compute capability 7\.0, and brickwork needs 7\.5 or later"):
        found.ready(0)
    assert not any(found.table)


def fail(found, message, kind=FailureKind.INDEX, owner=99):
    words = (ctypes.c_uint64 * RECORD_WORDS).from_address(found.record)
    site = FailureSite(Failure(kind, message), (), NOWHERE)
    found.owners[99] = EntryDescription("ns::op", "entry", (site,))
    words[RECORD_LOCK], words[RECORD_SITE], words[RECORD_OWNER] = 1, 0, owner
    words[RECORD_FAILED] = 1
    return words


def test_a_failure_is_raised_once_and_the_record_is_given_back(two):
    _, found = two
    assert check_errors() is None
    found.ready(0)
    assert check_errors() is None
    words = fail(found, "index 7 is out of bounds")
    with pytest.raises(IndexError, match=r"index 7 is out of bounds \(ns::op\).*earlier launch"):
        check_errors()
    assert (words[RECORD_FAILED], words[RECORD_LOCK]) == (0, 0)
    assert check_errors() is None
    fail(found, "no", FailureKind.ASSERTION)
    assert type(found.take_failure()) is AssertionError
    assert found.take_failure() is None


def test_a_failure_of_nobody_is_told_too(two):
    _, found = two
    found.ready(0)
    fail(found, "x", owner=5)
    with pytest.raises(bw.InternalError, match="belongs to no operator"):
        check_errors()
    assert check_errors() is None


def test_in_a_forked_child_the_record_is_the_parents(two, monkeypatch):
    def refuse():
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess.")

    _, found = two
    found.ready(0)
    words = fail(found, "index 7 is out of bounds")
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        child.setattr(torch.cuda, "init", refuse)
        assert found.take_failure() is None
        assert words[RECORD_FAILED] == 1
        with pytest.raises(RuntimeError, match="forked subprocess"):
            found.ready(0)
    with pytest.raises(IndexError):
        check_errors()


@pytest.mark.usefixtures("two")
def test_what_the_driver_refuses_becomes_an_error():
    assert type(driver_error("ns::op", CUDA_ALLOCATE)) is torch.OutOfMemoryError
    assert type(out_of_memory(MemoryError("400 bytes"))) is torch.OutOfMemoryError
    assert "random key" in str(driver_error("ns::op", CUDA_DRAW))
    said = str(driver_error("ns::op", 222))
    assert said.startswith("CUDA error: ")
    assert "UNSUPPORTED_PTX" in said
    assert "ns::op" in said


@pytest.mark.usefixtures("two")
def test_in_a_forked_child_torchs_own_error_is_told(monkeypatch):
    def refuse():
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess.")

    monkeypatch.setattr(torch.cuda, "init", refuse)
    assert "forked subprocess" in str(driver_error("ns::op", 3))
    assert "forked subprocess" in str(out_of_memory(MemoryError()))
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert check_errors() is None


def test_a_cold_call_in_a_capture_names_the_operator_and_warmup(monkeypatch):
    class Device:
        def __init__(self, index):
            assert index == 1

        def __enter__(self):
            return None

        def __exit__(self, *rest):
            return None

    monkeypatch.setattr(torch.cuda, "device", Device)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    refuse_capture("ns::op", 1)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(RuntimeError, match=r"ns::op is not ready .*cuda:1.*op\.warmup\(\.\.\.\)"):
        refuse_capture("ns::op", 1)


@bw.op
def spread(x: torch.Tensor, factor: int, start: int):
    for i in range(x.shape[0]):
        x[(i * factor + start) % x.shape[0]] = 1.0


# ---------------------------------------------------------------- signatures and places


def signature(operator, *values, kinds=(ArgumentKind.TENSOR,), device="cuda"):
    return signature_of_call(operator.definition, kinds, values, device)


def test_signatures_for_gpus_say_whether_calls_are_narrow_and_aligned():
    x = torch.zeros(64)
    assert (signature(square, x).narrow, signature(square, x).aligned) == (True, True)
    assert signature(square, x).device == "cuda"
    assert not signature(square, x[1:]).aligned
    on_cpu = signature(square, x, device=None)
    assert (on_cpu.device, on_cpu.narrow, on_cpu.aligned) == ("cpu", False, False)
    wide = torch.empty(1, device="meta").expand(1 << 29)
    assert not signature(square, wide).narrow


def test_small_rates_are_a_part_of_signatures_for_gpus():
    kinds = (ArgumentKind.TENSOR, ArgumentKind.INT, ArgumentKind.INT)
    x = torch.zeros(8)

    def told(factor, start, **place):
        return [each.value for each in signature(spread, x, factor, start, kinds=kinds, **place).arguments[1:]]

    assert [told(factor, 3) for factor in (-1, 0, 1, 8, 9)] == [[None, None]] * 2 + [[1, None], [8, None], [None, None]]
    assert told(2, 3, device="cpu") == [None, None]


def test_large_integers_make_a_call_wide():
    kinds = (ArgumentKind.TENSOR, ArgumentKind.INT)
    assert signature(scale_, torch.zeros(3), (1 << 28) - 1, kinds=kinds).narrow
    assert not signature(scale_, torch.zeros(3), 1 << 28, kinds=kinds).narrow


def test_places_are_devices_or_architectures():
    assert place_named("cpu").kind == "cpu"
    place = place_named("sm_90")
    assert (place.gpu, place.here, place.kind) == (cuda_target((9, 0)), False, "cuda")
    assert place_named("sm_120").gpu == cuda_target((12, 0))
    with pytest.raises(bw.DeviceError, match="sm_75 or later"):
        place_named("sm_70")
    with pytest.raises(ValueError, match="for cpu and cuda, not for mps"):
        place_named("mps")


def test_an_operator_without_tensors_stays_on_the_cpu():
    @bw.op("bwdevices::countdown")
    def countdown(n: int) -> torch.Tensor:
        out = torch.empty(n)
        for i in range(n):
            out[i] = n - i
        return out

    countdown.warmup(3, device="sm_90")
    (made,) = countdown.stats().specialisations
    assert "cuda" not in made.signature
    assert countdown(3).tolist() == [3, 2, 1]
    assert len(countdown.stats().specialisations) == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_a_gpu_that_is_not_here_is_told():
    with pytest.raises(bw.DeviceError, match=r"no GPU here .*'sm_90'"):
        square.warmup(torch.empty(8, device="meta"), device="cuda")


def test_fake_tensors_on_two_devices_are_refused_in_torchs_words():
    with FakeTensorMode():
        x, out = torch.empty(4, device="cuda"), torch.empty(4)
        with pytest.raises(RuntimeError, match="on the same device, but found at least two devices"):
            square(x, out=out)


def test_fakes_allocate_where_the_arguments_are():
    with FakeTensorMode():
        x = torch.empty(4, device="cuda")
        assert square(x).device.type == "cuda"
        assert noise(x, 1.0).device.type == "cuda"


# ---------------------------------------------------------------- stages


@pytest.mark.skipif(not has_libdevice(), reason=NO_LIBDEVICE)
def test_operators_are_made_for_gpus_that_are_not_here():
    sine, x = bw.op("elsewhere::sine")(ops.sin.__wrapped__), torch.empty(8, 8, device="meta")
    sine.warmup(x, device="sm_86")
    said = sine.inspect("ptx", x, device="sm_86")
    assert ".target sm_86" in said
    assert ".visible .entry sin" in said
    assert "role=parallel, width=4" in sine.inspect("schedule", x, device="sm_86")
    assert "on cuda narrow aligned" in sine.explain(x, device="sm_86")
    assert sine.inspect("ptx", x, device="sm_86") == said
    assert len(sine.stats().specialisations) == 1
    assert torch.equal(sine(torch.zeros(2, 2)), torch.zeros(2, 2))


@pytest.mark.skipif(not has_libdevice(), reason=NO_LIBDEVICE)
def test_what_kernels_take_is_told_by_the_assembler():
    x = torch.empty(8, 8, device="meta")
    if find_tool("ptxas") is None:
        with pytest.raises(bw.DeviceError, match="ptxas"):
            ops.sin.inspect("resources", x, device="sm_90")
        return
    header, row = ops.sin.inspect("resources", x, device="sm_90").splitlines()[:2]
    assert header.split()[:2] == ["kernel", "threads"]
    assert row.startswith("sin")
    assert int(row.split()[2]) > 4


def test_machine_code_needs_a_disassembler(monkeypatch, tmp_path):
    inspection = pytest.importorskip("brickwork.runtime.inspection")
    monkeypatch.setattr(inspection, "find_tool", lambda name: None)
    with pytest.raises(bw.DeviceError, match=r"nvdisasm.*cuobjdump"):
        square.inspect("sass", torch.empty(8, device="meta"), device="sm_90")


def test_stages_of_gpus_are_not_those_of_the_cpu():
    square(torch.ones(3))
    with pytest.raises(ValueError, match="there is no stage 'ptx'"):
        square.inspect("ptx", torch.ones(3))
    with pytest.raises(ValueError, match=r"no stage 'nonsense'.*ptx.*sass, resources"):
        square.inspect("nonsense", torch.ones(3), device="sm_90")


@pytest.mark.parametrize("cached", [False, True])
def test_kernels_are_made_ahead_of_a_call_that_was_compiled(two, monkeypatch, cached):
    asked = []
    monkeypatch.setattr(specialise, "devices", room.devices)
    monkeypatch.setattr(kernels_ahead, "make_ahead", lambda nvidia, made, gpu, numbers: asked.append((gpu, numbers)))
    compilation = Compilation(artifact(), cached, 0.0)
    specialiser = Specialiser(None, lambda *given: compilation, lambda *given: None)
    place = Place(cuda_target((9, 0)), 1)
    signature = Signature((), device="cuda")
    for _ in range(2):
        specialiser.specialise("default", signature, place, None, [torch.ones(2, 3), 4, None])
    assert asked == ([] if cached else [(two[1].gpus[1], [(2, 3), 4, None])])
