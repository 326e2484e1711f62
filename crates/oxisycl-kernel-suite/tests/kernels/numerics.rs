//! Numerical code: matrices, quaternions, rays, finance, fractals.

use std::ops::{Add, Mul, Sub};

use crate::harness::{Env, N, fraction, kernels};
use crate::outcome::Tolerance::{Approximate, Contracted, Exact};

kernels![
    matrices_are_multiplied,
    equations_are_solved_with_pivoting,
    quaternions_rotate_vectors,
    rays_meet_spheres,
    options_are_priced,
    the_mandelbrot_set_is_counted,
    roots_are_bisected,
    a_pendulum_is_integrated,
    samples_are_transformed,
    fixed_point_filters,
];

#[derive(Clone, Copy)]
struct Matrix<const ROWS: usize, const COLUMNS: usize>([[f32; COLUMNS]; ROWS]);

impl<const ROWS: usize, const INNER: usize, const COLUMNS: usize> Mul<Matrix<INNER, COLUMNS>> for Matrix<ROWS, INNER> {
    type Output = Matrix<ROWS, COLUMNS>;

    fn mul(self, other: Matrix<INNER, COLUMNS>) -> Matrix<ROWS, COLUMNS> {
        let cell = |row: usize, column: usize| (0..INNER).map(|k| self.0[row][k] * other.0[k][column]).sum();
        Matrix(std::array::from_fn(|row| std::array::from_fn(|column| cell(row, column))))
    }
}

fn matrix<const ROWS: usize, const COLUMNS: usize>(seed: usize) -> Matrix<ROWS, COLUMNS> {
    Matrix(std::array::from_fn(|row| std::array::from_fn(|column| fraction(seed + row * COLUMNS + column) - 0.5)))
}

fn matrices_are_multiplied(env: &Env) {
    env.compare_within(Contracted(1e-6), |i| {
        let product = matrix::<2, 5>(i) * matrix::<5, 3>(i + 10) * matrix::<3, 4>(i + 25);
        product.0
    });
}

/// Solves `a x = b`; `None` if the matrix is singular to working precision.
fn solve<const SIZE: usize>(mut a: [[f64; SIZE]; SIZE], mut b: [f64; SIZE]) -> Option<[f64; SIZE]> {
    for k in 0..SIZE {
        let pivot = (k..SIZE).max_by(|x, y| a[*x][k].abs().total_cmp(&a[*y][k].abs()))?;
        if a[pivot][k].abs() < 1e-9 {
            return None;
        }
        a.swap(k, pivot);
        b.swap(k, pivot);
        for row in k + 1..SIZE {
            let factor = a[row][k] / a[k][k];
            for column in k..SIZE {
                a[row][column] -= factor * a[k][column];
            }
            b[row] -= factor * b[k];
        }
    }
    for k in (0..SIZE).rev() {
        let known: f64 = (k + 1..SIZE).map(|column| a[k][column] * b[column]).sum();
        b[k] = (b[k] - known) / a[k][k];
    }
    Some(b)
}

fn equations_are_solved_with_pivoting(env: &Env) {
    env.compare_within(Contracted(1e-9), |i| {
        let coefficient = |row: usize, column: usize| {
            let diagonal = if row == column { 3.0 } else { 0.0 };
            f64::from(fraction(i * 30 + row * 5 + column)) + diagonal
        };
        let mut a: [[f64; 5]; 5] = std::array::from_fn(|row| std::array::from_fn(|column| coefficient(row, column)));
        if i % 10 == 0 {
            a[3] = a[1];
        }
        solve(a, std::array::from_fn(|row| f64::from(fraction(i * 30 + 25 + row))))
    });
}

#[derive(Clone, Copy)]
struct Quaternion {
    scalar: f32,
    vector: [f32; 3],
}

