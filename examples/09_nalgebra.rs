//! Types of `nalgebra` in kernels: points are turned and moved, and compared with the same on the host.
//!
//! `cargo run --example 09_nalgebra --features nalgebra`

use nalgebra::{Isometry3, Point3, Vector3};
use oxisycl::prelude::*;

const POINTS: usize = 1000;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let points: Vec<Point3<f32>> = (0..POINTS).map(|i| Point3::new(i as f32, 1.0, -2.0)).collect();
    let motion = Isometry3::new(Vector3::new(0.5, 0.0, 3.0), Vector3::y() * 0.25);

    let moved = Buffer::from_slice(&points)?;
    queue.submit(|cg| {
        let moved = cg.access(&moved, ReadWrite);
        cg.parallel_for(POINTS, move |item| moved.update(item, |point| motion * point))
    })?;

    let moved = moved.into_vec()?;
    let farthest = moved.iter().zip(&points).map(|(moved, point)| (moved - motion * point).norm()).fold(0.0, f32::max);
    assert!(farthest < 1e-3, "a point is {farthest} away from where it should be");
    println!("{POINTS} points were moved; the first is at {}", moved[0]);
    Ok(())
}
