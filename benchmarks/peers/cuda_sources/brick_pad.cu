// Padding with staggered bricks by hand: one thread a pixel, and four pixels a thread with 16-byte stores.
// A block of the second stays in one row, whose part of the address is computed once a thread.

__device__ int floor_divide(int a, int b) {
    int quotient = a / b;
    return quotient - (a - quotient * b < 0);
}

extern "C" __global__ void one_pixel(
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

extern "C" __global__ void four_pixels(
    const float* tile, float* image, int height, int width, int tile_height, int tile_width,
    int origin_x, int origin_y, int skew) {
    int j = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    int i = blockIdx.y;
    if (j >= width) return;
    int y = height - 1 - i - origin_y;
    int v = floor_divide(y, tile_height);
    int x = j - origin_x - v * skew;
    int column = x - floor_divide(x, tile_width) * tile_width;
    const float* row = tile + (tile_height - 1 - (y - v * tile_height)) * tile_width;
    float4 found;
    found.x = row[column];
    column = column + 1 == tile_width ? 0 : column + 1;
    found.y = row[column];
    column = column + 1 == tile_width ? 0 : column + 1;
    found.z = row[column];
    column = column + 1 == tile_width ? 0 : column + 1;
    found.w = row[column];
    *reinterpret_cast<float4*>(image + (long long)i * width + j) = found;
}
