"""What is blanked of a CUDA C++ file that was written for nvcc, and that lines and columns stay."""

import pytest

from brickwork.runtime.cuda_host_code import DevicePart, device_part, is_host_header


def kept(text):
    part = device_part(text)
    assert [len(line) for line in part.text.split("\n")] == [len(line) for line in text.split("\n")]
    return [line for line in part.text.split("\n") if line.strip()]


KEPT = [
    "__global__ void k(float* x) { x[0] = 1; }",
    'extern "C" __global__ void k(float* x) { x[0] = 1; }',
    "template <class T, int N = (3 > 2)> __global__ void __launch_bounds__(256) k(T* x) { x[0] = N; }",
    "__device__ float f(float x) { return x; }",
    "__host__ __device__ float f(float x) { return x; }",
    "constexpr int twice(int n) { return 2 * n; }",
    "const int N = 3, M[2] = {1, 2};",
    "constexpr float4 zero{0, 0, 0, 0};",
    "__constant__ float table[256];",
    "template <class T> struct Pair { T a; T sum() const { return a + a; } };",
    "typedef void (*function)(int);",
    "using real = float;",
    "enum class Kind { a, b };",
    "static_assert(sizeof(float) == 4);",
    "auto twice = [] __device__ (float x) { return 2 * x; };",
    "SOME_HEADERS_MACRO float f(float x) { return x; }",
    "template __global__ void k<float>(float*);",
    '__device__ const char* text = "torch::Tensor {"; // <<<',
]
SKIPPED = [
    "void launch(float* x);",
    "int main() { return 0; }",
    "static inline int blocks(int n) { return (n + 255) / 256; }",
    "template <class T> void launch(T* x, int n) { k<T><<<1, n>>>(x); }",
    "torch::Tensor f(const torch::Tensor& x) { return x; }",
    "const std::vector<int> sizes = {1, 2};",
    "struct State { at::Tensor x; };",
    "using namespace torch::indexing;",
    "using torch::Tensor;",
    "namespace F = torch::nn::functional;",
    "int counter = 0;",
    "__host__ float f(float x) { return x; }",
    'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f, "}"); }',
    'TORCH_LIBRARY_IMPL(ns, CUDA, m) { m.impl("f", &f); }',
    "bool operator==(const Point& a, const Point& b) { return a.x == b.x; }",
]


@pytest.mark.parametrize("line", KEPT)
def test_device_code_is_kept(line):
    assert device_part(line) == DevicePart(line, (), ("k",) if "k(" in line or "k<" in line else ())


@pytest.mark.parametrize("line", SKIPPED)
def test_code_for_the_host_is_blanked(line):
    assert kept(f"{line}\n__global__ void k() {{}}") == ["__global__ void k() {}"]
    assert kept(f"namespace a {{ namespace {{\n{line}\n}} }}")[1:] == ["} }"]


def test_what_is_skipped_has_a_name_and_lines():
    part = device_part("\n\nvoid f(int a,\n       int b) {\n}\nint g;\n__global__ void k() {}")
    assert list(map(str, part.skipped)) == [
        "lines 3 to 5: `f` is code for the host, and skipped",
        "line 6: `g` is code for the host, and skipped",
    ]
    assert part.kernels == ("k",)


def test_macros_of_the_text_are_looked_into():
    text = "#define DEVICE __device__ __forceinline__\n#define BOTH __host__ DEVICE\n#define PLAIN inline\n"
    for macro, stays in (("DEVICE", True), ("BOTH", True), ("PLAIN", False)):
        line = f"{macro} float f(float x) {{ return x; }}"
        assert (line in kept(text + line)) is stays


def test_directives_within_code_for_the_host_stay():
    text = 'void f() {\n#ifdef A\n  g();\n#else\n  h("}");\n#endif\n}'
    assert kept(text) == ["#ifdef A", "#else", "#endif"]


def test_comments_and_texts_have_no_brackets():
    text = "/* { */ __global__ void k() { char c = '}'; const char* s = \"}\"; } // {\nvoid f() {}"
    assert device_part(text).text.rstrip() == text.partition("\n")[0]
    assert not device_part('__device__ const char* s = R"x({)" } )x";').skipped


@pytest.mark.parametrize("text", ["void f() {", "void f() }", "void f(] {}", "}"])
def test_a_text_whose_brackets_do_not_match_is_left_alone(text):
    assert device_part(text) == DevicePart(text)


def test_an_instantiation_goes_with_its_template():
    text = "template <class T> void launch(T* x) {}\ntemplate void launch<float>(float*);"
    assert kept(text) == []


def test_a_kernel_is_found_in_its_namespace():
    text = "namespace a { namespace b::c { __global__ void k() {} } namespace { __global__ void l() {} } }"
    part = device_part(text + "inline namespace d { __global__ void l() {} }")
    assert part.kernels == ("a::b::c::k", "a::l", "d::l")
    assert [*map(part.qualified, ("k", "k<float, a::x>", "c::k", "l", "d::l", "m"))] == [
        *("a::b::c::k", "a::b::c::k<float, a::x>", "a::b::c::k", "l", "d::l", "m")
    ]


def test_headers_for_the_host():
    assert all(map(is_host_header, ("torch/extension.h", "ATen/ATen.h", "vector", "cuda_runtime.h", "cublas_v2.h")))
    assert not any(
        map(is_host_header, ("curand_kernel.h", "mma.h", "own.h", "cub/block/block_reduce.cuh", "sub/own.cuh"))
    )
