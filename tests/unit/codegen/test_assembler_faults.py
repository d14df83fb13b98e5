"""Forms of PTX that NVIDIA's assembler translates wrongly are not written."""

import re

import torch

import brickwork as bw
from brickwork.codegen.assembler_faults import without_faults

HIGH = "\tmul.hi.u32 \t%r2, %r1, -845247145;\n"
WRITTEN = "{ .reg .b64 %wide; mul.wide.u32 %wide, %r1, -845247145; mov.b64 {_, %r2}, %wide; }"


def taken_from_draws(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = bw.randint(0, 5) - x[i]
    return out


def test_high_words_of_products_are_written_otherwise_where_they_are_widened():
    assert without_faults(f"{HIGH}\tcvt.u64.u32 \t%rd1, %r2;") == f"\t{WRITTEN}\n\tcvt.u64.u32 \t%rd1, %r2;"
    assert without_faults(f"{HIGH}\tmov.b64 \t%rd1, {{%r2, %r3}};").startswith(f"\t{WRITTEN}")
    for other in ("\tcvt.u64.u32 \t%rd1, %r22;", "\tcvt.s64.s32 \t%rd1, %r2;", "\tmov.b64 \t%rd1, {%r3, %r2};"):
        assert without_faults(HIGH + other) == HIGH + other


def test_a_draw_from_which_a_wide_number_is_taken_is_no_high_word():
    ptx = bw.op("faults::taken_from_draws")(taken_from_draws).inspect(
        "ptx", torch.zeros(8, dtype=torch.int64, device="meta"), device="sm_90"
    )
    widened = set(re.findall(r"cvt\.u64\.u32\s+%rd\d+, (%r\d+);", ptx))
    assert re.search(r"mul\.wide\.u32 %wide, %r\d+, 5;", ptx)
    assert not widened & set(re.findall(r"mul\.hi\.u32\s+(%r\d+),", ptx))
