// The same work as benches/gpu/main.rs in CUDA C++: one line `name value` for each case, the best of several block sizes.
// Arguments are `--seed N`, from which random inputs come, and the names of the figures to measure; without one all are.
// nvcc -O3 -arch=native reference.cu -o reference -lcuda

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cstring>
#include <cub/cub.cuh>
#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define CHECK_DRIVER(call)                                                                                             \
    do {                                                                                                               \
        CUresult result = (call);                                                                                      \
        if (result != CUDA_SUCCESS) {                                                                                  \
            const char *text = nullptr;                                                                                \
            cuGetErrorString(result, &text);                                                                           \
            fprintf(stderr, "%s: %s\n", #call, text ? text : "unknown error");                                         \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const size_t N = size_t(1) << 27;
static const int BODIES = 65536;

// Splitmix64.
static const uint64_t GAMMA = 0x9e3779b97f4a7c15;
__host__ __device__ uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}
__device__ uint64_t mixed(uint64_t i) { return mix((i + 1) * GAMMA); }
__global__ void copy(const double *a, double *c) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    c[i] = a[i];
}
__global__ void mul(double *b, const double *c, double s) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    b[i] = s * c[i];
}
__global__ void add(const double *a, const double *b, double *c) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    c[i] = a[i] + b[i];
}
__global__ void triad(double *a, const double *b, const double *c, double s) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    a[i] = b[i] + s * c[i];
}
__global__ void nbody(const float4 *bodies, float4 *forces, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 own = bodies[i];
    float x = 0, y = 0, z = 0;
    for (int j = 0; j < n; j++) {
        float4 other = bodies[j];
        float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
        float d = dx * dx + dy * dy + dz * dz + 1e-6f;
        float r = 1.0f / sqrtf(d);
        float f = other.w * r * r * r;
        x += f * dx;
        y += f * dy;
        z += f * dz;
    }
    forces[i] = make_float4(x, y, z, 0);
}
// Places in a cube.
__global__ void any_bodies(float4 *bodies, int n, uint64_t seed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto place = [=](int axis) { return float(mixed(seed + 3 * uint64_t(i) + axis) >> 40) / float(1 << 23) - 1; };
    if (i < n) bodies[i] = make_float4(place(0), place(1), place(2), 1);
}
// Tiles of as many bodies as a block has threads in shared memory.
template <int THREADS> __global__ void nbody_local(const float4 *bodies, float4 *forces, int n) {
    __shared__ float4 tile[THREADS];
    int i = blockIdx.x * THREADS + threadIdx.x;
    float4 own = bodies[i];
    float x = 0, y = 0, z = 0;
    for (int first = 0; first < n; first += THREADS) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < THREADS; j++) {
            float4 other = tile[j];
            float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-6f);
            float f = other.w * r * r * r;
            x += f * dx;
            y += f * dy;
            z += f * dz;
        }
        __syncthreads();
    }
    forces[i] = make_float4(x, y, z, 0);
}
// Square matrices by tiles. Extents are multiples of the tile's.
template <int TILE> __global__ void gemm(const float *a, const float *b, float *c, size_t n) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int y = threadIdx.y, x = threadIdx.x;
    size_t row = size_t(blockIdx.y) * TILE + y, column = size_t(blockIdx.x) * TILE + x;
    float sum = 0;
    for (size_t step = 0; step < n / TILE; step++) {
        left[y][x] = a[row * n + step * TILE + x];
        right[y][x] = b[(step * TILE + y) * n + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++) sum += left[y][k] * right[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
// Lists: a ring of nodes in the order of a generator that comes by all numbers below a power of two.
static const size_t NODES = size_t(1) << 24, LISTS = size_t(1) << 18;
static const int STEPS = 64;
struct alignas(16) Node {
    const Node *next;
    float value;
};
__global__ void make_ring(Node *nodes, uint64_t factor, uint64_t step) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    nodes[i] = {nodes + (i * factor + step) % NODES, float(i % 16)};
}
// With generic addresses, or with the promise that they are of global memory.
template <bool GLOBAL> __global__ void follow(const Node *nodes, float *sums) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const Node *at = nodes + i;
    float sum = 0;
    for (int step = 0; step < STEPS; step++) {
        if (GLOBAL) __builtin_assume(__isGlobal(at));
        sum += at->value;
        at = at->next;
    }
    sums[i] = sum;
}
// Numbers from -1 to 1.
__global__ void any_floats(float *to, size_t n, uint64_t seed) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) to[i] = float(mixed(seed + i) >> 40) / float(1 << 23) - 1;
}
__global__ void any_bytes(uint4 *to, size_t n, bool equal, uint64_t seed) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint64_t low = mixed(seed + 2 * i), high = mixed(seed + 2 * i + 1);
    uint4 any = make_uint4(uint32_t(low), uint32_t(low >> 32), uint32_t(high), uint32_t(high >> 32));
    to[i] = equal ? make_uint4(0x4d4d4d4d, 0x4d4d4d4d, 0x4d4d4d4d, 0x4d4d4d4d) : any;
}
__device__ void count_bytes(unsigned *own, uint32_t word) {
    atomicAdd(&own[word & 255], 1u);
    atomicAdd(&own[word >> 8 & 255], 1u);
    atomicAdd(&own[word >> 16 & 255], 1u);
    atomicAdd(&own[word >> 24], 1u);
}
// Each block has bins of its own, and counts 16 times 16 bytes for each thread.
template <int THREADS> __global__ void histogram(const uint4 *runs, unsigned *bins) {
    __shared__ unsigned own[256];
    if (threadIdx.x < 256) own[threadIdx.x] = 0;
    __syncthreads();
    const uint4 *part = runs + size_t(blockIdx.x) * THREADS * 16;
#pragma unroll
    for (int step = 0; step < 16; step++) {
        uint4 run = part[step * THREADS + threadIdx.x];
        count_bytes(own, run.x);
        count_bytes(own, run.y);
        count_bytes(own, run.z);
        count_bytes(own, run.w);
    }
    __syncthreads();
    if (threadIdx.x < 256) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
__global__ void any_doubles(double *to, size_t n, uint64_t seed) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) to[i] = double(mixed(seed + i) >> 11) / double(uint64_t(1) << 53);
}
// Sums up to each number of its block.
template <int THREADS> __global__ void block_scan(const uint32_t *from, uint32_t *to) {
    using Scan = cub::BlockScan<uint32_t, THREADS>;
    __shared__ typename Scan::TempStorage memory;
    size_t i = size_t(blockIdx.x) * THREADS + threadIdx.x;
    uint32_t own = from[i];
    Scan(memory).InclusiveSum(own, own);
    to[i] = own;
}
// The sum of each block's numbers.
template <int THREADS> __global__ void block_reduce(const uint32_t *from, uint32_t *to) {
    using Reduce = cub::BlockReduce<uint32_t, THREADS>;
    __shared__ typename Reduce::TempStorage memory;
    uint32_t sum = Reduce(memory).Sum(from[size_t(blockIdx.x) * THREADS + threadIdx.x]);
    if (threadIdx.x == 0) to[blockIdx.x] = sum;
}
__global__ void nothing() {}
__global__ void tiny(float *data, int n, float added) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = data[i] * 0.5f + added;
}
template <int KIND> __global__ void step(float *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = data[i] * 0.5f + float(KIND);
}

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename F> static double best_of(int repetitions, F run) {
    double best = 1e300;
    for (int i = 0; i < repetitions; i++) {
        double start = now();
        run();
        CHECK(cudaDeviceSynchronize());
        best = std::min(best, now() - start);
    }
    CHECK(cudaGetLastError());
    return best;
}

