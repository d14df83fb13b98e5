"""CUDA C++ into kernels, by NVRTC, for which no GPU is needed."""

import re
import shutil

import pytest

from brickwork.diagnostics.errors import CompileError, DeviceError
from brickwork.frontend.text_locations import GivenText
from brickwork.runtime import cache, cuda_includes, cuda_source
from brickwork.runtime.cuda_source import CudaText, compile_cuda, find_nvrtc

HOPPER = (9, 0)


def has_nvrtc():
    try:
        find_nvrtc(None)
    except DeviceError:
        return False
    return True


def has_headers():
    return has_nvrtc() and bool(find_nvrtc(None)[1])


pytestmark = pytest.mark.skipif(not has_nvrtc(), reason="needs NVRTC: install nvidia-cuda-nvrtc")
needs_headers = pytest.mark.skipif(not has_headers(), reason="needs CUDA's headers")


def text(source, **more):
    return CudaText(GivenText(source, "a::b", "<a::b>"), **more)


def parameters(source, entry, **more):
    return [str(each) for each in compile_cuda(text(source, **more), entry, HOPPER, None).parameters]


def refused(source, entry="k", **more):
    with pytest.raises(CompileError) as caught:
        compile_cuda(text(source, **more), entry, HOPPER, None)
    return [(each.loc.line, each.message) for each in caught.value.diagnostics]


def test_a_kernel_tells_what_it_takes():
    source = """
    typedef float real;
    #define COUNT long
    struct Pair { int a; double b; };
    __global__ void k(const real* __restrict__ x, real* const out, volatile int* flag, const unsigned char* mask,
                      const void* any, float4* wide, const float f, double d, COUNT n, unsigned u, bool b, Pair p) {}
    """
    assert parameters(source, "k") == [
        *("const float*", "float*", "int*", "const unsigned char*", "const void*", "void*"),
        *("float", "double", "long long", "unsigned", "bool", "a type of 16 bytes"),
    ]


def test_kernels_of_all_kinds_of_names():
    assert parameters('extern "C" __global__ void k() {}', "k") == []
    assert parameters("namespace n { __global__ void k(int a) {} }", "n::k") == ["int"]
    template = "template <class T, int N> __global__ void k(T* x) {}"
    assert parameters(template, "k<double, 3>") == ["double*"]
    assert compile_cuda(text(template), "k<double, 3>", HOPPER, None).symbol == "_Z1kIdLi3EEvPT_"


@needs_headers
def test_headers_of_cuda_are_found():
    source = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n__global__ void k(__half* x, __nv_bfloat16 y) {}"
    assert parameters(source, "k") == ["__half*", "__nv_bfloat16"]


def test_headers_that_kernels_include_by_habit_are_there():
    names = "stdio.h cstdio assert.h math.h cmath stdint.h cstdint float.h limits.h stddef.h".split()
    includes = "\n".join(f"#include <{name}>" for name in names)
    body = "assert(x[0] < FLT_MAX); x[0] = INFINITY + NAN + (float)M_PI + INT_MAX; int32_t i = 1; std::uint8_t j = i;"
    assert parameters(f"{includes}\n__global__ void k(float* x) {{ {body} x[1] = j; }}", "k") == ["float*"]


def test_a_mistake_is_told_at_its_line():
    assert refused("\n__global__ void k(float* x) {\n    x[0] = y;\n}") == [(3, 'identifier "y" is undefined')]


def test_a_kernel_that_is_not_there_is_told():
    assert "has no kernel `other`" in refused("__global__ void k() {}", "other")[0][1]
    assert "has no kernel `k`" in refused("__device__ void k() {}")[0][1]
    assert "has no kernel `k`" in refused("__global__ void k(int) {}\n__global__ void k(float) {}")[0][1]


def test_code_is_kept_by_content(tmp_path):
    cache.clear()
    header = tmp_path / "own.h"
    header.write_text("#define VALUE 1")
    source = '#include "own.h"\n__global__ void k(float* x) { x[0] = VALUE; }'

    def made(**more):
        return compile_cuda(text(source, include=(tmp_path,), **more), "k", HOPPER, None)

    first = made()
    assert not first.cached
    assert made().cached
    assert made().cubin == first.cubin
    assert not made(fast_math=True).cached
    assert not made(flags=("-DX=1",)).cached
    header.write_text("#define VALUE 2")
    second = made()
    assert not second.cached
    assert second.cubin != first.cubin


def test_an_include_that_a_macro_names_is_read_each_time(tmp_path):
    (tmp_path / "own.h").write_text("")
    source = '#define NAME "own.h"\n#include NAME\n__global__ void k() {}'
    assert not compile_cuda(text(source, include=(tmp_path,)), "k", HOPPER, None).cached
    assert not compile_cuda(text(source, include=(tmp_path,)), "k", HOPPER, None).cached


