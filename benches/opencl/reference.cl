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

#define TILE 16

kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void
gemm(global const float *restrict a, global const float *restrict b, global float *restrict c, ulong n) {
    local float left[TILE][TILE], right[TILE][TILE];
    size_t row = get_global_id(1), column = get_global_id(0);
    int y = get_local_id(1), x = get_local_id(0);
    float sum = 0;
    for (ulong step = 0; step < n / TILE; step++) {
        left[y][x] = a[row * n + step * TILE + x];
        right[y][x] = b[(step * TILE + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; k++) sum += left[y][k] * right[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}

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
