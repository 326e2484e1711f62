//! Much arithmetic for each element: the nearest centre of points, the step of k-means, and rays among mirrors.

use std::error::Error;

use oxisycl::float;
use oxisycl::prelude::*;
use rayon::prelude::*;

use crate::case::Case;
use crate::protocol::Measured;
use crate::random::Random;
use crate::{Setting, finish};

const BAR: f64 = 0.95;

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    k_means(setting, results)?;
    rays(setting, results)
}

type Point = [f32; 4];

/// The centre that is nearest to a point.
fn nearest(point: Point, centres: &[Point]) -> u32 {
    let distance = |centre: &Point| centre.iter().zip(&point).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
    let nearest = centres.iter().map(distance).enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    nearest.map_or(0, |(position, _)| position as u32)
}

fn k_means(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    const NAME: &str = "plain.k_means";
    const CENTRES: usize = 16;
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let n = (1 << 18) + random.below(64);
    let mut points = |n: usize| -> Vec<Point> { random.floats(4 * n).as_chunks().0.to_vec() };
    let (points, centres) = (points(n), points(CENTRES));
    let (of_points, of_centres) = (Buffer::from_slice(&points)?, Buffer::from_slice(&centres)?);
    let output = Buffer::<u32, 1>::uninit(n)?;
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let (points, centres) = (cg.access(&of_points, Read), cg.access(&of_centres, Read));
            let output = cg.access(&output, Write.no_init());
            cg.parallel_for(
                n,
                float::strict(move |item: Item<1>| {
                    output.set(item, nearest(points.get(item), centres.view(item).as_slice()));
                }),
            )
        }));
    };
    let mut expected = Vec::new();
    let mut theirs = || expected = points.par_iter().map(|point| nearest(*point, &centres)).collect();
    let case = Case { name: NAME, unit: "G/s", amount: n as f64 / 1e9, peer: "par_iter, rayon", bar: BAR };
    setting.measure(&case, &mut ours, &mut theirs, results);
    assert_eq!(output.to_vec()?, expected, "{NAME} of {n}");
    Ok(())
}

type Vector = [f32; 3];

#[derive(Clone, Copy, DeviceCopyable)]
#[repr(C)]
pub(crate) struct Sphere {
    centre: Vector,
    radius: f32,
    mirror: f32,
    colour: f32,
}

fn dot(a: Vector, b: Vector) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn add(a: Vector, b: Vector, times: f32) -> Vector {
    [a[0] + b[0] * times, a[1] + b[1] * times, a[2] + b[2] * times]
}

fn unit(a: Vector) -> Vector {
    let by = 1.0 / dot(a, a).sqrt();
    a.map(|x| x * by)
}

/// How far a ray goes before it meets a sphere.
fn meet(sphere: &Sphere, from: Vector, direction: Vector) -> Option<f32> {
    let to = add(from, sphere.centre, -1.0);
    let along = dot(to, direction);
    let square = along * along - dot(to, to) + sphere.radius * sphere.radius;
    if square < 0.0 {
        return None;
    }
    let distance = -along - square.sqrt();
    (distance > 1e-3).then_some(distance)
}

/// The light that comes from a place of the picture.
fn trace([y, x]: [usize; 2], [height, width]: [usize; 2], spheres: &[Sphere]) -> f32 {
    let centred = |at: usize, extent: usize| (at as f32 - extent as f32 / 2.0) / width as f32;
    let (mut from, mut direction) = ([0.0, 0.0, -4.0], unit([centred(x, width), centred(y, height), 1.0]));
    let (mut light, mut weight) = (0.0, 1.0);
    for _ in 0..5 {
        let met = spheres.iter().filter_map(|sphere| meet(sphere, from, direction).map(|distance| (distance, sphere)));
        let Some((distance, sphere)) = met.min_by(|a, b| a.0.total_cmp(&b.0)) else {
            light += weight * 0.5 * (1.0 + direction[1]);
            break;
        };
        from = add(from, direction, distance);
        let normal = unit(add(from, sphere.centre, -1.0));
        let lit = dot(normal, unit([1.0, 1.0, -1.0])).max(0.1);
        light += weight * (1.0 - sphere.mirror) * sphere.colour * lit;
        weight *= sphere.mirror;
        direction = add(direction, normal, -2.0 * dot(direction, normal));
        if weight < 0.01 {
            break;
        }
    }
    light
}

/// Spheres in front of the eye.
pub(crate) fn spheres(random: &mut Random, n: usize) -> Vec<Sphere> {
    let sphere = |&[x, y, z, radius, mirror, colour]: &[f32; 6]| Sphere {
        centre: [3.0 * x, 2.0 * y, 2.5 + 2.5 * z],
        radius: 0.45 + 0.25 * radius,
        mirror: 0.5 + 0.5 * mirror,
        colour: 0.5 + 0.5 * colour,
    };
    random.floats(6 * n).as_chunks().0.iter().map(sphere).collect()
}

/// The picture of the spheres.
pub(crate) fn draw(queue: &Queue, spheres: &Buffer<Sphere, 1>, to: &Buffer<f32, 2>) -> oxisycl::Result<Event> {
    let extent = to.range().0;
    queue.submit(|cg| {
        let (spheres, to) = (cg.access(spheres, Read), cg.access(to, Write.no_init()));
        cg.parallel_for(
            extent,
            float::strict(move |item: Item<2>| {
                to.set(item, trace(item.id().0, extent, spheres.view(item).as_slice()));
            }),
        )
    })
}

fn rays(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    const NAME: &str = "plain.rays";
    const SPHERES: usize = 24;
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let extent @ [height, width] = [384 + random.below(8), 512 + random.below(8)];
    let spheres = spheres(&mut random, SPHERES);
    let (input, output) = (Buffer::from_slice(&spheres)?, Buffer::<f32, 2>::uninit(extent)?);
    let mut ours = || finish(draw(&setting.queue, &input, &output));
    let mut expected = Vec::new();
    let mut theirs = || {
        let places = (0..height * width).into_par_iter();
        expected = places.map(|place| trace([place / width, place % width], extent, &spheres)).collect();
    };
    let amount = (height * width) as f64 / 1e9;
    let case = Case { name: NAME, unit: "G/s", amount, peer: "par_iter, rayon", bar: BAR };
    setting.measure(&case, &mut ours, &mut theirs, results);
    assert_eq!(output.to_vec()?, expected, "{NAME} of {extent:?}");
    Ok(())
}