def test_headers_beside_a_header_and_in_folders_that_flags_name(tmp_path):
    inner, other = tmp_path / "inner", tmp_path / "other"
    inner.mkdir()
    other.mkdir()
    (inner / "a.h").write_text('#include "b.h"')
    (inner / "b.h").write_text("#define VALUE 1")
    (other / "c.h").write_text("#define MORE 1")
    source = '#include "inner/a.h"\n#include "c.h"\n__global__ void k(float* x) { x[0] = VALUE + MORE; }'

    def cached():
        return compile_cuda(text(source, include=(tmp_path,), flags=(f"-I{other}",)), "k", HOPPER, None).cached

    assert not cached()
    assert cached()
    for path in (inner / "b.h", other / "c.h"):
        path.write_text(path.read_text().replace("1", "2"))
        assert not cached()


def test_fast_math_changes_the_code():
    source = "__global__ void k(float* x) { x[0] = sinf(x[0]); }"
    exact, fast = (compile_cuda(text(source, fast_math=each), "k", HOPPER, None).ptx for each in (False, True))
    assert "sin.approx" not in exact
    assert "sin.approx" in fast


def test_flags_choose_the_architecture():
    virtual = compile_cuda(text("__global__ void k() {}", flags=("-arch=compute_80",)), "k", HOPPER, None)
    assert ".target sm_80" in virtual.ptx
    assert not virtual.cubin


def test_a_gpu_that_nvrtc_does_not_know_gets_what_its_driver_translates():
    code = compile_cuda(text("__global__ void k() {}"), "k", (99, 0), None)
    assert not code.cubin
    with pytest.raises(DeviceError, match="makes code for sm_"):
        compile_cuda(text("__global__ void k() {}"), "k", (3, 5), None)


def test_what_needs_no_annotation_in_nvcc_needs_none_here():
    source = """
    constexpr int twice(int n) { return 2 * n; }
    const float half[2] = {0.5f, 0.25f};
    struct Pair { int a; int sum() const { return twice(a); } };
    __global__ void k(float* x, int n) { x[0] = Pair{n}.sum() + half[n]; int a[twice(2)]; x[1] = a[n]; }
    """
    assert parameters(source, "k") == ["float*", "int"]
    assert compile_cuda(
        text("int f() { return 1; } __global__ void k(int* x) { x[0] = f(); }", flags=("-default-device",)),
        "k",
        HOPPER,
        None,
    ).cubin


def test_host_code_and_headers_are_skipped_and_told():
    source = """#include <torch/extension.h>
#include <vector>
#include <cuda_fp16.h>
#include <ATen/no/such.h>
__global__ void k(float* x) { x[0] = 1; }
C10_HOST_DEVICE inline float f(float x) { return x; }
torch::Tensor g(torch::Tensor x) { k<<<1, 1>>>(x.data_ptr<float>()); return x; }
"""
    code = compile_cuda(text(source.replace("#include <cuda_fp16.h>", "")), "k", HOPPER, None)
    assert code.log.splitlines() == [
        "line 1: the header torch/extension.h is for the host, and skipped",
        "line 2: the header vector is for the host, and skipped",
        "line 4: the header ATen/no/such.h is for the host, and skipped",
        "line 7: `g` is code for the host, and skipped",
    ]


def test_pytorchs_headers_are_not_read_even_where_they_are(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "extension.h").write_text("#error")
    assert parameters("#include <torch/extension.h>\n__global__ void k() {}", "k", include=(tmp_path,)) == []


def test_headers_of_the_users_have_their_code_for_the_host_skipped(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "own.h").write_text("""
#include <ATen/ATen.h>
inline int threads(int n) { return std::log(static_cast<double>(n)) / std::lgamma(sizes(n)); }
at::Tensor launcher(at::Tensor x);
__device__ float half(float x) { return x / 2; }
""")
    source = '#include "inner/own.h"\n__global__ void k(float* x) { x[0] = half(x[0]); x[1] = WRONG; }'
    assert parameters(source.replace("WRONG", "1"), "k", include=(tmp_path,)) == ["float*"]
    assert refused(source, include=(tmp_path,)) == [(2, 'identifier "WRONG" is undefined')]
    (tmp_path / "inner" / "own.h").write_text("void f() {}\n__device__ float half(float x) { return y; }")
    with pytest.raises(CompileError) as caught:
        compile_cuda(text(source, include=(tmp_path,)), "k", HOPPER, None)
    place = caught.value.diagnostics[0].loc
    assert (place.file, place.line) == (str(tmp_path / "inner" / "own.h"), 2)


