// The same work as benches/images/gpu.rs in CUDA C++, with plain loads and with texture objects.
// Reads lines `rate NAME` and `pixel NAME Y X` from its standard input, and answers each with a line: 10^9 pixels in a second by the best of
// several block sizes, or the four channels of a pixel of what was written last. `NAME` is that of a figure, as `resize.u8x4.texture`.
// The argument is `--seed N`, from which the picture comes.
// nvcc -O3 -arch=native reference.cu -o reference

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <map>
#include <memory>
#include <string>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

// The picture, and what it is resized to: by 1.7. Launches of which each measurement waits for the last.
static const int SIDE = 8192, SMALL = 4819, LAUNCHES = 10;
// The angle by which it is turned around its centre has this sine and cosine.
static const float SINE = 0.5f, COSINE = 0.8660254f;

// Splitmix64.
static const uint64_t GAMMA = 0x9e3779b97f4a7c15;
__device__ uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

__device__ float4 operator*(float a, float4 b) { return make_float4(a * b.x, a * b.y, a * b.z, a * b.w); }
__device__ float4 operator+(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// Formats: what is in memory, what kernels calculate with, and how one becomes the other. Normalized numbers are parts of 1, as from a texture.
struct F32 {
    typedef float Memory;
    typedef float Value;
    static constexpr cudaTextureReadMode MODE = cudaReadModeElementType;
    static __device__ Memory any(uint64_t bits) { return float(bits >> 40) / 16777216.0f; }
    static __device__ Value decode(Memory pixel) { return pixel; }
    static __device__ Memory encode(Value value) { return value; }
    static __device__ Value zero() { return 0; }
    static __device__ Value fetch(cudaTextureObject_t texture, float x, float y) { return tex2D<float>(texture, x, y); }
};
struct U8x4 {
    typedef uchar4 Memory;
    typedef float4 Value;
    static constexpr cudaTextureReadMode MODE = cudaReadModeNormalizedFloat;
    static __device__ Memory any(uint64_t bits) {
        return make_uchar4(bits & 255, bits >> 8 & 255, bits >> 16 & 255, bits >> 24 & 255);
    }
    static __device__ Value decode(Memory p) { return (1 / 255.0f) * make_float4(p.x, p.y, p.z, p.w); }
    static __device__ unsigned char channel(float value) {
        return (unsigned char)__float2uint_rn(__saturatef(value) * 255.0f);
    }
    static __device__ Memory encode(Value v) {
        return make_uchar4(channel(v.x), channel(v.y), channel(v.z), channel(v.w));
    }
    static __device__ Value zero() { return make_float4(0, 0, 0, 0); }
    static __device__ Value fetch(cudaTextureObject_t texture, float x, float y) { return tex2D<float4>(texture, x, y); }
};
// Without the products that make parts of 1: numbers of 0 to 255 are mixed as they are. Nothing else has the same pixels in kernels.
struct Raw : U8x4 {
    static __device__ Value decode(Memory p) { return make_float4(p.x, p.y, p.z, p.w); }
    static __device__ unsigned char channel(float value) {
        return (unsigned char)__float2uint_rn(fminf(fmaxf(value, 0.0f), 255.0f));
    }
    static __device__ Memory encode(Value v) {
        return make_uchar4(channel(v.x), channel(v.y), channel(v.z), channel(v.w));
    }
};
struct alignas(8) Halves {
    __half2 low, high;
};
struct F16x4 {
    typedef Halves Memory;
    typedef float4 Value;
    static constexpr cudaTextureReadMode MODE = cudaReadModeElementType;
    static __device__ Memory any(uint64_t bits) {
        auto part = [=](int at) { return float(bits >> (16 * at + 5) & 2047) / 2048.0f; };
        return {__floats2half2_rn(part(0), part(1)), __floats2half2_rn(part(2), part(3))};
    }
    static __device__ Value decode(Memory p) {
        float2 low = __half22float2(p.low), high = __half22float2(p.high);
        return make_float4(low.x, low.y, high.x, high.y);
    }
    static __device__ Memory encode(Value v) { return {__floats2half2_rn(v.x, v.y), __floats2half2_rn(v.z, v.w)}; }
    static __device__ Value zero() { return make_float4(0, 0, 0, 0); }
    static __device__ Value fetch(cudaTextureObject_t texture, float x, float y) { return tex2D<float4>(texture, x, y); }
};

template <typename F> __global__ void any_picture(typename F::Memory *pixels, uint64_t seed) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    pixels[i] = F::any(mix(seed + (i + 1) * GAMMA));
}

