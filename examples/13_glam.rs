//! Vectors and matrices of `glam` in a kernel: points of a ring are seen through a camera.
//!
//! `cargo run --example 13_glam --features glam`

use glam::{Mat4, Vec3, Vec4};
use oxisycl::prelude::*;

const POINTS: usize = 360;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let ring: Vec<Vec4> = (0..POINTS)
        .map(|i| {
            let angle = (i as f32).to_radians();
            Vec4::new(angle.cos(), 0.0, angle.sin(), 1.0)
        })
        .collect();
    let camera = Mat4::perspective_rh(1.0, 16.0 / 9.0, 0.1, 100.0)
        * Mat4::look_at_rh(Vec3::new(0.0, 2.0, 4.0), Vec3::ZERO, Vec3::Y);

    let seen = Buffer::from_slice(&ring)?;
    queue.submit(|cg| {
        let seen = cg.access(&seen, ReadWrite);
        cg.parallel_for(POINTS, move |item| {
            seen.update(item, |point| {
                let projected = camera * point;
                projected / projected.w
            })
        })
    })?;

    let seen = seen.into_vec()?;
    let farthest =
        seen.iter().zip(&ring).map(|(seen, point)| seen.truncate().distance(camera.project_point3(point.truncate())));
    let farthest = farthest.fold(0.0, f32::max);
    assert!(farthest < 1e-5, "a point is {farthest} away from where it should be");
    let (left, right) = seen.iter().fold((f32::MAX, f32::MIN), |(left, right), p| (left.min(p.x), right.max(p.x)));
    println!("{POINTS} points of a ring are seen from {left:.3} to {right:.3} of the picture's half width");
    Ok(())
}