fn cross(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn dot<T: Copy + Mul<Output = T> + Add<Output = T>>(a: [T; 3], b: [T; 3]) -> T {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

impl Quaternion {
    fn normalized(self) -> Self {
        let length = (self.scalar * self.scalar + dot(self.vector, self.vector)).sqrt();
        Self { scalar: self.scalar / length, vector: self.vector.map(|x| x / length) }
    }

    fn rotate(self, v: [f32; 3]) -> [f32; 3] {
        let twice = cross(self.vector, v).map(|x| 2.0 * x);
        let other = cross(self.vector, twice);
        std::array::from_fn(|k| v[k] + self.scalar * twice[k] + other[k])
    }
}

impl Mul for Quaternion {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let product = cross(self.vector, other.vector);
        Self {
            scalar: self.scalar * other.scalar - dot(self.vector, other.vector),
            vector: std::array::from_fn(|k| self.scalar * other.vector[k] + other.scalar * self.vector[k] + product[k]),
        }
    }
}

fn quaternions_rotate_vectors(env: &Env) {
    env.compare_within(Contracted(1e-5), |i| {
        let random = |k: usize| fraction(i * 8 + k) - 0.5;
        let quaternion = |k: usize| Quaternion { scalar: 1.0, vector: [random(k), random(k + 1), random(k + 2)] };
        let both = (quaternion(0).normalized() * quaternion(3).normalized()).normalized();
        (both.rotate([1.0, random(6), random(7)]), both.scalar)
    });
}

#[derive(Clone, Copy)]
struct Sphere {
    center: [f64; 3],
    radius: f64,
}

fn subtract<T: Copy + Sub<Output = T>>(a: [T; 3], b: [T; 3]) -> [T; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

impl Sphere {
    /// The distance at which the ray enters.
    fn hit(&self, origin: [f64; 3], direction: [f64; 3]) -> Option<f64> {
        let offset = subtract(origin, self.center);
        let half = dot(offset, direction);
        let rest = half * half - dot(offset, offset) + self.radius * self.radius;
        (rest >= 0.0).then(|| -half - rest.sqrt()).filter(|distance| *distance > 0.0)
    }
}

fn rays_meet_spheres(env: &Env) {
    const SPHERES: [Sphere; 4] = [
        Sphere { center: [0.0, 0.0, 5.0], radius: 1.0 },
        Sphere { center: [1.5, 0.5, 7.0], radius: 1.25 },
        Sphere { center: [-2.0, -1.0, 9.0], radius: 2.5 },
        Sphere { center: [0.0, 102.0, 20.0], radius: 100.0 },
    ];
    env.compare_within(Contracted(1e-9), |i| {
        let (x, y) = ((i % 40) as f64 / 20.0 - 0.987, (i / 40) as f64 / 12.5 - 0.993);
        let length = (x * x + y * y + 1.0).sqrt();
        let direction = [x / length, y / length, 1.0 / length];
        let hits = SPHERES.iter().enumerate().filter_map(|(k, sphere)| Some((k, sphere.hit([0.0; 3], direction)?)));
        let nearest = hits.min_by(|a, b| a.1.total_cmp(&b.1));
        nearest.map(|(k, distance)| (k as u8, distance))
    });
}

fn options_are_priced(env: &Env) {
    /// The normal distribution, by the rational approximation of Abramowitz and Stegun (26.2.17).
    fn distribution(x: f32) -> f32 {
        let k = 1.0 / (1.0 + 0.231_641_9 * x.abs());
        let polynomial = [1.330_274_4, -1.821_256, 1.781_478, -0.356_563_78, 0.319_381_53_f32];
        let sum = polynomial.iter().fold(0.0, |sum, factor| (sum + factor) * k);
        let tail = 0.398_942_3 * (-0.5 * x * x).exp() * sum;
        if x < 0.0 { tail } else { 1.0 - tail }
    }
    env.compare_within(Approximate(1e-4), |i| {
        let (price, strike, years) =
            (5.0 + 25.0 * fraction(i), 1.0 + 99.0 * fraction(i + N), 0.25 + 9.0 * fraction(i + 2 * N));
        let (rate, volatility) = (0.02, 0.3);
        let spread = volatility * years.sqrt();
        let d1 = ((price / strike).ln() + (rate + 0.5 * volatility * volatility) * years) / spread;
        let d2 = d1 - spread;
        let discount = strike * (-rate * years).exp();
        (
            price * distribution(d1) - discount * distribution(d2),
            discount * distribution(-d2) - price * distribution(-d1),
        )
    });
}

fn the_mandelbrot_set_is_counted(env: &Env) {
    // In fixed point, where every device counts the same.
    env.compare(|i| {
        let (cx, cy) = ((i % 40) as i64 * 3_300_000 - 90_000_000, (i / 40) as i64 * 4_000_000 - 50_000_000);
        let multiply = |a: i64, b: i64| (a * b) >> 25;
        let (mut x, mut y, mut n) = (0_i64, 0_i64, 0_u32);
        while multiply(x, x) + multiply(y, y) < 4 << 25 && n < 200 {
            (x, y) = (multiply(x, x) - multiply(y, y) + cx, 2 * multiply(x, y) + cy);
            n += 1;
        }
        n
    });
}

fn roots_are_bisected(env: &Env) {
    fn bisect(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> Option<f64> {
        if f(low) * f(high) > 0.0 {
            return None;
        }
        while high - low > 1e-9 {
            let middle = 0.5 * (low + high);
            if f(low) * f(middle) <= 0.0 { high = middle } else { low = middle }
        }
        Some(low)
    }
    env.compare_within(Contracted(1e-6), |i| {
        let (a, b) = (f64::from(fraction(i)), f64::from(fraction(i + 1)) - 0.25);
        bisect(|x| x * x * x + a * x - 2.0 * b, -3.0, 3.0)
    });
}

fn a_pendulum_is_integrated(env: &Env) {
    env.compare_within(Approximate(1e-4), |i| {
        // Fourth order, with the state as an array.
        let derivative = |[angle, speed]: [f32; 2]| [speed, -angle.sin() - 0.1 * speed];
        let step = |a: [f32; 2], b: [f32; 2], h: f32| [a[0] + h * b[0], a[1] + h * b[1]];
        let mut state = [fraction(i) * 2.0, 0.0];
        let h = 0.05;
        for _ in 0..40 {
            let k1 = derivative(state);
            let k2 = derivative(step(state, k1, h / 2.0));
            let k3 = derivative(step(state, k2, h / 2.0));
            let k4 = derivative(step(state, k3, h));
            state = std::array::from_fn(|d| state[d] + h / 6.0 * (k1[d] + 2.0 * (k2[d] + k3[d]) + k4[d]));
        }
        state
    });
}

fn samples_are_transformed(env: &Env) {
    // A number-theoretic transform modulo 257, in place, with the permutation of its indices.
    env.compare(|i| {
        const MODULUS: u32 = 257;
        let mut samples: [u32; 16] = std::array::from_fn(|k| ((i + 1) * (k + 3) * 37) as u32 % MODULUS);
        for k in 0..16_usize {
            let other = (k as u8).reverse_bits() as usize >> 4;
            if k < other {
                samples.swap(k, other);
            }
        }
        // 249 has the order 16.
        let mut length = 2;
        while length <= 16 {
            let root = (0..16 / length - 1).fold(249, |root, _| root * 249 % MODULUS);
            for chunk in samples.chunks_exact_mut(length) {
                let (low, high) = chunk.split_at_mut(length / 2);
                let mut factor = 1;
                for (a, b) in low.iter_mut().zip(high) {
                    let product = *b * factor % MODULUS;
                    (*a, *b) = ((*a + product) % MODULUS, (*a + MODULUS - product) % MODULUS);
                    factor = factor * root % MODULUS;
                }
            }
            length *= 2;
        }
        samples
    });
}

fn fixed_point_filters(env: &Env) {
    let input: Vec<i16> = (0..600).map(|i| (fraction(i) * 60_000.0 - 30_000.0) as i16).collect();
    env.compare_over(Exact, input, |all, i| {
        const TAPS: [i16; 7] = [-800, 0, 9_000, 16_384, 9_000, 0, -800];
        let at = |offset: isize| i.checked_add_signed(offset).and_then(|k| all.get(k)).copied().unwrap_or(0);
        let sum: i32 = (-3..=3).zip(TAPS).map(|(offset, tap)| i32::from(tap) * i32::from(at(offset))).sum();
        let rounded = (sum + (1 << 14)) >> 15;
        rounded.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
    });
}