// How pixels are found: in memory, or by a texture object.
template <typename F> struct Plain {
    typedef typename F::Value Value;
    const typename F::Memory *__restrict__ pixels;
    int width, height;
    __device__ Value at(int x, int y) const { return F::decode(__ldg(pixels + size_t(y) * width + x)); }
    __device__ Value at_or_zero(int x, int y) const {
        return unsigned(x) < unsigned(width) && unsigned(y) < unsigned(height) ? at(x, y) : F::zero();
    }
    __device__ bool are_inside(int left, int top, int right, int bottom) const {
        return left >= 0 && top >= 0 && right < width && bottom < height;
    }
    __device__ static Value between(Value a, Value b, Value c, Value d, float u, float v) {
        return (1 - v) * ((1 - u) * a + u * b) + v * ((1 - u) * c + u * d);
    }
    // Between the four pixels around a place, as far as there are some.
    __device__ Value sample(float x, float y) const {
        float left = floorf(x - 0.5f), top = floorf(y - 0.5f);
        int x0 = int(left), y0 = int(top);
        auto clamped = [](int at, int extent) { return min(max(at, 0), extent - 1); };
        int xs[] = {clamped(x0, width), clamped(x0 + 1, width)}, ys[] = {clamped(y0, height), clamped(y0 + 1, height)};
        return between(at(xs[0], ys[0]), at(xs[1], ys[0]), at(xs[0], ys[1]), at(xs[1], ys[1]), x - 0.5f - left,
                       y - 0.5f - top);
    }
    // Zero beyond the edges.
    __device__ Value sample_or_zero(float x, float y) const {
        float left = floorf(x - 0.5f), top = floorf(y - 0.5f);
        int x0 = int(left), y0 = int(top);
        return between(at_or_zero(x0, y0), at_or_zero(x0 + 1, y0), at_or_zero(x0, y0 + 1), at_or_zero(x0 + 1, y0 + 1),
                       x - 0.5f - left, y - 0.5f - top);
    }
};
template <> __device__ float4 Plain<F16x4>::at(int x, int y) const {
    uint2 bits = __ldg((const uint2 *)pixels + size_t(y) * width + x);
    Halves halves;
    memcpy(&halves, &bits, sizeof halves);
    return F16x4::decode(halves);
}
template <typename F> struct Texture {
    cudaTextureObject_t texture;
    typedef typename F::Value Value;
    // Its borders are zero.
    __device__ static constexpr bool are_inside(int, int, int, int) { return true; }
    __device__ Value at(int x, int y) const { return F::fetch(texture, x + 0.5f, y + 0.5f); }
    __device__ Value at_or_zero(int x, int y) const { return at(x, y); }
    __device__ Value sample(float x, float y) const { return F::fetch(texture, x, y); }
    __device__ Value sample_or_zero(float x, float y) const { return F::fetch(texture, x, y); }
};

struct Weights {
    float of[5][5];
};

