// The same work as benches/gpu/main.rs in CUDA C++: one line `name value` for each case, the best of several block sizes.
// nvcc -O3 -arch=native reference.cu -o reference -lcuda

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <utility>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const size_t N = size_t(1) << 27;
static const int BODIES = 65536;

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
__global__ void nothing() {}

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

int main() {
    double *a, *b, *c;
    CHECK(cudaMalloc(&a, N * sizeof(double)));
    CHECK(cudaMalloc(&b, N * sizeof(double)));
    CHECK(cudaMalloc(&c, N * sizeof(double)));
    CHECK(cudaMemset(a, 0, N * sizeof(double)));
    CHECK(cudaMemset(b, 0, N * sizeof(double)));
    CHECK(cudaMemset(c, 0, N * sizeof(double)));
    double bytes = N * sizeof(double) / 1e9;
    printf("gpu.stream.copy %.6g\n", 2 * bytes / best_block(50, [&](int k) { copy<<<N / k, k>>>(a, c); }));
    printf("gpu.stream.mul %.6g\n", 2 * bytes / best_block(50, [&](int k) { mul<<<N / k, k>>>(b, c, 0.4); }));
    printf("gpu.stream.add %.6g\n", 3 * bytes / best_block(50, [&](int k) { add<<<N / k, k>>>(a, b, c); }));
    printf("gpu.stream.triad %.6g\n", 3 * bytes / best_block(50, [&](int k) { triad<<<N / k, k>>>(a, b, c, 0.4); }));

    float4 *bodies, *forces;
    CHECK(cudaMalloc(&bodies, BODIES * sizeof(float4)));
    CHECK(cudaMalloc(&forces, BODIES * sizeof(float4)));
    CHECK(cudaMemset(bodies, 0, BODIES * sizeof(float4)));
    double t = best_block(10, [&](int k) { nbody<<<(BODIES + k - 1) / k, k>>>(bodies, forces, BODIES); });
    printf("gpu.nbody %.6g\n", double(BODIES) * BODIES / t / 1e9);

    const int LAUNCHES = 20000;
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    t = best_of(10, [&] {
        for (int i = 0; i < LAUNCHES; i++) nothing<<<1, 256, 0, stream>>>();
    });
    printf("gpu.launch %.6g\n", t / LAUNCHES * 1e6);
    double latency = best_of(10, [&] {
        for (int i = 0; i < 1000; i++) {
            nothing<<<1, 256, 0, stream>>>();
            CHECK(cudaStreamSynchronize(stream));
        }
    });
    printf("gpu.latency %.6g\n", latency / 1000 * 1e6);

    const std::pair<size_t, const char *> SIZES[] = {{size_t(64) << 20, ""}, {size_t(1) << 30, ".1gib"}};
    for (const auto &entry : SIZES) {
        const size_t size = entry.first;
        const char *name = entry.second;
        void *host;
        CHECK(cudaMallocHost(&host, size));
        t = best_of(20, [&] { CHECK(cudaMemcpyAsync(a, host, size, cudaMemcpyHostToDevice, stream)); });
        printf("gpu.copy.to_device%s %.6g\n", name, size / t / 1e9);
        t = best_of(20, [&] { CHECK(cudaMemcpyAsync(host, a, size, cudaMemcpyDeviceToHost, stream)); });
        printf("gpu.copy.to_host%s %.6g\n", name, size / t / 1e9);
        CHECK(cudaFreeHost(host));
    }
}
