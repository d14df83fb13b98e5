// The causal depthwise convolution and its two gradients, for registers and shared memory.
//
// A block has one channel. Its rows lie in shared memory, filled up with zeros to whole tiles of 64, so that no loop asks
// where a row ends. A thread holds consecutive elements of the result in registers: as the weights depend on t - u alone,
// stepping on by four elements of a row takes four new weights, not four for each result. So 128 multiply-adds come with
// three reads of 16 bytes, in which no two lanes meet in a bank: rows are four words longer than whole tiles.
//
// Tile i of the result takes i + 1 tiles of a row. A warp has tiles i and last - i, so all warps have the same work.

constexpr int TILE = 64;
constexpr int OUTPUTS = 16;
constexpr int LANES = 8;  // of a warp along batches, in `convolve`

__host__ __device__ constexpr int whole_tiles(int length) { return (length + TILE - 1) / TILE * TILE; }

__device__ float element(const float4& four, int at) {
    return at == 0 ? four.x : at == 1 ? four.y : at == 2 ? four.z : four.w;
}

// Four elements of a row from `at` on, of a row that is read from its end if REVERSED; zeros where it has ended.
template <bool REVERSED>
__device__ float4 four_of(const float* row, int at, int length) {
    if (length % 4 == 0) {
        if (at >= length) return make_float4(0, 0, 0, 0);
        if (!REVERSED) return *reinterpret_cast<const float4*>(row + at);
        float4 found = *reinterpret_cast<const float4*>(row + length - 4 - at);
        return make_float4(found.w, found.z, found.y, found.x);
    }
    float found[4];
    for (int i = 0; i < 4; i++) found[i] = at + i < length ? row[REVERSED ? length - 1 - at - i : at + i] : 0.0f;
    return make_float4(found[0], found[1], found[2], found[3]);
}

// Put rows of one channel into shared memory, a warp a row: those of `count` batches from `first` on.
template <bool REVERSED>
__device__ void fill(
    float* rows, int stride, const float* source, int first, int count, int batch, int channels, int length) {
    for (int row = threadIdx.x / 32; row < count; row += blockDim.x / 32) {
        const float* from = source + ((long long)(first + row) * channels + blockIdx.x) * length;
        for (int at = 4 * (threadIdx.x % 32); at < stride - 4; at += 128) {
            float4 found = first + row < batch ? four_of<REVERSED>(from, at, length) : make_float4(0, 0, 0, 0);
            *reinterpret_cast<float4*>(rows + row * stride + at) = found;
        }
    }
}

// out[b, c, t] = eps + sum over u <= t of w[c, T - 1 - t + u] * k[b, c, u], of 8 x BATCHES batches.
// The gradient of k is the same of the gradient of `out`, if time runs backwards: REVERSED.
template <int BATCHES, bool REVERSED>
__global__ void __launch_bounds__(256, 3) convolve(
    const float* w, const float* k, float* out, float eps, int batch, int channels, int length) {
    extern __shared__ float4 memory[];
    const int padded = whole_tiles(length), stride = padded + 4, tiles = padded / TILE;
    float* rows = reinterpret_cast<float*>(memory);
    float* weights = rows + LANES * BATCHES * stride;
    const int first = blockIdx.y * LANES * BATCHES;
    fill<REVERSED>(rows, stride, k, first, LANES * BATCHES, batch, channels, length);
    for (int at = threadIdx.x; at < padded + TILE; at += blockDim.x) {
        int place = at - (padded - length);
        weights[at] = place >= 0 && place < length ? w[(long long)blockIdx.x * length + place] : 0.0f;
    }
    __syncthreads();
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    const float* mine = rows + lane % LANES * stride;
    for (int pair = threadIdx.x / 32; 2 * pair < tiles; pair += warps) {
        for (int half = 0; half < 2; half++) {
            const int tile = half ? pair : tiles - 1 - pair;
            if (half && 2 * pair == tiles - 1) break;
            const int start = tile * TILE + lane / LANES * OUTPUTS;
            const float* around = weights + padded - OUTPUTS - start;
            float sum[BATCHES][OUTPUTS], window[2 * OUTPUTS];
#pragma unroll
            for (int i = 0; i < OUTPUTS; i++) {
                window[i] = around[i];
                for (int n = 0; n < BATCHES; n++) sum[n][i] = eps;
            }
#pragma unroll 1
            for (int u = 0; u < (tile + 1) * TILE; u += OUTPUTS) {
#pragma unroll
                for (int step = 0; step < OUTPUTS; step += 4) {
                    float4 next = *reinterpret_cast<const float4*>(around + u + OUTPUTS + step);
                    float4 given[BATCHES];
#pragma unroll
                    for (int n = 0; n < BATCHES; n++)
                        given[n] = *reinterpret_cast<const float4*>(mine + n * LANES * stride + u + step);
#pragma unroll
                    for (int at = 0; at < 4; at++) {
                        window[OUTPUTS + step + at] = element(next, at);
#pragma unroll
                        for (int i = 0; i < OUTPUTS; i++)
#pragma unroll
                            for (int n = 0; n < BATCHES; n++)
                                sum[n][i] += window[OUTPUTS - 1 - i + step + at] * element(given[n], at);
                    }
                }
#pragma unroll
                for (int i = 0; i < OUTPUTS; i++) window[i] = window[OUTPUTS + i];
            }
#pragma unroll
            for (int n = 0; n < BATCHES; n++) {
                const int b = first + lane % LANES + n * LANES;
                if (b >= batch) continue;
                float* to = out + ((long long)b * channels + blockIdx.x) * length;
#pragma unroll
                for (int i = 0; i < OUTPUTS; i += 4) {
                    const int t = start + i;
                    float4 found = make_float4(sum[n][i], sum[n][i + 1], sum[n][i + 2], sum[n][i + 3]);
                    if (REVERSED) found = make_float4(found.w, found.z, found.y, found.x);
                    if (length % 4 == 0) {
                        if (t < length) *reinterpret_cast<float4*>(to + (REVERSED ? length - 4 - t : t)) = found;
                        continue;
                    }
                    for (int at = 0; at < 4; at++) {
                        const int place = REVERSED ? length - 4 - t + at : t + at;
                        if (place >= 0 && place < length) to[place] = element(found, at);
                    }
                }
            }
        }
    }
}

