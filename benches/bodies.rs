//! Kernels that several benchmarks have: the forces between bodies, and the set of Mandelbrot, in `f32`.

use bytemuck::AnyBitPattern;
use oxisycl::prelude::*;

/// A place and a mass, or a force. Aligned as `float4` of OpenCL and CUDA, so that it is loaded at once.
#[derive(Clone, Copy, Debug, PartialEq, DeviceCopyable, AnyBitPattern)]
#[repr(C, align(16))]
pub(crate) struct Body {
    pub(crate) x: f32,
    pub(crate) y: f32,
    pub(crate) z: f32,
    pub(crate) w: f32,
}

/// What pulls at each of the bodies.
pub(crate) fn pull(queue: &Queue, bodies: &Buffer<Body, 1>, forces: &Buffer<Body, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let n = bodies.range();
        let (bodies, forces) = (cg.access(bodies, Read), cg.access(forces, Write));
        cg.parallel_for(n, move |item| {
            forces.set(item, force_on(bodies.get(item), bodies.view(item).iter()));
        })
    })
}

/// What pulls at a body.
#[inline(always)]
pub(crate) fn force_on<'a>(own: Body, bodies: impl Iterator<Item = &'a Body>) -> Body {
    let mut force = Body { x: 0.0, y: 0.0, z: 0.0, w: 0.0 };
    for other in bodies {
        let (dx, dy, dz) = (other.x - own.x, other.y - own.y, other.z - own.z);
        let r = 1.0 / (dx * dx + dy * dy + dz * dz + 1e-6).sqrt();
        let f = other.w * r * r * r;
        force.x += f * dx;
        force.y += f * dy;
        force.z += f * dz;
    }
    force
}

/// How many steps a point stays near the origin.
#[inline(always)]
pub(crate) fn escape(cx: f32, cy: f32, limit: u32) -> u32 {
    let (mut x, mut y, mut n) = (0.0f32, 0.0f32, 0);
    while n < limit && x * x + y * y <= 4.0 {
        (x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);
        n += 1;
    }
    n
}

/// That many steps at each point of a grid.
pub(crate) fn mandelbrot(queue: &Queue, image: &Buffer<u32, 2>, limit: u32, step: f32) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let range = image.range();
        let image = cg.access(image, Write);
        cg.parallel_for(range, move |item: Item<2>| {
            let (column, row) = (item.get(1) as f32, item.get(0) as f32);
            image.set(item, escape(-2.0 + step * column, -1.25 + step * row, limit));
        })
    })
}

/// The force in `x` on a body, in plain Rust.
pub(crate) fn force_in_x(own: Body, bodies: &[Body]) -> f64 {
    let force = |other: &Body| {
        let d = [other.x - own.x, other.y - own.y, other.z - own.z].map(f64::from);
        let distance = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 1e-6;
        f64::from(other.w) * d[0] / (distance * distance.sqrt())
    };
    bodies.iter().map(force).sum()
}
