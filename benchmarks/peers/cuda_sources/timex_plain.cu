// The causal depthwise convolution and its two gradients in the straightforward mapping: one thread an element of the
// result, its sum in a register.

extern "C" __global__ void timex(const float* w, const float* k, float* out, float eps, int channels, int length) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= length) return;
    const float* weights = w + (long long)blockIdx.y * length + length - 1 - t;
    const long long row = ((long long)blockIdx.z * channels + blockIdx.y) * length;
    float sum = eps;
    for (int u = 0; u <= t; u++) sum += weights[u] * k[row + u];
    out[row + t] = sum;
}

extern "C" __global__ void gradient_of_k(
    const float* w, const float* gradient, float* result, int channels, int length) {
    int u = blockIdx.x * blockDim.x + threadIdx.x;
    if (u >= length) return;
    const float* weights = w + (long long)blockIdx.y * length + length - 1 + u;
    const long long row = ((long long)blockIdx.z * channels + blockIdx.y) * length;
    float sum = 0;
    for (int t = u; t < length; t++) sum += weights[-t] * gradient[row + t];
    result[row + u] = sum;
}

extern "C" __global__ void gradient_of_w(
    const float* k, const float* gradient, float* result, int channels, int length, int batch) {
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= length) return;
    int lag = length - 1 - place;
    float sum = 0;
    for (int b = 0; b < batch; b++) {
        const long long row = ((long long)b * channels + blockIdx.y) * length;
        for (int t = lag; t < length; t++) sum += gradient[row + t] * k[row + t - lag];
    }
    result[(long long)blockIdx.y * length + place] = sum;
}
