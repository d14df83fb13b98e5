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

// Its two gradients in the same mapping: one thread an element of the result, its sum in a register.

extern "C" __global__ void timex_gradient_k(
    const float* w, const float* gradient, float* result, int channels, int length, int rows) {
    int u = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * gridDim.z + blockIdx.z;
    if (u >= length || row >= rows) return;
    const float* weights = w + (long long)(row % channels) * length + length - 1 + u;
    const float* signal = gradient + (long long)row * length;
    float sum = 0;
    for (int t = u; t < length; t++) sum += weights[-t] * signal[t];
    result[(long long)row * length + u] = sum;
}

extern "C" __global__ void timex_gradient_w(
    const float* k, const float* gradient, float* result, int channels, int length, int batch) {
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    int channel = blockIdx.y;
    if (place >= length) return;
    int lag = length - 1 - place;
    float sum = 0;
    for (int b = 0; b < batch; b++) {
        const long long row = ((long long)b * channels + channel) * length;
        for (int t = lag; t < length; t++) sum += gradient[row + t] * k[row + t - lag];
    }
    result[(long long)channel * length + place] = sum;
}
