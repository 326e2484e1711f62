//! `nalgebra` with types of fixed size: what kernels do with vectors, matrices and transformations.

use nalgebra::{
    DualQuaternion, Isometry3, Matrix2, Matrix2x3, Matrix3, Matrix4, Perspective3, Point2, Point3, Quaternion,
    Rotation2, Rotation3, SMatrix, Scale3, Similarity2, Similarity3, Translation3, UnitQuaternion, Vector1, Vector2,
    Vector3, Vector4,
};
use oxisycl::prelude::*;

use crate::harness::{Env, N, fraction, kernels, scramble};
use crate::outcome::Tolerance::{Approximate, Contracted};

kernels![
    vectors_of_three_and_four,
    vectors_of_integers,
    matrices_of_three_and_four,
    matrices_of_other_extents,
    inverses_and_determinants,
    quaternions_and_rotations,
    isometries_and_similarities,
    projections,
    points_in_buffers,
    matrices_in_memory_that_nobody_wrote,
];

fn any3(i: usize) -> Vector3<f32> {
    Vector3::new(fraction(3 * i), fraction(3 * i + 1), fraction(3 * i + 2)).add_scalar(-0.5)
}

fn any4(i: usize) -> Vector4<f32> {
    any3(i).push(fraction(i + 7))
}

fn vectors_of_three_and_four(env: &Env) {
    env.compare_within(Contracted(1e-5), |i| {
        let (a, b) = (any3(i), any3(i + 1));
        let c = (a.component_mul(&b) + a.zyx() * 0.5).lerp(&a.sup(&b), 0.3);
        let sums = [a.dot(&b), a.norm(), c.sum(), c.min(), a.normalize().product(), any4(i).norm_squared()];
        (a.cross(&b).into(), c.into(), sums) as ([f32; 3], [f32; 3], [f32; 6])
    });
}

fn vectors_of_integers(env: &Env) {
    env.compare(|i| {
        let a = Vector4::new(1, -2, 3, i as i32);
        let b = Vector4::repeat((scramble(i) >> 20) as i32);
        let c = a.component_mul(&b) - b.xyx().push(7);
        let bits = a.map(|x| x as u32 & 0xFF);
        (c.into(), bits.into(), (c.max(), c.imin(), a == b)) as ([i32; 4], [u32; 4], (i32, usize, bool))
    });
}

fn matrix(i: usize) -> Matrix4<f32> {
    Matrix4::from_columns(&[any4(i), any4(i + 1), any4(i + 2), any4(i + 3)]) + Matrix4::from_diagonal_element(2.0)
}

fn matrices_of_three_and_four(env: &Env) {
    env.compare_within(Contracted(1e-5), |i| {
        let product = matrix(i) * matrix(i + 7).transpose() - Matrix4::identity() * 0.5;
        let block: Matrix3<f32> = product.fixed_view::<3, 3>(0, 1).into_owned();
        let sums = [block.trace(), product.row(2).sum(), product.column(1).norm(), block.m32];
        ((product * any4(i + 3)).into(), (block * any3(i)).into(), sums) as ([f32; 4], [f32; 3], [f32; 4])
    });
}

fn matrices_of_other_extents(env: &Env) {
    env.compare_within(Contracted(1e-5), |i| {
        let wide = SMatrix::<f64, 2, 7>::from_fn(|row, column| f64::from(fraction(i + 7 * row + column)));
        let tall = SMatrix::<f64, 7, 6>::from_fn(|row, column| f64::from(fraction(i + row * column)) - 0.5);
        let product = wide * tall;
        let square = tall.tr_mul(&tall);
        (product.row_sum().into(), [product.norm(), square.trace(), square[(5, 1)]]) as ([[f64; 1]; 6], [f64; 3])
    });
}

fn inverses_and_determinants(env: &Env) {
    env.compare_within(Contracted(2e-4), |i| {
        let small = matrix(i).fixed_view::<3, 3>(0, 0).into_owned();
        let inverse = matrix(i).try_inverse().unwrap_or_else(Matrix4::zeros);
        let singular = Matrix2::new(1.0f32, 2.0, 2.0, 4.0).try_inverse().is_none();
        let small_inverse = small.try_inverse().unwrap_or_else(Matrix3::zeros);
        (
            (inverse * any4(i)).into(),
            (small_inverse * any3(i)).into(),
            [small.determinant(), matrix(i).determinant()],
            singular,
        ) as ([f32; 4], [f32; 3], [f32; 2], bool)
    });
}

