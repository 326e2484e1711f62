//! Arrays of structures, whose fields are at a distance from work-item to work-item: vectors of three numbers, pixels, complex numbers and particles.

use std::error::Error;

use oxisycl::float;
use oxisycl::prelude::*;
use rayon::prelude::*;

use crate::case::Case;
use crate::protocol::Measured;
use crate::{Setting, finish};

const BAR: f64 = 0.95;

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    map(setting, results, "plain.normalise", |random| [random(), random(), random()], |v| Some(unit(v)))?;
    map(setting, results, "plain.grey", |random| [random(), random(), random(), random()].map(byte), grey)?;
    map(
        setting,
        results,
        "plain.quotients",
        |random| [random(), random(), random(), random()],
        |pair| Some(quotient(pair)),
    )?;
    particles(setting, results)
}

/// A vector of length 1, or the vector itself if it has none.
fn unit(v: [f32; 3]) -> [f32; 3] {
    let square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    if square > 0.0 {
        let by = 1.0 / square.sqrt();
        v.map(|x| x * by)
    } else {
        v
    }
}

fn byte(number: f32) -> u8 {
    (number * 256.0) as u8
}

/// How bright a pixel is over black, if it covers anything.
fn grey([red, green, blue, alpha]: [u8; 4]) -> Option<f32> {
    let light = 0.2126 * f32::from(red) + 0.7152 * f32::from(green) + 0.0722 * f32::from(blue);
    (alpha >= 4).then(|| light * f32::from(alpha) * (1.0 / 255.0))
}

/// The quotient of two complex numbers; 0 where there is none.
fn quotient([a, b, c, d]: [f32; 4]) -> [f32; 2] {
    let square = c * c + d * d;
    if square > 1e-6 { [(a * c + b * d) / square, (b * c - a * d) / square] } else { [0.0; 2] }
}

/// Computes an element of each element of an array, or leaves the one that is there.
fn map<T, U>(
    setting: &Setting,
    results: &mut Vec<Measured>,
    name: &'static str,
    element: impl Fn(&mut dyn FnMut() -> f32) -> T,
    of: impl Fn(T) -> Option<U> + Copy + Send + Sync + 'static,
) -> Result<(), Box<dyn Error>>
where
    T: DeviceCopyable + Send + Sync,
    U: DeviceCopyable + Copy + Default + PartialEq + std::fmt::Debug + Send + Sync,
{
    if !setting.options.wants(name) {
        return Ok(());
    }
    let mut random = setting.random();
    let n = (1 << 16) + random.below(64);
    let numbers = random.floats(4 * n);
    let mut next = numbers.into_iter();
    let mut number = || next.next().unwrap_or_default();
    let elements: Vec<T> = (0..n).map(|_| element(&mut number)).collect();
    let (input, output) = (Buffer::from_slice(&elements)?, Buffer::from_slice(&vec![U::default(); n])?);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            let kernel = move |item: Item<1>| {
                if let Some(result) = of(input.get(item)) {
                    output.set(item, result);
                }
            };
            cg.parallel_for(n, float::strict(kernel))
        }));
    };
    let mut expected = vec![U::default(); n];
    let mut theirs = || {
        let pairs = expected.par_iter_mut().zip(&elements);
        pairs.for_each(|(result, element)| *result = of(*element).unwrap_or(*result));
    };
    let case = Case { name, unit: "G/s", amount: n as f64 / 1e9, peer: "par_iter, rayon", bar: BAR };
    setting.measure(&case, &mut ours, &mut theirs, results);
    assert_eq!(output.to_vec()?, expected, "{name} of {n}");
    Ok(())
}

/// What flies between two walls for each dimension.
#[derive(Clone, Copy, PartialEq, Debug, DeviceCopyable)]
#[repr(C)]
struct Particle {
    position: [f32; 3],
    velocity: [f32; 3],
}

/// A particle some time later, which a wall may have turned back.
fn later(particle: Particle) -> Particle {
    const TIME: f32 = 0.01;
    let Particle { mut position, mut velocity } = particle;
    for (at, by) in position.iter_mut().zip(&mut velocity) {
        *at += *by * TIME;
        if *at < 0.0 || *at > 1.0 {
            *by = -*by;
        }
    }
    Particle { position, velocity }
}

fn particles(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    const NAME: &str = "plain.particles";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let n = (1 << 15) + random.below(64);
    let particle = |&[x, y, z, u, v, w]: &[f32; 6]| Particle { position: [x, y, z], velocity: [u, v, w] };
    let before: Vec<Particle> = random.floats(6 * n).as_chunks().0.iter().map(particle).collect();
    let (input, output) = (Buffer::from_slice(&before)?, Buffer::from_slice(&before)?);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            cg.parallel_for(n, float::strict(move |item: Item<1>| output.set(item, later(input.get(item)))))
        }));
    };
    let mut expected = before.clone();
    let mut theirs = || expected.par_iter_mut().zip(&before).for_each(|(result, particle)| *result = later(*particle));
    let case = Case { name: NAME, unit: "G/s", amount: n as f64 / 1e9, peer: "par_iter, rayon", bar: BAR };
    setting.measure(&case, &mut ours, &mut theirs, results);
    assert_eq!(output.to_vec()?, expected, "{NAME} of {n}");
    Ok(())
}
