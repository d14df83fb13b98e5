// Samples of d normal distributions, as an extension of PyTorch has them: one file for the host and the device.
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <vector>

#define CHECK_CUDA(x) TORCH_CHECK(x.is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) CHECK_CUDA(x); CHECK_CONTIGUOUS(x)

constexpr int THREADS = 256;

inline int blocks(int64_t count) { return static_cast<int>((count + THREADS - 1) / THREADS); }

__device__ __forceinline__ float scaled(float mu, float sigma, float z) { return mu + sigma * z; }

__global__ void sample_normal_kernel(const float* __restrict__ mu, const float* __restrict__ sigma, float* __restrict__ out,
                                     int64_t d, int64_t n, uint64_t seed) {
    int64_t at = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    if (at >= d * n) return;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, at, 0, &state);
    out[at] = scaled(mu[at / n], sigma[at / n], curand_normal(&state));
}

torch::Tensor sample_normal_cuda(torch::Tensor mu, torch::Tensor sigma, int64_t n, int64_t seed) {
    CHECK_INPUT(mu);
    CHECK_INPUT(sigma);
    const at::cuda::OptionalCUDAGuard guard(mu.device());
    auto out = torch::empty({mu.size(0), n}, mu.options());
    const int64_t count = mu.size(0) * n;
    sample_normal_kernel<<<blocks(count), THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
        mu.data_ptr<float>(), sigma.data_ptr<float>(), out.data_ptr<float>(), mu.size(0), n, seed);
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("sample_normal", &sample_normal_cuda, "Samples of normal distributions (CUDA)");
}