template <typename F, typename Source> __global__ void resize(Source from, typename F::Memory *to, int width, int height, float2 scale) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    to[size_t(y) * width + x] = F::encode(from.sample((x + 0.5f) * scale.x, (y + 0.5f) * scale.y));
}
template <typename F, typename Source> __global__ void rotate(Source from, typename F::Memory *to, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float cx = width / 2.0f, cy = height / 2.0f;
    float dx = x + 0.5f - cx, dy = y + 0.5f - cy;
    auto value = from.sample_or_zero(COSINE * dx - SINE * dy + cx, SINE * dx + COSINE * dy + cy);
    to[size_t(y) * width + x] = F::encode(value);
}
template <typename F, typename Source>
__global__ void convolve(Source from, typename F::Memory *to, int width, int height, const Weights weights) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    auto sum_of = [&](auto pixel) {
        typename F::Value sum = F::zero();
#pragma unroll
        for (int dy = 0; dy < 5; dy++) {
#pragma unroll
            for (int dx = 0; dx < 5; dx++) sum = sum + weights.of[dy][dx] * pixel(x + dx - 2, y + dy - 2);
        }
        return sum;
    };
    // Asked once for all pixels around, which is the fastest where a question costs anything.
    bool are_inside = from.are_inside(x - 2, y - 2, x + 2, y + 2);
    to[size_t(y) * width + x] = F::encode(are_inside ? sum_of([&](int x, int y) { return from.at(x, y); })
                                                     : sum_of([&](int x, int y) { return from.at_or_zero(x, y); }));
}