template <typename F> static double best_block(int repetitions, F run) {
    double best = 1e300;
    for (int block = 128; block <= 1024; block *= 2) {
        run(block);
        CHECK(cudaDeviceSynchronize());
        best = std::min(best, best_of(repetitions, [&] { run(block); }));
    }
    return best;
}

// The shortest time of what is launched, in seconds of the device.
template <typename F> static double shortest(int repetitions, F run) {
    cudaEvent_t start, end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    float best = 1e30f;
    for (int i = 0; i <= repetitions; i++) {
        CHECK(cudaEventRecord(start));
        run();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float time;
        CHECK(cudaEventElapsedTime(&time, start, end));
        best = std::min(best, time);
    }
    CHECK(cudaGetLastError());
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    return best * 1e-3;
}

static CUfunction function_of(const void *kernel) {
    cudaFunction_t function;
    CHECK(cudaGetFuncBySymbol(&function, kernel));
    return function;
}

// What the kernels of a chain add, in turn.
static const float ADDED[] = {1, 2, 3};

// A kernel of a chain on one float.
static void launch_tiny(CUfunction function, CUstream stream, float *data, int i) {
    int n = 1;
    float added = ADDED[i % 3];
    void *parameters[] = {&data, &n, &added};
    CHECK_DRIVER(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr));
}

