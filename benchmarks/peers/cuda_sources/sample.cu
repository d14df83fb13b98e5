// Normal samples: Philox4x32-10, then Box and Muller's method. A block of the grid is a part of one distribution's row.
// `plain` takes one normal deviate of the four words of a Philox block, `tuned` and `fast` all four and store 16 bytes at
// once; `fast` computes with the hardware's approximations.

__device__ uint4 philox(uint4 counter, uint2 key) {
    for (int round = 0; round < 10; round++) {
        unsigned high0 = __umulhi(0xD2511F53u, counter.x), low0 = 0xD2511F53u * counter.x;
        unsigned high1 = __umulhi(0xCD9E8D57u, counter.z), low1 = 0xCD9E8D57u * counter.z;
        counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return counter;
}

// A number in (0, 1] of 24 bits, and one in [0, 2), which is an angle in half turns.
__device__ float unit(unsigned bits) { return ((bits >> 8) + 1) * 5.9604645e-8f; }
__device__ float half_turns(unsigned bits) { return (bits >> 8) * 1.1920929e-7f; }

__device__ float2 precise_normals(unsigned a, unsigned b) {
    float sine, cosine;
    float radius = sqrtf(-2.0f * logf(unit(a)));
    sincospif(half_turns(b), &sine, &cosine);
    return make_float2(radius * cosine, radius * sine);
}

__device__ float2 fast_normals(unsigned a, unsigned b) {
    float sine, cosine;
    float squared = fmaxf(-2.0f * __logf(unit(a)), 1e-30f);
    float radius = squared * rsqrtf(squared);
    __sincosf(3.1415927f * half_turns(b), &sine, &cosine);
    return make_float2(radius * cosine, radius * sine);
}

extern "C" __global__ void plain(const float* mu, const float* sigma, float* out, int n, int seed) {
    for (int part = 0; part < 4; part++) {
        int column = (4 * blockIdx.y + part) * blockDim.x + threadIdx.x;
        if (column >= n) return;
        uint4 bits = philox(make_uint4(column, blockIdx.x, 0u, 0u), make_uint2(seed, 0u));
        out[(long long)blockIdx.x * n + column] = mu[blockIdx.x] + sigma[blockIdx.x] * precise_normals(bits.x, bits.y).x;
    }
}

template <bool approximate>
__device__ void sample(const float* mu, const float* sigma, float* out, int n, int seed) {
    int quarter = blockIdx.y * blockDim.x + threadIdx.x;
    int column = 4 * quarter;
    if (column >= n) return;
    uint4 bits = philox(make_uint4(quarter, blockIdx.x, 0u, 0u), make_uint2(seed, 0u));
    float2 one = approximate ? fast_normals(bits.x, bits.y) : precise_normals(bits.x, bits.y);
    float2 two = approximate ? fast_normals(bits.z, bits.w) : precise_normals(bits.z, bits.w);
    float m = mu[blockIdx.x], s = sigma[blockIdx.x];
    float4 found = make_float4(m + s * one.x, m + s * one.y, m + s * two.x, m + s * two.y);
    float* target = out + (long long)blockIdx.x * n + column;
    if (n % 4 == 0) {
        *reinterpret_cast<float4*>(target) = found;
        return;
    }
    target[0] = found.x;
    if (column + 1 < n) target[1] = found.y;
    if (column + 2 < n) target[2] = found.z;
    if (column + 3 < n) target[3] = found.w;
}

extern "C" __global__ void tuned(const float* mu, const float* sigma, float* out, int n, int seed) {
    sample<false>(mu, sigma, out, n, seed);
}

extern "C" __global__ void fast(const float* mu, const float* sigma, float* out, int n, int seed) {
    sample<true>(mu, sigma, out, n, seed);
}
