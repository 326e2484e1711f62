//! `glam` as it is by default: on x86-64 its types are SIMD registers, and what it does with them are the processor's intrinsics.

use glam::{Affine3A, BVec4A, Mat3A, Mat4, Quat, UVec4, Vec2, Vec3, Vec3A, Vec3Swizzles, Vec4, Vec4Swizzles, vec4};

use crate::harness::{Env, fraction, kernels, scramble};
use crate::outcome::Tolerance::{Approximate, Contracted};

kernels![
    vectors_of_four,
    vectors_of_three_in_registers,
    masks_and_comparisons,
    rounding_and_casts,
    matrices_of_four,
    inverses_and_determinants,
    quaternions,
    affine_transforms,
    projections_and_cameras,
    small_vectors,
];

fn any4(i: usize) -> Vec4 {
    vec4(fraction(4 * i), fraction(4 * i + 1), fraction(4 * i + 2), fraction(4 * i + 3)) - 0.5
}

fn vectors_of_four(env: &Env) {
    env.compare_within(Contracted(1e-5), |i| {
        let (a, b) = (any4(i), any4(i + 1));
        let c = (a * b + a.wzyx() / (b.abs() + 0.1) - 0.25).lerp(a.max(b), 0.3);
        let sums = [a.dot(b), a.length(), c.element_sum(), c.min_element(), a.normalize().element_product()];
        (c.to_array(), sums, a.distance_squared(b))
    });
}

fn vectors_of_three_in_registers(env: &Env) {
    env.compare_within(Contracted(1e-5), |i| {
        let (a, b) = (Vec3A::from_vec4(any4(i)), Vec3A::from_vec4(any4(i + 1)));
        let normal = a.cross(b).normalize_or_zero();
        let reflected = a.reflect(normal) + a.project_onto(b).clamp_length_max(0.2);
        (normal.to_array(), reflected.to_array(), a.min(b).extend(1.0).to_array(), a.signum().x)
    });
}

fn masks_and_comparisons(env: &Env) {
    env.compare(|i| {
        let (a, b) = (any4(i), any4(i + 1));
        let less: BVec4A = a.cmplt(b);
        let both = less & !a.cmpge(Vec4::ZERO) | a.cmpeq(a.yxwz());
        let chosen = Vec4::select(both, a, b);
        let mut special = a;
        special[i % 4] = f32::NAN;
        let bits = (less.bitmask() as u8, both.bitmask() as u8, special.is_nan_mask().bitmask() as u8);
        let flags = [less.any(), less.all(), both.test(i % 4), special.is_finite(), a == b, special.max(b).x == b.x];
        (bits, chosen.to_array(), flags, chosen.max_position() as u8)
    });
}

fn rounding_and_casts(env: &Env) {
    env.compare(|i| {
        let a = any4(i) * 20.0 + Vec4::splat((i % 3) as f32 * 0.5);
        let rounded = [a.round(), a.floor(), a.ceil(), a.trunc()].map(|vector| vector.to_array());
        let integers = a.as_ivec4().to_array();
        let fraction = a.fract_gl().to_array();
        let bits = UVec4::from_array(a.to_array().map(f32::to_bits)) & UVec4::splat(0xFF00);
        (rounded, integers, fraction, bits.to_array(), (a.rem_euclid(Vec4::splat(3.0)).x, a.copysign(-a).y))
    });
}

fn matrix(i: usize) -> Mat4 {
    Mat4::from_cols(any4(i), any4(i + 1), any4(i + 2), any4(i + 3)) + Mat4::from_diagonal(Vec4::splat(2.0))
}

fn matrices_of_four(env: &Env) {
    env.compare_within(Contracted(1e-5), |i| {
        let product = matrix(i) * matrix(i + 7).transpose() - Mat4::IDENTITY * 0.5;
        let point = product.transform_point3(any4(i).xyz());
        (product.to_cols_array_2d(), (product * any4(i + 3)).to_array(), point.to_array())
    });
}

fn inverses_and_determinants(env: &Env) {
    env.compare_within(Contracted(2e-4), |i| {
        let small = Mat3A::from_mat4(matrix(i)) + Mat3A::IDENTITY * 2.0;
        let inverse = matrix(i).inverse();
        (inverse.to_cols_array(), matrix(i).determinant(), small.inverse().to_cols_array(), small.determinant())
    });
}

fn quaternions(env: &Env) {
    env.compare_within(Approximate(1e-4), |i| {
        let a = Quat::from_axis_angle(any4(i).xyz().normalize(), fraction(i) * 3.0);
        let b = Quat::from_rotation_y(fraction(i + 1)) * Quat::from_rotation_x(0.3);
        let turned = (a * b).mul_vec3a(Vec3A::new(1.0, 2.0, 3.0));
        let between = a.slerp(b, 0.4);
        (
            turned.to_array(),
            between.to_array(),
            a.dot(b),
            Mat3A::from_quat(b).to_cols_array(),
            a.inverse().xyz().to_array(),
        )
    });
}

fn affine_transforms(env: &Env) {
    env.compare_within(Contracted(1e-4), |i| {
        let scale = Vec3::splat(fraction(i) + 0.5);
        let rotation = Quat::from_vec4((any4(i) + 0.1).normalize());
        let transform = Affine3A::from_scale_rotation_translation(scale, rotation, Vec3::new(1.0, -2.0, 0.5));
        let there = transform.transform_point3a(Vec3A::from_vec4(any4(i + 1)));
        let back = transform.inverse().transform_point3a(there);
        (there.to_array(), back.to_array(), transform.matrix3.x_axis.to_array())
    });
}

fn projections_and_cameras(env: &Env) {
    env.compare_within(Approximate(1e-4), |i| {
        let eye = Vec3::new(3.0, 2.0 + fraction(i), 5.0);
        let camera = Mat4::look_at_rh(eye, Vec3::ZERO, Vec3::Y);
        let projection = Mat4::perspective_rh(1.0 + fraction(i + 1) * 0.2, 1.5, 0.1, 100.0);
        (projection * camera).project_point3(any4(i).xyz()).to_array()
    });
}

fn small_vectors(env: &Env) {
    env.compare_within(Contracted(1e-5), |i| {
        let a = Vec2::new(fraction(i), fraction(i + 1));
        let turned = Vec2::from_angle(0.0).rotate(a).perp();
        let bits = glam::IVec3::new(i as i32, scramble(i) as i32 >> 20, -7);
        let wide = glam::DVec3::new(f64::from(a.x), 2.0, -1.0).cross(glam::DVec3::new(0.5, f64::from(a.y), 3.0));
        (turned.to_array(), a.perp_dot(turned), (bits % 5 - bits.yzx()).to_array(), wide.to_array())
    });
}