def test_functions_that_nvcc_has_in_std():
    source = """#include <torch/extension.h>
    __global__ void k(float* x) { x[0] = std::max(std::exp(x[0]), std::pow(std::abs(x[1]), 0.5f)); }"""
    code = compile_cuda(text(source), "k", HOPPER, None)
    assert ".f64" not in code.ptx


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("__global__ void k(torch::Tensor x) {}", "let the kernel take pointers and numbers"),
        (
            "int f() { return 1; } __global__ void k(int* x) { x[0] = f(); }",
            "line 1 of the text defines it for the host",
        ),
        ("__global__ void k(int* x) { x[0] = std::clamp(1, 2, x[0]); }", "CUDA's functions"),
        ("__global__ void other(int* x) {} void k() { other<<<1, 1>>>(0); }", "the text has: other"),
        ("#include <curand_nowhere.h>\n__global__ void k() {}", "`pip install nvidia-curand"),
        ("#include <cub/nowhere.cuh>\n__global__ void k() {}", "`pip install nvidia-cuda-cccl"),
        ("#include <own.h>\n__global__ void k() {}", "give the folder of the header as `include=`"),
    ],
)
def test_errors_say_what_to_write(line, advice):
    with pytest.raises(CompileError) as caught:
        compile_cuda(text(line), "k", HOPPER, None)
    assert advice in (caught.value.diagnostics[0].help or "")


def test_headers_of_nvidias_other_packages_are_found(tmp_path, monkeypatch):
    folder = tmp_path / "curand" / "include" / "own"
    folder.mkdir(parents=True)
    (folder / "curand_own.h").write_text("typedef float own;")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert parameters("#include <own/curand_own.h>\n__global__ void k(own* x) {}", "k") == ["float*"]


def test_what_nvidias_headers_ask_of_the_target_is_answered_without_its_package(monkeypatch):
    monkeypatch.setattr(cuda_includes, "header_folder", lambda _: None)
    source = """#include <nv/target>
    __global__ void k(int* x) {
        NV_IF_ELSE_TARGET(NV_PROVIDES_SM_90, (x[0] = 90;), (x[0] = no;))
        NV_IF_ELSE_TARGET(NV_IS_EXACTLY_SM_80, (x[1] = no;), (x[1] = 91;))
        NV_IF_TARGET(NV_IS_HOST, (x[2] = no;))
        NV_IF_TARGET(NV_IS_DEVICE, (int y = 2, z = 3; x[2] = y * z;))
    }"""
    code = compile_cuda(text(source), "k", HOPPER, None)
    assert re.findall(r"st\.\w+\.u32.*|, (\d+);", code.ptx).count("6") == 1
    assert "host" not in code.log


@pytest.mark.parametrize("flag", ["-lineinfo", "-G"])
def test_line_information_names_the_users_file_and_lines(flag):
    source = GivenText("__global__ void k(float* x) {\n  x[0] = 1;\n}", "a::b", "/some/model.py", line=10)
    ptx = compile_cuda(CudaText(source, (flag,)), "k", HOPPER, None).ptx
    assert '"/some/model.py"' in ptx
    assert re.search(r"\.loc\s+\d 11 ", ptx)
    wrong = GivenText("__global__ void k(float* x) {\n  x[0] = y;\n}", "a::b", "/some/model.py", line=10)
    with pytest.raises(CompileError) as caught:
        compile_cuda(CudaText(wrong, (flag,)), "k", HOPPER, None)
    assert (caught.value.diagnostics[0].loc.file, caught.value.diagnostics[0].loc.line) == ("/some/model.py", 11)


def test_an_unknown_flag_is_told():
    with pytest.raises(DeviceError, match="--nonsense"):
        compile_cuda(text("__global__ void k() {}", flags=("--nonsense",)), "k", HOPPER, None)


def test_a_missing_nvrtc_is_told_with_what_brings_it(monkeypatch):
    monkeypatch.setattr(cuda_source, "nvrtc_files", lambda _: iter(["/nowhere/libnvrtc.so.1"]))
    with pytest.raises(DeviceError, match="nvidia-cuda-nvrtc"):
        find_nvrtc(13)


def test_a_damaged_cache_costs_a_compilation(tmp_path):
    from brickwork.config import config

    with config.override(cache_dir=str(tmp_path)):
        compile_cuda(text("__global__ void k() {}"), "k", HOPPER, None)
        shutil.rmtree(tmp_path)
        cache.forget()
        assert not compile_cuda(text("__global__ void k() {}"), "k", HOPPER, None).cached