// Add up over the lanes of a group what each has found; each is left with two of the sums. A step gives a lane half of
// its sums, with what twice as many lanes have found.
template <int APART, int KEPT>
__device__ void halve(float* sum, int lane) {
    const bool upper = lane & APART;
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
        float other = __shfl_xor_sync(0xFFFFFFFFu, upper ? sum[i] : sum[i + KEPT], APART);
        sum[i] = (upper ? sum[i + KEPT] : sum[i]) + other;
    }
    if constexpr (APART > 1) halve<APART / 2, KEPT / 2>(sum, lane);
}

// result[c, T - 1 - lag] = sum over b and s of k[b, c, s] * gradient[b, c, s + lag].
// A lane has one of ROWS batches and 2 x ROWS lags; the lanes of a warp add up what they found over their batches.
template <int ROWS>
__global__ void __launch_bounds__(256) gradient_of_w(
    const float* k, const float* gradient, float* result, int batch, int channels, int length) {
    extern __shared__ float4 memory[];
    constexpr int LAGS = 2 * ROWS, STEPS = 32;
    const int padded = whole_tiles(length), stride = padded + 4, longer = padded + TILE + 4, tiles = padded / TILE;
    float* signals = reinterpret_cast<float*>(memory);
    float* gradients = signals + ROWS * stride;
    float* totals = gradients + ROWS * longer;
    const int lane = threadIdx.x % 32, row = lane % ROWS, warps = blockDim.x / 32;
    for (int at = threadIdx.x; at < padded; at += blockDim.x) totals[at] = 0;
    for (int first = 0; first < batch; first += ROWS) {
        __syncthreads();
        fill<false>(signals, stride, k, first, ROWS, batch, channels, length);
        fill<false>(gradients, longer, gradient, first, ROWS, batch, channels, length);
        __syncthreads();
        for (int pair = threadIdx.x / 32; 2 * pair < tiles; pair += warps) {
            for (int half = 0; half < 2; half++) {
                const int tile = half ? tiles - 1 - pair : pair;
                if (half && 2 * pair == tiles - 1) break;
                const int start = tile * TILE + lane / ROWS * LAGS;
                const float* left = signals + row * stride;
                const float* right = gradients + row * longer + start;
                float sum[LAGS], window[LAGS + STEPS];
#pragma unroll
                for (int i = 0; i < LAGS; i += 4) {
                    float4 four = *reinterpret_cast<const float4*>(right + i);
                    window[i] = four.x, window[i + 1] = four.y, window[i + 2] = four.z, window[i + 3] = four.w;
                    sum[i] = sum[i + 1] = sum[i + 2] = sum[i + 3] = 0;
                }
#pragma unroll 1
                for (int s = 0; s < padded - tile * TILE; s += STEPS) {
#pragma unroll
                    for (int step = 0; step < STEPS; step += 4) {
                        float4 next = *reinterpret_cast<const float4*>(right + s + LAGS + step);
                        float4 given = *reinterpret_cast<const float4*>(left + s + step);
#pragma unroll
                        for (int at = 0; at < 4; at++) {
                            window[LAGS + step + at] = element(next, at);
#pragma unroll
                            for (int i = 0; i < LAGS; i++) sum[i] += window[step + at + i] * element(given, at);
                        }
                    }
#pragma unroll
                    for (int i = 0; i < LAGS; i++) window[i] = window[STEPS + i];
                }
                halve<ROWS / 2, LAGS / 2>(sum, lane);
                totals[start + 2 * row] += sum[0];
                totals[start + 2 * row + 1] += sum[1];
            }
        }
    }
    __syncthreads();
    for (int place = threadIdx.x; place < length; place += blockDim.x)
        result[(long long)blockIdx.x * length + place] = totals[length - 1 - place];
}
