// Padding with staggered bricks: pixel (x, y), y counted upwards, takes the tile's pixel after whole tiles are taken off.

__device__ int floor_divide(int a, int b) {
    int quotient = a / b;
    return quotient - (a - quotient * b < 0);
}

// One thread a pixel.
extern "C" __global__ void plain(
    const float* tile, float* image, int height, int width, int tile_height, int tile_width,
    int origin_x, int origin_y, int skew) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y;
    if (j >= width) return;
    int y = height - 1 - i - origin_y;
    int v = floor_divide(y, tile_height);
    int x = j - origin_x - v * skew;
    int u = floor_divide(x, tile_width);
    image[(long long)i * width + j] = tile[(tile_height - 1 - (y - v * tile_height)) * tile_width + x - u * tile_width];
}

// One block a row. The row of the tile is turned in shared memory so that its first element belongs to column 0, and
// goes on with three more of its beginning; threads walk along the image without a division and store 16 bytes at once.
extern "C" __global__ void tuned(
    const float* tile, float* image, int height, int width, int tile_height, int tile_width,
    int origin_x, int origin_y, int skew) {
    extern __shared__ float4 memory[];
    float* row = reinterpret_cast<float*>(memory);
    int i = blockIdx.x;
    int y = height - 1 - i - origin_y;
    int v = floor_divide(y, tile_height);
    int x = -origin_x - v * skew;
    int start = x - floor_divide(x, tile_width) * tile_width;
    const float* source = tile + (tile_height - 1 - (y - v * tile_height)) * tile_width;
    for (int at = threadIdx.x; at < tile_width + 3; at += blockDim.x) row[at] = source[(start + at) % tile_width];
    __syncthreads();
    float* target = image + (long long)i * width;
    if (width % 4) {
        for (int j = threadIdx.x; j < width; j += blockDim.x) target[j] = row[j % tile_width];
        return;
    }
    int column = 4 * threadIdx.x % tile_width;
    int step = 4 * blockDim.x % tile_width;
    for (int j = 4 * threadIdx.x; j < width; j += 4 * blockDim.x) {
        float4 found = tile_width % 4 == 0
            ? *reinterpret_cast<const float4*>(row + column)
            : make_float4(row[column], row[column + 1], row[column + 2], row[column + 3]);
        *reinterpret_cast<float4*>(target + j) = found;
        column += step;
        if (column >= tile_width) column -= tile_width;
    }
}
