// The same work as in this folder's Rust files, as it is written in OpenCL C.

typedef struct __attribute__((aligned(16))) {
    float x, y, z, w;
} Body;

kernel void copy(global const double *restrict a, global const double *restrict unused, global double *restrict to) {
    size_t i = get_global_id(0);
    to[i] = a[i];
}

kernel void mul(global const double *restrict a, global const double *restrict unused, global double *restrict to) {
    size_t i = get_global_id(0);
    to[i] = 0.4 * a[i];
}

kernel void add(global const double *restrict a, global const double *restrict b, global double *restrict to) {
    size_t i = get_global_id(0);
    to[i] = a[i] + b[i];
}

kernel void triad(global const double *restrict a, global const double *restrict b, global double *restrict to) {
    size_t i = get_global_id(0);
    to[i] = a[i] + 0.4 * b[i];
}

kernel void nbody(global const Body *restrict bodies, global Body *restrict forces, uint n) {
    size_t i = get_global_id(0);
    Body own = bodies[i];
    float x = 0, y = 0, z = 0;
    for (uint j = 0; j < n; j++) {
        Body other = bodies[j];
        float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
        float r = 1.0f / sqrt(dx * dx + dy * dy + dz * dz + 1e-6f);
        float f = other.w * r * r * r;
        x += f * dx;
        y += f * dy;
        z += f * dz;
    }
    Body force = {x, y, z, 0};
    forces[i] = force;
}

kernel void mandelbrot(global uint *restrict image, uint limit, float step) {
    size_t column = get_global_id(0), row = get_global_id(1);
    float cx = -2.0f + step * (float)column, cy = -1.25f + step * (float)row;
    float x = 0, y = 0;
    uint n = 0;
    while (n < limit && x * x + y * y <= 4.0f) {
        float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
        n++;
    }
    image[row * get_global_size(0) + column] = n;
}

kernel void nothing() {}

static float below(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
    float tail =
        k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float c = 0.39894228f * exp(-0.5f * d * d) * tail;
    return d > 0 ? 1.0f - c : c;
}

kernel void black_scholes(global const float *restrict now, global const float *restrict strike,
                          global const float *restrict years, global float2 *restrict prices, float rate,
                          float volatility) {
    size_t i = get_global_id(0);
    float s = now[i], x = strike[i], t = years[i];
    float spread = volatility * sqrt(t);
    float d1 = (log(s / x) + (rate + 0.5f * volatility * volatility) * t) / spread;
    float c1 = below(d1), c2 = below(d1 - spread);
    float discounted = x * exp(-rate * t);
    prices[i] = (float2)(s * c1 - discounted * c2, discounted * (1.0f - c2) - s * (1.0f - c1));
}

kernel void spmv(global const uint *restrict rows, global const uint *restrict columns,
                 global const float *restrict values, global const float *restrict factors,
                 global float *restrict sums) {
    size_t i = get_global_id(0);
    float sum = 0;
    for (uint k = rows[i]; k < rows[i + 1]; k++) sum += values[k] * factors[columns[k]];
    sums[i] = sum;
}

kernel void stencil(global const float *restrict from, global float *restrict to, uint2 extent, float2 factors) {
    size_t x = get_global_id(0), y = get_global_id(1), i = y * extent.x + x;
    if (x >= extent.x || y >= extent.y) return;
    float own = from[i];
    if (x > 0 && y > 0 && x + 1 < extent.x && y + 1 < extent.y) {
        float around = from[i - 1] + from[i + 1] + from[i - extent.x] + from[i + extent.x];
        own = factors.x * own + factors.y * around;
    }
    to[i] = own;
}

#define REACH 5
#define TAPS 11

