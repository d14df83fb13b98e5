// Normal samples by hand: Philox4x32-10 and Box-Muller, four outputs a thread of one 16-byte store.
// `precise` computes with the functions of IEEE accuracy, `fast` with the hardware's approximations.

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

__device__ float unit(unsigned bits) { return (bits >> 8) * 5.9604645e-8f + 2.9802322e-8f; }

template <bool precise>
__device__ float2 normals(unsigned a, unsigned b) {
    float sine, cosine, radius;
    float angle = 6.2831853f * unit(b);
    if (precise) {
        radius = sqrtf(-2.0f * logf(unit(a)));
        sincosf(angle, &sine, &cosine);
    } else {
        radius = __fsqrt_rn(-2.0f * __logf(unit(a)));
        __sincosf(angle, &sine, &cosine);
    }
    return make_float2(radius * cosine, radius * sine);
}

template <bool precise>
__device__ void sample(const float* mu, const float* sigma, float* out, int n, long long count, int seed) {
    long long thread = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    long long first = 4 * thread;
    if (first >= count) return;
    int row = (int)(first / n);
    uint4 bits = philox(
        make_uint4((unsigned)thread, (unsigned)(thread >> 32), 0u, 0u), make_uint2((unsigned)seed, 0u));
    float2 one = normals<precise>(bits.x, bits.y), two = normals<precise>(bits.z, bits.w);
    float m = mu[row], s = sigma[row];
    *reinterpret_cast<float4*>(out + first) =
        make_float4(m + s * one.x, m + s * one.y, m + s * two.x, m + s * two.y);
}

extern "C" __global__ void precise(const float* mu, const float* sigma, float* out, int n, int d, int seed) {
    sample<true>(mu, sigma, out, n, (long long)n * d, seed);
}

extern "C" __global__ void fast(const float* mu, const float* sigma, float* out, int n, int d, int seed) {
    sample<false>(mu, sigma, out, n, (long long)n * d, seed);
}
