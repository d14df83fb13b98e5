// The causal depthwise convolution in the straightforward mapping: one thread an output, its sum in a register.

extern "C" __global__ void timex(
    const float* w, const float* k, float* out, double eps, int channels, int length, int rows) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * gridDim.z + blockIdx.z;
    if (t >= length || row >= rows) return;
    const float* weights = w + (long long)(row % channels) * length + length - 1 - t;
    const float* signal = k + (long long)row * length;
    float sum = (float)eps;
    for (int u = 0; u <= t; u++) sum += weights[u] * signal[u];
    out[(long long)row * length + t] = sum;
}
