// What CUDA C++ needs to run on a CPU, one thread at a time: each thread of a block is a fiber, which runs until it waits
// for its block or its warp. For tests of index arithmetic: there are no races here, and nothing is fast.
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __shared__
#define __launch_bounds__(...)

struct dim3 { unsigned x = 1, y = 1, z = 1; };
struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((std::uint64_t)a * b >> 32); }
inline void sincospif(float x, float* sine, float* cosine) { *sine = sin(M_PI * x), *cosine = cos(M_PI * x); }
inline float __logf(float x) { return logf(x); }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline void __sincosf(float x, float* sine, float* cosine) { *sine = sinf(x), *cosine = cosf(x); }

static dim3 gridDim, blockDim, blockIdx, threadIdx;
float4 memory[(227 << 10) / 16];  // the dynamic shared memory of the one block that runs

enum Waiting { NOTHING, BLOCK, WARP, ENDED };
struct Fiber { ucontext_t context; std::vector<char> stack; Waiting waiting; float told; };
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static std::function<void()> body;

static void wait_for(Waiting what) {
    Fiber& mine = fibers[threadIdx.x];
    mine.waiting = what;
    swapcontext(&mine.context, &scheduler);
}
inline void __syncthreads() { wait_for(BLOCK); }
inline float __shfl_xor_sync(unsigned, float value, int apart) {
    const unsigned self = threadIdx.x;
    fibers[self].told = value;
    wait_for(WARP);
    float found = fibers[self ^ apart].told;
    wait_for(WARP);
    return found;
}

static void run_fiber() {
    body();
    wait_for(ENDED);
}

// Let those go on who wait for a group of which everyone waits or has ended.
static void release(unsigned first, unsigned last, Waiting what) {
    for (unsigned at = first; at < last; at++)
        if (fibers[at].waiting != what && fibers[at].waiting != ENDED) return;
    for (unsigned at = first; at < last; at++)
        if (fibers[at].waiting == what) fibers[at].waiting = NOTHING;
}

static void run_block(unsigned shared) {
    std::memset(memory, 0xFF, shared);  // NaN where nothing was written
    fibers.resize(blockDim.x);
    for (Fiber& fiber : fibers) {
        fiber.stack.resize(32 << 10);
        fiber.waiting = NOTHING;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        makecontext(&fiber.context, run_fiber, 0);
    }
    for (bool some = true; some;) {
        some = false;
        for (unsigned at = 0; at < blockDim.x; at++) {
            if (fibers[at].waiting != NOTHING) continue;
            some = true;
            threadIdx.x = at;
            swapcontext(&scheduler, &fibers[at].context);
        }
        for (unsigned at = 0; at < blockDim.x; at += 32) release(at, std::min(at + 32, blockDim.x), WARP);
        release(0, blockDim.x, BLOCK);
        for (const Fiber& fiber : fibers) some = some || fiber.waiting == NOTHING;
    }
}

static void run_grid(const unsigned* grid, unsigned block, unsigned shared, std::function<void()> kernel) {
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block, 1, 1};
    body = std::move(kernel);
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) run_block(shared);
}