template <typename F> static double seconds(F f) {
    auto start = std::chrono::steady_clock::now();
    f();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Channels of one pixel for the other program.
template <typename F> __global__ void channels_of(const typename F::Memory *pixel, float *channels) {
    auto value = F::decode(*pixel);
    memcpy(channels, &value, sizeof value);
}

static uint64_t seed = 1;

// What a texture of the format has in memory.
template <typename F> struct TextureMemory {
    typedef typename F::Memory Type;
};
template <> struct TextureMemory<F16x4> {
    typedef float4 Type;
};

struct AnyPicture {
    virtual ~AnyPicture() {}
    virtual double rate(const std::string &work, const std::string &path) = 0;
    virtual void pixel(int y, int x) = 0;
};

// A picture of a format, and room for a result.
template <typename F> struct Picture : AnyPicture {
    typename F::Memory *from, *to;
    cudaArray_t array = nullptr;
    float *channels;
    std::map<std::string, cudaTextureObject_t> textures;
    int width = 0;

    Picture() {
        size_t bytes = size_t(SIDE) * SIDE * sizeof(*from);
        CHECK(cudaMalloc(&from, bytes));
        CHECK(cudaMalloc(&to, bytes));
        CHECK(cudaMallocManaged(&channels, 4 * sizeof(float)));
        any_picture<F><<<size_t(SIDE) * SIDE / 256, 256>>>(from, seed);
        CHECK(cudaDeviceSynchronize());
    }
    ~Picture() {
        for (auto &texture : textures) CHECK(cudaDestroyTextureObject(texture.second));
        if (array) CHECK(cudaFreeArray(array));
        CHECK(cudaFree(from));
        CHECK(cudaFree(to));
        CHECK(cudaFree(channels));
    }

    // A texture over the memory itself, or over an array of the same pixels.
    cudaTextureObject_t texture(bool is_array, bool is_linear, bool has_border) {
        std::string key = std::string(is_array ? "a" : "m") + (is_linear ? "l" : "p") + (has_border ? "b" : "c");
        if (textures.count(key)) return textures[key];
        bool is_half = std::is_same<F, F16x4>::value;
        cudaChannelFormatDesc format = is_half ? cudaCreateChannelDesc(16, 16, 16, 16, cudaChannelFormatKindFloat)
                                               : cudaCreateChannelDesc<typename TextureMemory<F>::Type>();
        cudaResourceDesc resource = {};
        if (is_array) {
            size_t row = SIDE * sizeof(*from);
            if (!array) {
                CHECK(cudaMallocArray(&array, &format, SIDE, SIDE));
                CHECK(cudaMemcpy2DToArray(array, 0, 0, from, row, row, SIDE, cudaMemcpyDeviceToDevice));
            }
            resource.resType = cudaResourceTypeArray;
            resource.res.array.array = array;
        } else {
            resource.resType = cudaResourceTypePitch2D;
            resource.res.pitch2D.devPtr = from;
            resource.res.pitch2D.desc = format;
            resource.res.pitch2D.width = SIDE;
            resource.res.pitch2D.height = SIDE;
            resource.res.pitch2D.pitchInBytes = SIDE * sizeof(*from);
        }
        cudaTextureDesc description = {};
        description.addressMode[0] = description.addressMode[1] =
            has_border ? cudaAddressModeBorder : cudaAddressModeClamp;
        description.filterMode = is_linear ? cudaFilterModeLinear : cudaFilterModePoint;
        description.readMode = F::MODE;
        cudaTextureObject_t object;
        CHECK(cudaCreateTextureObject(&object, &resource, &description, nullptr));
        return textures[key] = object;
    }

    template <typename Run> double best(int side, Run run) {
        width = side;
        const dim3 BLOCKS[] = {dim3(32, 4), dim3(32, 8), dim3(32, 16), dim3(64, 4), dim3(16, 16), dim3(128, 1), dim3(256, 1)};
        double least = 1e300;
        for (dim3 block : BLOCKS) {
            dim3 grid((side + block.x - 1) / block.x, (side + block.y - 1) / block.y);
            least = std::min(least, seconds([&] {
                                 for (int k = 0; k < LAUNCHES; k++) run(grid, block);
                             }));
        }
        return double(side) * side * LAUNCHES / least / 1e9;
    }

    template <typename Source> double of(const std::string &work, Source source) {
        const float scale = float(SIDE) / SMALL;
        if (work == "resize")
            return best(SMALL, [&](dim3 grid, dim3 block) {
                resize<F><<<grid, block>>>(source, to, SMALL, SMALL, make_float2(scale, scale));
            });
        if (work == "rotate")
            return best(SIDE, [&](dim3 grid, dim3 block) { rotate<F><<<grid, block>>>(source, to, SIDE, SIDE); });
        Weights weights;
        for (int y = 0; y < 5; y++) {
            for (int x = 0; x < 5; x++) weights.of[y][x] = float((3 - abs(y - 2)) * (3 - abs(x - 2))) / 81;
        }
        return best(SIDE, [&](dim3 grid, dim3 block) {
            convolve<F><<<grid, block>>>(source, to, SIDE, SIDE, weights);
        });
    }

    double rate(const std::string &work, const std::string &path) override {
        CHECK(cudaMemset(to, 0, size_t(SIDE) * SIDE * sizeof(*to)));
        if (path == "plain" || path == "raw") return of(work, Plain<F>{from, SIDE, SIDE});
        return of(work, Texture<F>{texture(path == "array", work != "convolve", work != "resize")});
    }

    void pixel(int y, int x) override {
        for (int i = 0; i < 4; i++) channels[i] = i == 3;
        channels_of<F><<<1, 1>>>(to + size_t(y) * width + x, channels);
        CHECK(cudaDeviceSynchronize());
        if (std::is_same<F, F32>::value) channels[1] = channels[2] = 0;
        float unit = std::is_same<F, Raw>::value ? 255 : 1;
        printf("%.9g %.9g %.9g %.9g\n", channels[0] / unit, channels[1] / unit, channels[2] / unit, channels[3] / unit);
    }
};

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--seed") == 0) seed = strtoull(argv[2], nullptr, 10);
    // Of one format at a time.
    std::unique_ptr<AnyPicture> picture;
    std::string made;
    char verb[16], name[64];
    while (scanf("%15s %63s", verb, name) == 2) {
        std::string text = name;
        size_t first = text.find('.'), second = text.find('.', first + 1);
        if (first == std::string::npos || second == std::string::npos) {
            fprintf(stderr, "%s is no figure\n", name);
            return 2;
        }
        std::string work = text.substr(0, first), format = text.substr(first + 1, second - first - 1);
        std::string path = text.substr(second + 1), wanted = path == "raw" ? "raw" : format;
        if (made != wanted) {
            picture.reset();
            if (wanted == "f32") picture.reset(new Picture<F32>);
            else if (wanted == "u8x4") picture.reset(new Picture<U8x4>);
            else if (wanted == "f16x4") picture.reset(new Picture<F16x4>);
            else if (wanted == "raw") picture.reset(new Picture<Raw>);
            else return 2;
            made = wanted;
        }
        if (strcmp(verb, "rate") == 0) {
            printf("%.6g\n", picture->rate(work, path));
        } else {
            int y, x;
            if (scanf("%d %d", &y, &x) != 2) return 2;
            picture->pixel(y, x);
        }
        fflush(stdout);
    }
}