// So many kernels of a chain as a graph, each after the one before.
static CUgraphExec graph_of_tiny(CUfunction function, float *data, int count) {
    CUgraph graph;
    CHECK_DRIVER(cuGraphCreate(&graph, 0));
    CUgraphNode previous = nullptr;
    for (int i = 0; i < count; i++) {
        int n = 1;
        float added = ADDED[i % 3];
        void *parameters[] = {&data, &n, &added};
        CUDA_KERNEL_NODE_PARAMS node = {};
        node.func = function;
        node.gridDimX = node.gridDimY = node.gridDimZ = 1;
        node.blockDimX = 32;
        node.blockDimY = node.blockDimZ = 1;
        node.kernelParams = parameters;
        CUgraphNode next;
        CHECK_DRIVER(cuGraphAddKernelNode(&next, graph, i > 0 ? &previous : nullptr, i > 0 ? 1 : 0, &node));
        previous = next;
    }
    CUgraphExec executable;
    CHECK_DRIVER(cuGraphInstantiateWithFlags(&executable, graph, 0));
    CHECK_DRIVER(cuGraphDestroy(graph));
    return executable;
}

static const char *const FIGURES[] = {
    "gpu.stream.copy",
    "gpu.stream.mul",
    "gpu.stream.add",
    "gpu.stream.triad",
    "gpu.nbody",
    "gpu.gemm.tile16",
    "gpu.gemm.tile32",
    "gpu.nbody.local",
    "gpu.histogram",
    "gpu.histogram.equal",
    "gpu.sum.f64",
    "gpu.sum.f64.mean",
    "gpu.sum.f64.small",
    "gpu.blockscan",
    "gpu.blockreduce",
    "gpu.list",
    "gpu.launch",
    "gpu.chain.tiny",
    "gpu.chain.tiny.graph",
    "gpu.burst.50",
    "gpu.burst.10",
    "gpu.mixed",
    "gpu.mixed.2",
    "gpu.mixed.3",
    "gpu.mixed.4",
    "gpu.mixed.16",
    "gpu.latency",
    "gpu.copy.to_device",
    "gpu.copy.to_host",
    "gpu.copy.to_device.1gib",
    "gpu.copy.to_host.1gib",
};

// The arguments.
static uint64_t seed = 1;
static int n_names;
static char **names;

// Whether a figure is to be measured.
static bool wants(const char *figure) {
    for (int i = 0; i < n_names; i++) {
        if (strcmp(names[i], figure) == 0) return true;
    }
    return n_names == 0;
}

static bool is_known(const char *name) {
    for (const char *figure : FIGURES) {
        if (strcmp(name, figure) == 0) return true;
    }
    return false;
}

// Measures and prints a figure if it is wanted.
template <typename F> static void figure(const char *name, F measure) {
    if (!wants(name)) return;
    double value = measure();
    printf("%s %.6g\n", name, value);
}