kernel void blur(global const uchar *restrict from, constant float *restrict weights, global float *restrict to,
                 uint2 extent) {
    int x = get_global_id(0), y = get_global_id(1), width = extent.x;
    if (x >= width || y >= (int)extent.y) return;
    global const uchar *row = from + y * width;
    float sum = 0;
    if (x >= REACH && x + REACH < width) {
        for (int k = 0; k < TAPS; k++) sum += weights[k] * row[x + k - REACH];
    } else {
        for (int k = 0; k < TAPS; k++) sum += weights[k] * row[clamp(x + k - REACH, 0, width - 1)];
    }
    to[y * width + x] = sum;
}

typedef struct {
    float centre[3], radius, mirror, colour;
} Sphere;

static float3 centre_of(global const Sphere *sphere) {
    return (float3)(sphere->centre[0], sphere->centre[1], sphere->centre[2]);
}

static float3 unit(float3 a) { return a * (1.0f / sqrt(dot(a, a))); }

kernel void rays(global const Sphere *restrict spheres, uint n, global float *restrict to, uint2 extent) {
    uint x = get_global_id(0), y = get_global_id(1);
    if (x >= extent.x || y >= extent.y) return;
    float2 place = (float2)(x - extent.x / 2.0f, y - extent.y / 2.0f) / (float)extent.x;
    float3 from = (float3)(0, 0, -4), direction = unit((float3)(place, 1));
    float light = 0, weight = 1;
    for (int bounce = 0; bounce < 5; bounce++) {
        float best = INFINITY;
        int met = -1;
        for (uint j = 0; j < n; j++) {
            float3 to_ray = from - centre_of(spheres + j);
            float along = dot(to_ray, direction);
            float square = along * along - dot(to_ray, to_ray) + spheres[j].radius * spheres[j].radius;
            if (square < 0) continue;
            float distance = -along - sqrt(square);
            if (distance > 1e-3f && distance < best) {
                best = distance;
                met = j;
            }
        }
        if (met < 0) {
            light += weight * 0.5f * (1 + direction.y);
            break;
        }
        from += direction * best;
        float3 normal = unit(from - centre_of(spheres + met));
        float lit = fmax(dot(normal, unit((float3)(1, 1, -1))), 0.1f);
        light += weight * (1 - spheres[met].mirror) * spheres[met].colour * lit;
        weight *= spheres[met].mirror;
        direction -= normal * (2 * dot(direction, normal));
        if (weight < 0.01f) break;
    }
    to[y * extent.x + x] = light;
}

#define GEMM(NAME, TILE)                                                                                               \
    kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void NAME(                                             \
        global const float *restrict a, global const float *restrict b, global float *restrict c, ulong n) {           \
        local float left[TILE][TILE], right[TILE][TILE];                                                               \
        size_t row = get_global_id(1), column = get_global_id(0);                                                      \
        int y = get_local_id(1), x = get_local_id(0);                                                                  \
        float sum = 0;                                                                                                 \
        for (ulong step = 0; step < n / TILE; step++) {                                                                \
            left[y][x] = a[row * n + step * TILE + x];                                                                 \
            right[y][x] = b[(step * TILE + y) * n + column];                                                           \
            barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
            for (int k = 0; k < TILE; k++) sum += left[y][k] * right[k][x];                                            \
            barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
        }                                                                                                              \
        c[row * n + column] = sum;                                                                                     \
    }

GEMM(gemm8, 8)
GEMM(gemm, 16)
GEMM(gemm32, 32)

#ifdef __IMAGE_SUPPORT__
constant sampler_t LINEAR = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;

static float4 resized(read_only image2d_t from, float scale) {
    return read_imagef(from, LINEAR, (float2)((get_global_id(0) + 0.5f) * scale, (get_global_id(1) + 0.5f) * scale));
}

kernel void resize_f32(read_only image2d_t from, global float *restrict to, float scale) {
    to[get_global_id(1) * get_global_size(0) + get_global_id(0)] = resized(from, scale).x;
}

kernel void resize_u8x4(read_only image2d_t from, global uchar4 *restrict to, float scale) {
    to[get_global_id(1) * get_global_size(0) + get_global_id(0)] = convert_uchar4_sat_rte(resized(from, scale) * 255.0f);
}
#endif
