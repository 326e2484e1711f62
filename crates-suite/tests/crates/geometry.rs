//! Vectors and transformations, predicates that are exact, and approximations.

use euclid::default::{Box2D, Point2D, Rotation3D, Transform3D, Vector3D};
use euclid::{Angle, Length};
use micromath::F32Ext;
use robust::{Coord, orient2d};

use crate::harness::{Env, fraction, kernels};
use crate::outcome::Tolerance::Contracted;

kernels![euclid, robust, micromath];

fn euclid(env: &Env) {
    env.compare_within(Contracted(1e-5), |i| {
        let vector = Vector3D::new(fraction(i), fraction(i + 1) - 0.5, 1.0);
        let rotation: Rotation3D<f32> = Rotation3D::around_z(Angle::degrees(30.0 * fraction(i + 2)));
        let transform: Transform3D<f32> = rotation.to_transform().then_translate(vector).then_scale(2.0, 1.0, 0.5);
        let moved = transform.transform_vector3d(vector.normalize());
        let area = Box2D::from_points([Point2D::new(fraction(i), 0.5), Point2D::new(0.1, fraction(i + 3))]).area();
        let length = Length::<f32, ()>::new(moved.length()) * 2.0;
        [moved.x, moved.y, moved.z, area, length.get(), transform.determinant()]
    });
}

fn robust(env: &Env) {
    env.compare(|i| {
        // Points that are nearly on a line, where rounding would tell the wrong side.
        let step = (i % 32) as f64 * f64::EPSILON;
        let (a, b) = (Coord { x: 12.0, y: 12.0 }, Coord { x: 24.0, y: 24.0 });
        let near = Coord { x: 0.5 + step, y: 0.5 + (i / 32) as f64 * f64::EPSILON };
        let side = orient2d(near, a, b);
        // Not `incircle`: Intel's driver for CPUs (2026.2) takes a minute for its expansions, and sometimes crashes.
        (side > 0.0, side < 0.0, side.to_bits())
    });
}

fn micromath(env: &Env) {
    env.compare(|i| {
        let x = fraction(i) * 6.0 - 3.0;
        // By path, since the standard library has methods of these names.
        let positive = F32Ext::abs(x);
        let functions =
            [F32Ext::sin(x), F32Ext::atan2(x, 0.3), F32Ext::exp(x), F32Ext::sqrt(positive), F32Ext::ln(positive)];
        functions.map(f32::to_bits)
    });
}
