"""PTX of contractions assembles for every kind of GPU, without spills, and so that groups of warps run on."""

import re
import subprocess
from functools import cache
from itertools import product

import pytest
import torch

import brickwork as bw
from brickwork.runtime.cuda_toolkit import find_tool
from brickwork.target.cuda import cuda_target
from support import contractions
from support.ptx import assemble, program_for_gpu
from support.ptx import ptx_of as ptx_of_all
from support.sweep import sampled

CAPABILITIES = [(7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (12, 0)]
SPILLED = 96
"""Bytes: some registers of a computed factor beside the sums of the largest tile."""


def ptx_of(programs, target, tiles=slice(None)):
    """Return the PTX of what runs by tiles; the other kernels of a product are as those of other programs."""
    return ptx_of_all(programs, target, tiles=tiles if target.matrix else None)


@cache
def groups_of(function, *kinds):
    """Return the PTX of the first kernel by groups of warps, for tensors with these sizes and dtypes."""
    given = [torch.zeros(*sizes, dtype=dtype) for *sizes, dtype in kinds]
    text = ptx_of([program_for_gpu(function, *given)], cuda_target((9, 0)), slice(1))
    assert "wgmma.mma_async" in text
    return text


def squares(*dtypes):
    return [(64, 64, dtype) for dtype in dtypes]


def matrices(dtype):
    return torch.zeros(64, 64, dtype=dtype), torch.zeros(64, 64, dtype=dtype)


@pytest.mark.parametrize(
    ("dtype", "capability"),
    sampled(product((torch.bfloat16, torch.float16, torch.float32, torch.float64), CAPABILITIES), 6),
)
def test_products_assemble(capability, dtype, tmp_path):
    target = cuda_target(capability)
    ptx = ptx_of([program_for_gpu(contractions.product, *matrices(dtype))], target)
    found = assemble(ptx, target, tmp_path)
    assert {name: each for name, each in found.items() if each.spilled > SPILLED} == {}
    assert ("mma.sync" in ptx) is (capability >= (8, 0))
    assert ("wgmma" in ptx) is (capability == (9, 0) and dtype is not torch.float64)


@pytest.mark.parametrize(("capability", "shape"), [((8, 0), "m8n8k4"), ((9, 0), "m16n8k8")])
@pytest.mark.parametrize("function", [contractions.product, contractions.transposed])
def test_float64_is_multiplied_by_matrix_instructions_of_its_own(function, capability, shape, tmp_path):
    """Sums begin with what the stage before left: nothing is cut."""
    target = cuda_target(capability)
    ptx = ptx_of([program_for_gpu(function, *matrices(torch.float64))], target, slice(1))
    assert f"mma.sync.aligned.{shape}.row.col.f64" in ptx
    assert {name: each for name, each in assemble(ptx, target, tmp_path).items() if each.spilled} == {}


@pytest.mark.parametrize("function", [contractions.chosen, contractions.batch_last])
def test_masks_of_elements_and_batches_along_memory_assemble(function, tmp_path):
    """A sum is added where the mask holds, after all of its products."""
    chooses = function is contractions.chosen
    given = [torch.zeros(64, 64)] * 3 if chooses else [torch.zeros(64, 64, 4)] * 2
    target = cuda_target((9, 0))
    ptx = ptx_of([program_for_gpu(function, *given)], target)
    assert "mma" in ptx
    assert {name: each for name, each in assemble(ptx, target, tmp_path).items() if each.spilled > SPILLED} == {}


def test_wide_results_of_narrow_factors_are_summed_stage_by_stage(tmp_path):
    """The first instruction of a stage begins with zeros where results are wide, and goes on with sums elsewhere."""
    target = cuda_target((9, 0))
    begins = re.compile(r"wgmma.mma_async[^;]*, 0, 1, 1, \d, \d;")
    ptx = ptx_of([program_for_gpu(contractions.widened, *matrices(torch.bfloat16))], target)
    assert begins.search(ptx)
    assert {name: each for name, each in assemble(ptx, target, tmp_path).items() if each.spilled > SPILLED} == {}
    assert not begins.search(groups_of(contractions.product, *squares(torch.bfloat16, torch.bfloat16)))


def wgmma_of(ptx):
    """Return how many instructions the first kernel has for each stage, with a factor in registers and without."""
    kernel = next(text for text in ptx.split(".entry")[1:] if "wgmma.mma_async" in text)
    lines = [line.split("},")[1:] for line in kernel.splitlines() if "wgmma.mma_async" in line]
    return sum(len(line) > 1 for line in lines), sum(len(line) == 1 for line in lines)


def test_float32_is_three_products_whose_left_factor_is_split_in_registers():
    """Four steps of eight terms each are a stage; of the products the one of both rests is left out."""
    for function in (contractions.product, contractions.transposed):
        assert wgmma_of(groups_of(function, *squares(torch.float32, torch.float32))) == (12, 0)
    assert wgmma_of(groups_of(contractions.product, *squares(torch.bfloat16, torch.bfloat16))) == (0, 4)


@pytest.mark.parametrize(("dtype", "capability"), sampled(product((torch.bfloat16, torch.float32), CAPABILITIES), 5))
def test_factors_in_which_rows_and_terms_meet_assemble(capability, dtype, tmp_path):
    target = cuda_target(capability)
    given = torch.zeros(4, 64, dtype=dtype), torch.zeros(32, 4, 64, dtype=dtype)
    ptx = ptx_of([program_for_gpu(contractions.causal_filter, *given)], target)
    found = assemble(ptx, target, tmp_path)
    assert {name: each for name, each in found.items() if each.spilled > SPILLED} == {}
    assert ("mma" in ptx) is (capability >= (8, 0))


@pytest.mark.parametrize(
    ("function", "dtypes", "count"),
    [
        (contractions.product, (torch.float32, torch.bfloat16), 12),
        (contractions.product, (torch.bfloat16, torch.float32), 8),
        (contractions.product, (torch.bfloat16, torch.int8), 4),
        (contractions.group_scaled, (torch.bfloat16, torch.uint8, torch.bfloat16), 8),
    ],
)
def test_factors_that_16_bits_do_not_have_are_taken_in_parts(function, dtypes, count):
    """Four steps of sixteen terms are a stage; a factor has three parts where results are wide, and two elsewhere."""
    sizes = [(64, 64), (64, 64)] if len(dtypes) == 2 else [(64, 64), (32, 64), (2, 64)]
    kinds = [(*size, dtype) for size, dtype in zip(sizes, dtypes, strict=True)]
    assert wgmma_of(groups_of(function, *kinds)) == (0, count)


@pytest.mark.parametrize(
    ("function", "dtypes"),
    [(contractions.transposed, (torch.bfloat16, torch.int8)), (contractions.product, (torch.float32, torch.float32))],
)
def test_groups_read_for_a_stage_while_the_one_before_is_computed(function, dtypes):
    """What a stage is computed from is read after the one before was put into shared memory."""
    loop = groups_of(function, *squares(*dtypes)).rsplit("wgmma.mma_async", 1)[1].split("wgmma.wait_group")[0]
    assert loop.rindex("ld.global") > loop.rindex("st.shared")


@pytest.mark.parametrize(
    ("dtypes", "capability"),
    sampled(product([(torch.float32, torch.bfloat16), (torch.bfloat16, torch.float32)], [(8, 0), (8, 6), (12, 0)]), 4),
)
def test_stages_of_factors_in_parts_fit_each_machine(dtypes, capability, tmp_path):
    given = [torch.zeros(64, 64, dtype=dtype) for dtype in dtypes]
    target = cuda_target(capability)
    ptx = ptx_of([program_for_gpu(contractions.widened, *given)], target)
    assert "bf16.bf16.f32" in ptx
    assert {name: each for name, each in assemble(ptx, target, tmp_path).items() if each.spilled > SPILLED} == {}


def test_integers_of_few_bits_become_floats_by_additions():
    first = groups_of(contractions.product, *squares(torch.bfloat16, torch.int8))
    assert "cvt.rn.f32.s" not in first.split("wgmma.mma_async")[0]


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_bytes_become_floats_by_a_permutation_and_an_addition(dtype):
    """2**23 has zeros where a byte is put; a byte with a sign is read from 0 on, four of a word at once."""
    first = groups_of(contractions.transposed, *squares(torch.bfloat16, dtype))
    assert first.count("1258291200") >= 64
    assert ("0fCB000080" if dtype is torch.int8 else "0fCB000000") in first
    assert ("-2139062144" in first) is (dtype is torch.int8)


def test_sums_that_are_scaled_are_asked_whether_they_are_finite():
    given = squares(torch.bfloat16, torch.int8)
    assert "2139095040" not in groups_of(contractions.transposed, *given)
    assert "2139095040" in groups_of(contractions.dequantised, *given, (64, torch.float32))


@pytest.mark.parametrize("options", [{"order": "source"}, {"fused": False}])
def test_order_and_rounding_of_the_source_need_no_matrix_instructions(options):
    given = [torch.empty(64, 64, dtype=torch.bfloat16, device="meta")] * 2
    blocked = bw.op("bwptx::blocked")(contractions.product)
    kept = bw.op("bwptx::kept", **options)(contractions.product)
    assert "mma" in blocked.inspect("ptx", *given, device="sm_80")
    assert "mma" not in kept.inspect("ptx", *given, device="sm_80")


def test_other_orders_are_refused():
    with pytest.raises(ValueError, match="order is 'source' or left out, not 'reversed'"):
        bw.op(order="reversed")


@pytest.mark.parametrize(
    ("dtype", "function", "more"),
    sampled(
        (
            (dtype, *each)
            for dtype in (torch.bfloat16, torch.float32)
            for each in [
                (contractions.transposed, ()),
                (contractions.activated, (torch.zeros(64),)),
                (contractions.masked, (torch.zeros(64, 64),)),
            ]
        ),
        4,
    ),
)
def test_groups_of_warps_run_on(function, more, dtype, tmp_path):
    tool = find_tool("ptxas")
    if tool is None:
        pytest.skip("there is no ptxas on this machine")
    program = program_for_gpu(function, *matrices(dtype), *more)
    path = tmp_path / "groups.ptx"
    path.write_text(ptx_of([program], cuda_target((9, 0))))
    # Drivers compile what they link: as if functions were called that are elsewhere.
    command = [str(tool), "-v", "-c", "-arch=sm_90a", str(path), "-o", str(tmp_path / "groups.cubin")]
    said = subprocess.run(command, capture_output=True, text=True, check=True)  # a tool found by name
    assert "wgmma" in path.read_text()
    assert re.findall(r"\(C75\d\d\).*", said.stderr) == []


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_quotients_in_indices_of_tiles_are_of_wide_products(dtype):
    """The high word of a product is not what 32 bits of it leave, though the index is computed modulo 2**32."""
    given = torch.zeros(2, 8, 64, 64, dtype=dtype), torch.zeros(2, 2, 64, 64, dtype=dtype)
    ptx = ptx_of([program_for_gpu(contractions.shared_heads, *given)], cuda_target((9, 0)))
    kernels = [text for text in ptx.split(".entry")[1:] if "mma" in text]
    found = [(name, text) for text in kernels for name in re.findall(r"div\.u32\s+(%r\d+), -1,", text)]
    assert found
    assert not any(re.search(rf"mul\.lo\.s32\s+%r\d+, {name}, ", text) for name, text in found)


@pytest.mark.parametrize(
    ("function", "more", "again"),
    [
        (contractions.widened, (), False),
        (contractions.added, (torch.zeros(64, 64),), True),
        (contractions.scaled, (torch.zeros(64), torch.zeros(64, 64)), True),
        (contractions.halved, (torch.zeros(64, 64),), True),
    ],
)
def test_elements_that_differ_once_they_are_begun_or_scaled_late_are_summed_up_again(function, more, again, tmp_path):
    target = cuda_target((9, 0))
    ptx = ptx_of([program_for_gpu(function, *matrices(torch.bfloat16), *more)], target, slice(1))
    kernel = next(text for text in ptx.split(".entry")[1:] if "mma" in text)
    products = re.findall(r"(?:fma|mul)(?:\.rn)?\.f32", kernel)
    assert bool(products) is again
    assert all(each.spilled <= SPILLED for each in assemble(ptx, target, tmp_path).values())