fn quaternions_and_rotations(env: &Env) {
    env.compare_within(Approximate(1e-4), |i| {
        let a = UnitQuaternion::from_scaled_axis(any3(i) * 3.0);
        let b = UnitQuaternion::from_euler_angles(0.3, fraction(i + 1), -0.2);
        let turned = (a * b).transform_vector(&Vector3::new(1.0, 2.0, 3.0));
        let between = a.slerp(&b, 0.4);
        let plane = Rotation2::new(fraction(i)) * Vector2::new(1.0, 2.0);
        let matrix = b.to_rotation_matrix() * any3(i);
        (turned.into(), between.coords.into(), plane.into(), matrix.into()) as ([f32; 3], [f32; 4], [f32; 2], [f32; 3])
    });
}

fn isometries_and_similarities(env: &Env) {
    env.compare_within(Approximate(1e-4), |i| {
        let motion = Isometry3::new(any3(i), any3(i + 1));
        let there = motion * Point3::from(any3(i + 2));
        let back = motion.inverse_transform_point(&there);
        let similar = Similarity3::from_parts(Translation3::from(any3(i)), motion.rotation, 1.5 + fraction(i));
        let scaled = (similar * motion).transform_point(&back);
        (there.coords.into(), back.coords.into(), scaled.coords.into()) as ([f32; 3], [f32; 3], [f32; 3])
    });
}

fn projections(env: &Env) {
    env.compare_within(Approximate(1e-4), |i| {
        let eye = Point3::new(3.0, 2.0 + fraction(i), 5.0);
        let camera = Isometry3::look_at_rh(&eye, &Point3::origin(), &Vector3::y());
        let projection = Perspective3::new(1.5, 1.0 + fraction(i + 1) * 0.2, 0.1, 100.0);
        let seen: [f32; 3] = projection.project_point(&(camera * Point3::from(any3(i)))).coords.into();
        seen
    });
}

/// Points as elements, a transformation as a capture.
fn points_in_buffers(env: &Env) {
    let motion = Isometry3::new(Vector3::new(0.5, 0.0, 3.0), Vector3::y() * 0.25);
    let before: Vec<Point3<f32>> = (0..N).map(|i| Point3::from(any3(i))).collect();
    let points = Buffer::from_slice(&before).expect("a buffer");
    env.finish(env.queue().submit(|cg| {
        let points = cg.access(&points, ReadWrite);
        cg.parallel_for(N, move |item| points.update(item, |point| motion * point))
    }));
    for (after, before) in points.into_vec().expect("the points").iter().zip(before) {
        assert!((after - motion * before).norm() < 1e-5, "{after} was {before}");
    }
}

fn matrices_in_memory_that_nobody_wrote(env: &Env) {
    let matrices = Buffer::<Matrix4<f32>, 1>::uninit(N).expect("a buffer");
    env.finish(env.queue().submit(|cg| {
        let matrices = cg.access(&matrices, Write.no_init());
        cg.parallel_for(N, move |item| matrices.set(item, Matrix4::from_diagonal_element(item.index() as f32)))
    }));
    let matrices = matrices.into_vec().expect("the matrices");
    assert!((0..N).all(|i| matrices[i] == Matrix4::identity() * i as f32));
}

/// Types that no kernel above has in a buffer or captures.
const _: () = {
    const fn is_element<T: DeviceCopyable>() {}
    is_element::<SMatrix<u8, 3, 7>>();
    is_element::<Matrix2x3<f32>>();
    is_element::<Vector1<Option<i64>>>();
    is_element::<Point2<i32>>();
    is_element::<Quaternion<f64>>();
    is_element::<DualQuaternion<f32>>();
    is_element::<UnitQuaternion<f32>>();
    is_element::<Rotation2<f32>>();
    is_element::<Rotation3<f64>>();
    is_element::<Translation3<f64>>();
    is_element::<Scale3<f32>>();
    is_element::<Similarity2<f64>>();
    is_element::<Similarity3<f32>>();
};
