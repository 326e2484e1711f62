//! Vectors of eight `f32` that were written by hand for AVX2: what a kernel in lanes is to come near to.

use std::arch::x86_64::*;

use crate::bodies::Body;

/// The numbers of a vector.
const LANES: usize = 8;

/// Whether the processor runs what is here.
pub(crate) fn is_there() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// The forces on all bodies, each operation rounded as in the kernel. Bodies behind the last full vector get none.
///
/// # Panics
/// On a processor without AVX2, and if the lengths differ.
pub(crate) fn pull(bodies: &[Body], forces: &mut [Body]) {
    assert!(is_there() && bodies.len() == forces.len(), "AVX2, and a force for each body");
    // SAFETY: the processor has what the function needs.
    unsafe { pull_vectors(bodies, forces) }
}

#[target_feature(enable = "avx2,fma")]
fn pull_vectors(bodies: &[Body], forces: &mut [Body]) {
    let (vectors, _) = bodies.as_chunks::<LANES>();
    let (results, _) = forces.as_chunks_mut::<LANES>();
    let (softening, one) = (_mm256_set1_ps(1e-6), _mm256_set1_ps(1.0));
    for (own, results) in vectors.iter().zip(results) {
        let [x, y, z] =
            [own.map(|body| body.x), own.map(|body| body.y), own.map(|body| body.z)].map(|numbers| vector(numbers));
        let mut force = [_mm256_setzero_ps(); 3];
        for other in bodies {
            let dx = _mm256_sub_ps(_mm256_set1_ps(other.x), x);
            let dy = _mm256_sub_ps(_mm256_set1_ps(other.y), y);
            let dz = _mm256_sub_ps(_mm256_set1_ps(other.z), z);
            let square = _mm256_add_ps(_mm256_mul_ps(dx, dx), _mm256_mul_ps(dy, dy));
            let square = _mm256_add_ps(_mm256_add_ps(square, _mm256_mul_ps(dz, dz)), softening);
            let r = _mm256_div_ps(one, _mm256_sqrt_ps(square));
            let f = _mm256_mul_ps(_mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(other.w), r), r), r);
            force[0] = _mm256_add_ps(force[0], _mm256_mul_ps(f, dx));
            force[1] = _mm256_add_ps(force[1], _mm256_mul_ps(f, dy));
            force[2] = _mm256_add_ps(force[2], _mm256_mul_ps(f, dz));
        }
        let [x, y, z] = force.map(|vector| numbers(vector));
        for (lane, result) in results.iter_mut().enumerate() {
            *result = Body { x: x[lane], y: y[lane], z: z[lane], w: 0.0 };
        }
    }
}

/// How many steps each point of a grid stays near the origin, row by row. Points behind the last full vector of a row get none.
///
/// # Panics
/// On a processor without AVX2.
pub(crate) fn mandelbrot(image: &mut [u32], width: usize, limit: u32, step: f32) {
    assert!(is_there(), "AVX2");
    // SAFETY: the processor has what the function needs.
    unsafe { mandelbrot_vectors(image, width, limit, step) }
}

#[target_feature(enable = "avx2,fma")]
fn mandelbrot_vectors(image: &mut [u32], width: usize, limit: u32, step: f32) {
    let (four, all) = (_mm256_set1_ps(4.0), _mm256_castsi256_ps(_mm256_set1_epi32(-1)));
    for (row, pixels) in image.chunks_exact_mut(width).enumerate() {
        let cy = _mm256_set1_ps(-1.25 + step * row as f32);
        for (first, pixels) in (0..).step_by(LANES).zip(pixels.as_chunks_mut::<LANES>().0) {
            let columns = vector(std::array::from_fn(|lane| (first + lane) as f32));
            let cx = _mm256_add_ps(_mm256_set1_ps(-2.0), _mm256_mul_ps(_mm256_set1_ps(step), columns));
            let (mut x, mut y) = (_mm256_setzero_ps(), _mm256_setzero_ps());
            let (mut near, mut n) = (all, _mm256_setzero_si256());
            for _ in 0..limit {
                let (xx, yy) = (_mm256_mul_ps(x, x), _mm256_mul_ps(y, y));
                near = _mm256_and_ps(near, _mm256_cmp_ps::<_CMP_LE_OQ>(_mm256_add_ps(xx, yy), four));
                if _mm256_movemask_ps(near) == 0 {
                    break;
                }
                n = _mm256_sub_epi32(n, _mm256_castps_si256(near));
                y = _mm256_add_ps(_mm256_mul_ps(_mm256_add_ps(x, x), y), cy);
                x = _mm256_add_ps(_mm256_sub_ps(xx, yy), cx);
            }
            // SAFETY: room for a vector, which need not be aligned.
            unsafe { _mm256_storeu_si256(pixels.as_mut_ptr().cast(), n) }
        }
    }
}

#[target_feature(enable = "avx2,fma")]
fn vector(numbers: [f32; LANES]) -> __m256 {
    // SAFETY: as many numbers as a vector has, which need not be aligned.
    unsafe { _mm256_loadu_ps(numbers.as_ptr()) }
}

#[target_feature(enable = "avx2,fma")]
fn numbers(vector: __m256) -> [f32; LANES] {
    let mut numbers = [0.0; LANES];
    // SAFETY: room for a vector, which need not be aligned.
    unsafe { _mm256_storeu_ps(numbers.as_mut_ptr(), vector) }
    numbers
}
