// The sine of every element: one element a thread, and four.

extern "C" __global__ void plain(const float* x, float* out, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) out[at] = sinf(x[at]);
}

extern "C" __global__ void tuned(const float* x, float* out, int count) {
    int first = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (first + 3 < count) {
        float4 found = *reinterpret_cast<const float4*>(x + first);
        found.x = sinf(found.x);
        found.y = sinf(found.y);
        found.z = sinf(found.z);
        found.w = sinf(found.w);
        *reinterpret_cast<float4*>(out + first) = found;
        return;
    }
    for (int at = first; at < count; at++) out[at] = sinf(x[at]);
}
