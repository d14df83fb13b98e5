"""What becomes of nvcc's flags."""

import pytest

from brickwork.runtime.nvcc_flags import RefusedFlagError, nvrtc_flags


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (["-O3", "--expt-relaxed-constexpr", "--extended-lambda"], ()),
        (["-O3 --use_fast_math", "-DT=768"], ("--use_fast_math", "-DT=768")),
        (["-Xptxas", "-v"], ("-Xptxas=-v",)),
        (["--ptxas-options=-v -O2"], ("--ptxas-options=-v", "--ptxas-options=-O2")),
        (["-maxrregcount", "64", "-std=c++17", "-arch", "sm_80"], ("-maxrregcount=64", "-std=c++17", "-arch=sm_80")),
        (["-I", "/some where/include", "-D", "T=3"], ("-I/some where/include", "-DT=3")),
        (["-ftz=true", "-fmad=false", "--fmad=false", "-lineinfo", "-minimal", "-w"], None),
        (["--diag_suppress=20012", "-diag_suppress", "177"], ("--diag-suppress=20012", "--diag-suppress=177")),
        (["-O0"], ("--ptxas-options=-O0",)),
        (["--generate-line-info", "-G"], ("-lineinfo", "-G")),
        (["-gencode", "arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"], ()),
        (["-Xcompiler", "-fPIC", "-Xcompiler=-Wall", "-fPIC", "-Wno-deprecated-gpu-targets", "-ccbin", "g++"], ()),
        (["-lcurand", "-L/usr/lib", "-L", "/usr/lib", "--shared", "-cudart=static"], ()),
        (["--threads", "4", "-t4", "-v", "--keep", "-g", "-arch=native", "--default-stream", "per-thread"], ()),
    ],
)
def test_flags_are_passed_on_put_otherwise_or_ignored(given, options):
    found = nvrtc_flags(given)
    assert found.options == (tuple(given) if options is None else options)


def test_ignored_flags_are_told_with_the_reason():
    assert nvrtc_flags(["-lcurand", "-O3"]).notes == (
        "the flag `-lcurand` is ignored: nothing is linked",
        "the flag `-O3` needs no mention",
    )


@pytest.mark.parametrize(
    "flag", ["-rdc=true", "-dc", "-dlto", "--cubin", "-ptx", "-o", "--run", "--Werror=all-warnings"]
)
def test_flags_that_cannot_be_heeded_are_refused(flag):
    with pytest.raises(RefusedFlagError, match=f"the flag `{flag}"):
        nvrtc_flags(["-O3", flag])