int main(int argc, char **argv) {
    int n_options = argc > 2 && strcmp(argv[1], "--seed") == 0 ? 2 : 0;
    if (n_options) seed = strtoull(argv[2], nullptr, 10);
    n_names = argc - 1 - n_options;
    names = argv + 1 + n_options;
    for (int i = 0; i < n_names; i++) {
        if (!is_known(names[i])) {
            fprintf(stderr, "%s is no figure\n", names[i]);
            return 2;
        }
    }
    double *a, *b, *c;
    CHECK(cudaMalloc(&a, N * sizeof(double)));
    CHECK(cudaMalloc(&b, N * sizeof(double)));
    CHECK(cudaMalloc(&c, N * sizeof(double)));
    CHECK(cudaMemset(a, 0, N * sizeof(double)));
    CHECK(cudaMemset(b, 0, N * sizeof(double)));
    CHECK(cudaMemset(c, 0, N * sizeof(double)));
    double bytes = N * sizeof(double) / 1e9;
    figure("gpu.stream.copy", [&] { return 2 * bytes / best_block(50, [&](int k) { copy<<<N / k, k>>>(a, c); }); });
    figure("gpu.stream.mul", [&] { return 2 * bytes / best_block(50, [&](int k) { mul<<<N / k, k>>>(b, c, 0.4); }); });
    figure("gpu.stream.add", [&] { return 3 * bytes / best_block(50, [&](int k) { add<<<N / k, k>>>(a, b, c); }); });
    figure("gpu.stream.triad",
           [&] { return 3 * bytes / best_block(50, [&](int k) { triad<<<N / k, k>>>(a, b, c, 0.4); }); });

    float4 *bodies, *forces;
    CHECK(cudaMalloc(&bodies, BODIES * sizeof(float4)));
    CHECK(cudaMalloc(&forces, BODIES * sizeof(float4)));
    any_bodies<<<BODIES / 256, 256>>>(bodies, BODIES, seed);
    figure("gpu.nbody", [&] {
        double t = best_block(10, [&](int k) { nbody<<<(BODIES + k - 1) / k, k>>>(bodies, forces, BODIES); });
        return double(BODIES) * BODIES / t / 1e9;
    });

    if (wants("gpu.gemm.tile16") || wants("gpu.gemm.tile32")) {
        const size_t SIDE = 4096;
        const double amount = 2e-9 * SIDE * SIDE * SIDE;
        float *matrices[3];
        for (float *&matrix : matrices) {
            CHECK(cudaMalloc(&matrix, SIDE * SIDE * sizeof(float)));
            any_floats<<<SIDE * SIDE / 256, 256>>>(matrix, SIDE * SIDE, seed + (uint64_t(&matrix - matrices) << 28));
        }
        CHECK(cudaDeviceSynchronize());
        auto tiles = [&](auto kernel, unsigned tile) {
            dim3 blocks(SIDE / tile, SIDE / tile), threads(tile, tile);
            auto run = [&] { kernel<<<blocks, threads>>>(matrices[0], matrices[1], matrices[2], SIDE); };
            best_of(1, run);
            return amount / best_of(10, run);
        };
        figure("gpu.gemm.tile16", [&] { return tiles(gemm<16>, 16); });
        figure("gpu.gemm.tile32", [&] { return tiles(gemm<32>, 32); });
        for (float *matrix : matrices) CHECK(cudaFree(matrix));
    }
    figure("gpu.nbody.local", [&] {
        auto time = [&](auto kernel, int threads) {
            auto run = [&] { kernel<<<BODIES / threads, threads>>>(bodies, forces, BODIES); };
            best_of(1, run);
            return best_of(10, run);
        };
        double t = std::min({time(nbody_local<128>, 128), time(nbody_local<256>, 256), time(nbody_local<512>, 512)});
        return double(BODIES) * BODIES / t / 1e9;
    });
    auto counted = [&](bool equal) {
        const size_t BYTES = size_t(1) << 28, RUNS = BYTES / sizeof(uint4);
        uint4 *runs;
        unsigned *bins;
        CHECK(cudaMalloc(&runs, BYTES));
        CHECK(cudaMalloc(&bins, 256 * sizeof(unsigned)));
        CHECK(cudaMemset(bins, 0, 256 * sizeof(unsigned)));
        any_bytes<<<RUNS / 256, 256>>>(runs, RUNS, equal, seed);
        auto time = [&](auto kernel, int threads) {
            auto run = [&] { kernel<<<RUNS / (threads * 16), threads>>>(runs, bins); };
            best_of(1, run);
            return best_of(10, run);
        };
        double t = std::min({time(histogram<256>, 256), time(histogram<512>, 512), time(histogram<1024>, 1024)});
        CHECK(cudaFree(runs));
        CHECK(cudaFree(bins));
        return BYTES / t / 1e9;
    };
    figure("gpu.histogram", [&] { return counted(false); });
    figure("gpu.histogram.equal", [&] { return counted(true); });

    auto sum_time = [&](size_t n) {
        size_t bytes = 0;
        CHECK(cub::DeviceReduce::Sum(nullptr, bytes, a, c, n));
        void *memory;
        CHECK(cudaMalloc(&memory, bytes));
        any_doubles<<<N / 256, 256>>>(a, N, seed);
        double t = shortest(20, [&] { CHECK(cub::DeviceReduce::Sum(memory, bytes, a, c, n)); });
        CHECK(cudaFree(memory));
        return t;
    };
    // The geometric mean.
    auto mean = [&](std::initializer_list<int> sizes, auto of) {
        double sum = 0;
        for (int size : sizes) sum += std::log(of(size));
        return std::exp(sum / double(sizes.size()));
    };
    auto rate = [&](int size) { return double(sizeof(double) << size) / sum_time(size_t(1) << size) / 1e9; };
    figure("gpu.sum.f64", [&] { return rate(27); });
    figure("gpu.sum.f64.mean", [&] { return mean({20, 21, 22, 23, 24, 25, 26, 27}, rate); });
    // What ours may take: 3 us more.
    figure("gpu.sum.f64.small",
           [&] { return mean({0, 8, 12, 16, 19}, [&](int size) { return sum_time(size_t(1) << size) * 1e6 + 3; }); });
    auto blocks = [&](auto kernels, double passes) {
        // The arrays of the streams have twice the room.
        const uint32_t *from = (const uint32_t *)b;
        uint32_t *to = (uint32_t *)c;
        double t = 1e300;
        kernels([&](auto kernel, int threads) {
            auto run = [&] { kernel<<<N / threads, threads>>>(from, to); };
            best_of(1, run);
            t = std::min(t, best_of(20, run));
        });
        return passes * N * sizeof(uint32_t) / t / 1e9;
    };
    figure("gpu.blockscan", [&] {
        auto all = [](auto run) {
            run(block_scan<128>, 128);
            run(block_scan<256>, 256);
            run(block_scan<512>, 512);
        };
        return blocks(all, 2);
    });
    figure("gpu.blockreduce", [&] {
        auto all = [](auto run) {
            run(block_reduce<128>, 128);
            run(block_reduce<256>, 256);
            run(block_reduce<512>, 512);
        };
        return blocks(all, 1);
    });

    figure("gpu.list", [&] {
        Node *nodes;
        float *sums;
        CHECK(cudaMalloc(&nodes, NODES * sizeof(Node)));
        CHECK(cudaMalloc(&sums, LISTS * sizeof(float)));
        uint64_t factor = ((mix(seed + GAMMA) % NODES) & ~uint64_t(7)) | 5, step = (mix(seed + 2 * GAMMA) % NODES) | 1;
        make_ring<<<NODES / 256, 256>>>(nodes, factor, step);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        double t = best_block(20, [&](int k) { follow<false><<<LISTS / k, k>>>(nodes, sums); });
        t = std::min(t, best_block(20, [&](int k) { follow<true><<<LISTS / k, k>>>(nodes, sums); }));
        CHECK(cudaFree(nodes));
        CHECK(cudaFree(sums));
        return double(LISTS) * STEPS / t / 1e9;
    });

    const int LAUNCHES = 20000;
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    figure("gpu.launch", [&] {
        double t = best_of(10, [&] {
            for (int i = 0; i < LAUNCHES; i++) nothing<<<1, 256, 0, stream>>>();
        });
        return t / LAUNCHES * 1e6;
    });

    // Chains of kernels of one float, launched one by one and as graphs.
    const int CHAIN = 100000, NODES = 1000;
    float *data;
    CHECK(cudaMalloc(&data, 4 * sizeof(float)));
    CHECK(cudaMemset(data, 0, 4 * sizeof(float)));
    CUfunction function = function_of((const void *)tiny);
    figure("gpu.chain.tiny", [&] {
        double t = best_of(4, [&] {
            for (int i = 0; i < CHAIN; i++) launch_tiny(function, stream, data, i);
        });
        return t / CHAIN * 1e6;
    });
    figure("gpu.chain.tiny.graph", [&] {
        CUgraphExec graph = graph_of_tiny(function, data, NODES);
        double t = best_of(4, [&] {
            for (int i = 0; i < CHAIN / NODES; i++) CHECK_DRIVER(cuGraphLaunch(graph, stream));
        });
        CHECK_DRIVER(cuGraphExecDestroy(graph));
        return t / CHAIN * 1e6;
    });
    auto burst = [&](int size) {
        int bursts = LAUNCHES / size;
        double t = best_of(10, [&] {
            for (int i = 0; i < bursts; i++) {
                for (int k = 0; k < size; k++) launch_tiny(function, stream, data, k);
                CHECK_DRIVER(cuStreamSynchronize(stream));
            }
        });
        return t / (bursts * size) * 1e6;
    };
    figure("gpu.burst.50", [&] { return burst(50); });
    figure("gpu.burst.10", [&] { return burst(10); });
    auto mixed_chain = [&](uint32_t n_functions) {
        const CUfunction steps[] = {
            function_of((const void *)step<0>),  function_of((const void *)step<1>),  function_of((const void *)step<2>),
            function_of((const void *)step<3>),  function_of((const void *)step<4>),  function_of((const void *)step<5>),
            function_of((const void *)step<6>),  function_of((const void *)step<7>),  function_of((const void *)step<8>),
            function_of((const void *)step<9>),  function_of((const void *)step<10>), function_of((const void *)step<11>),
            function_of((const void *)step<12>), function_of((const void *)step<13>), function_of((const void *)step<14>),
            function_of((const void *)step<15>),
        };
        uint32_t state = 1;
        double t = best_of(10, [&] {
            for (int i = 0; i < LAUNCHES; i++) {
                state = state * 1664525u + 1013904223u;
                int n = 1;
                void *parameters[] = {&data, &n};
                CUfunction function = steps[(state >> 16) % n_functions];
                CHECK_DRIVER(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr));
            }
        });
        return t / LAUNCHES * 1e6;
    };
    figure("gpu.mixed", [&] { return mixed_chain(8); });
    figure("gpu.mixed.2", [&] { return mixed_chain(2); });
    figure("gpu.mixed.3", [&] { return mixed_chain(3); });
    figure("gpu.mixed.4", [&] { return mixed_chain(4); });
    figure("gpu.mixed.16", [&] { return mixed_chain(16); });
    figure("gpu.latency", [&] {
        double t = best_of(10, [&] {
            for (int i = 0; i < 1000; i++) {
                nothing<<<1, 256, 0, stream>>>();
                CHECK(cudaStreamSynchronize(stream));
            }
        });
        return t / 1000 * 1e6;
    });

    struct Copies {
        size_t size;
        const char *to_device, *to_host;
    };
    const Copies COPIES[] = {{size_t(64) << 20, "gpu.copy.to_device", "gpu.copy.to_host"},
                             {size_t(1) << 30, "gpu.copy.to_device.1gib", "gpu.copy.to_host.1gib"}};
    for (const Copies &copies : COPIES) {
        const size_t size = copies.size;
        if (!wants(copies.to_device) && !wants(copies.to_host)) continue;
        void *host;
        CHECK(cudaMallocHost(&host, size));
        figure(copies.to_device, [&] {
            double t = best_of(20, [&] { CHECK(cudaMemcpyAsync(a, host, size, cudaMemcpyHostToDevice, stream)); });
            return size / t / 1e9;
        });
        figure(copies.to_host, [&] {
            double t = best_of(20, [&] { CHECK(cudaMemcpyAsync(host, a, size, cudaMemcpyDeviceToHost, stream)); });
            return size / t / 1e9;
        });
        CHECK(cudaFreeHost(host));
    }
}
