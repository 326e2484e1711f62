//! Kernels that give values to reductions: from one load for each work-item to a loop over all bodies.

use oxisycl::operator::{Max, Min, Sum};
use oxisycl::prelude::*;
use oxisycl::reduction::{reduction, reduction_without_identity};

use crate::beside::{Figure, Result};
use crate::bodies::Body;
use crate::protocol::Measured;
use crate::{Setting, finish};

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    sum(setting, results)?;
    dot(setting, results)?;
    hits(setting, results)?;
    energy(setting, results)?;
    range_of_logs(setting, results)?;
    roughness(setting, results)?;
    nearest(setting, results)
}

/// Elements of most cases, no multiple of a vector.
fn n_of(setting: &Setting) -> usize {
    (1 << 18) - setting.random().below(64)
}

/// Whether a sum is near enough to what it should be, of terms of that magnitude.
fn assert_near(name: &str, found: f64, expected: f64, magnitude: f64) {
    assert!((found - expected).abs() <= 1e-5 * magnitude, "{name}: {found}, and {expected} in plain Rust");
}

fn sum(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.reduce.sum";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let n = n_of(setting);
    let values = setting.random().floats(n);
    let (input, into) = (Buffer::from_slice(&values)?, Buffer::from_vec(vec![0.0f32])?);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let (input, into) = (cg.access(&input, Read), reduction(cg.access(&into, Write), Sum));
            cg.parallel_reduce(n, into, move |item, sum| *sum += input.get(item))
        }));
    };
    let figure = Figure { name: NAME, amount: n as f64 / 1e6, bar: 0.95 };
    figure.measure(setting, &mut ours, results, |_| {
        let values = values.iter().map(|x| f64::from(*x));
        assert_near(NAME, f64::from(into.to_vec()?[0]), values.clone().sum(), values.map(f64::abs).sum());
        Ok(())
    })
}

fn dot(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.reduce.dot";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let n = n_of(setting);
    let values: Vec<f64> = setting.random().floats(2 * n).into_iter().map(f64::from).collect();
    let (a, b) = values.split_at(n);
    let (of_a, of_b, into) = (Buffer::from_slice(a)?, Buffer::from_slice(b)?, Buffer::from_vec(vec![0.0f64])?);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let (a, b) = (cg.access(&of_a, Read), cg.access(&of_b, Read));
            let into = reduction(cg.access(&into, Write), Sum);
            cg.parallel_reduce(n, into, move |item, sum| *sum += a.get(item) * b.get(item))
        }));
    };
    let figure = Figure { name: NAME, amount: n as f64 / 1e6, bar: 0.95 };
    figure.measure(setting, &mut ours, results, |_| {
        assert_near(NAME, into.to_vec()?[0], a.iter().zip(b).map(|(a, b)| a * b).sum(), n as f64);
        Ok(())
    })
}

/// Of so many points that begin at a seed, those in the quarter of a circle.
fn hits_of(seed: u32) -> u32 {
    let (mut state, mut n_hits) = (seed.wrapping_mul(0x9E37_79B9) | 1, 0);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 24) as f32
    };
    for _ in 0..32 {
        let (x, y) = (next(), next());
        n_hits += u32::from(x * x + y * y < 1.0);
    }
    n_hits
}

fn hits(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.reduce.hits";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let n = n_of(setting) / 4;
    let into = Buffer::from_vec(vec![0u32])?;
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let into = reduction(cg.access(&into, Write), Sum);
            cg.parallel_reduce(n, into, |item, sum| *sum += hits_of(item.get(0) as u32))
        }));
    };
    let figure = Figure { name: NAME, amount: n as f64 / 1e6, bar: 0.95 };
    figure.measure(setting, &mut ours, results, |_| {
        assert_near(NAME, f64::from(into.to_vec()?[0]), f64::from((0..n as u32).map(hits_of).sum::<u32>()), n as f64);
        Ok(())
    })
}

/// What a body has of the energy between all bodies.
fn energy_of<'b>(own: Body, bodies: impl Iterator<Item = &'b Body>) -> f32 {
    let mut energy = 0.0;
    for other in bodies {
        let (x, y, z) = (other.x - own.x, other.y - own.y, other.z - own.z);
        energy += own.w * other.w / (x * x + y * y + z * z + 1e-3).sqrt();
    }
    energy
}

fn energy(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.reduce.energy";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let n = 2048 - random.below(64);
    let body = |[x, y, z, w]: [f32; 4]| Body { x, y, z, w: 1.0 + w };
    let bodies: Vec<Body> = random.floats(4 * n).as_chunks().0.iter().copied().map(body).collect();
    let (input, into) = (Buffer::from_slice(&bodies)?, Buffer::from_vec(vec![0.0f32])?);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let (bodies, into) = (cg.access(&input, Read), reduction(cg.access(&into, Write), Sum));
            cg.parallel_reduce(n, into, move |item, sum| {
                *sum += energy_of(bodies.get(item), bodies.view(item).iter());
            })
        }));
    };
    let figure = Figure { name: NAME, amount: n.pow(2) as f64 / 1e6, bar: 0.95 };
    figure.measure(setting, &mut ours, results, |_| {
        let expected: f64 = bodies.iter().map(|body| f64::from(energy_of(*body, bodies.iter()))).sum();
        assert_near(NAME, f64::from(into.to_vec()?[0]), expected, expected);
        Ok(())
    })
}

/// A sum, the least and the largest value of one range: three reductions at once.
fn range_of_logs(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.reduce.three";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let n = n_of(setting);
    let values = setting.random().floats(n);
    let transform = |x: f32| {
        let x = x * x + 0.5;
        1.0 / (x * (x + 2.0).sqrt() + x.sqrt())
    };
    let input = Buffer::from_slice(&values)?;
    let [sum, least, most] = [(); 3].map(|()| Buffer::from_vec(vec![0.0f32]));
    let (sum, least, most) = (sum?, least?, most?);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let input = cg.access(&input, Read);
            let sum = reduction(cg.access(&sum, Write), Sum);
            let (least, most) = (reduction(cg.access(&least, Write), Min), reduction(cg.access(&most, Write), Max));
            cg.parallel_reduce(n, (sum, least, most), move |item, (sum, least, most)| {
                let value = transform(input.get(item));
                *sum += value;
                least.combine(value);
                most.combine(value);
            })
        }));
    };
    let figure = Figure { name: NAME, amount: n as f64 / 1e6, bar: 0.95 };
    figure.measure(setting, &mut ours, results, |_| {
        let of = |values: &Buffer<f32, 1>| values.to_vec().map(|values| f64::from(values[0]));
        let expected = values.iter().map(|x| f64::from(transform(*x)));
        assert_near(NAME, of(&sum)?, expected.clone().sum(), n as f64);
        assert_near(NAME, of(&least)?, expected.clone().fold(f64::MAX, f64::min), 1.0);
        assert_near(NAME, of(&most)?, expected.fold(f64::MIN, f64::max), 1.0);
        Ok(())
    })
}

/// How much neighbours of a picture differ: a range of two dimensions, and branches at its borders.
fn roughness(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.reduce.roughness";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let [height, width] = [512 - random.below(16), 512 - random.below(16)];
    let values = random.floats(height * width);
    let (input, into) = (Buffer::from_vec_nd(values.clone(), [height, width])?, Buffer::from_vec(vec![0.0f32])?);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let (input, into) = (cg.access(&input, Read), reduction(cg.access(&into, Write), Sum));
            cg.parallel_reduce([height, width], into, move |item, sum| {
                let (picture, [y, x]) = (input.view(item), [item.get(0), item.get(1)]);
                if y > 0 && x > 0 {
                    let (across, down) = (picture[[y, x]] - picture[[y, x - 1]], picture[[y, x]] - picture[[y - 1, x]]);
                    *sum += (across * across + down * down).sqrt();
                }
            })
        }));
    };
    let figure = Figure { name: NAME, amount: (height * width) as f64 / 1e6, bar: 0.95 };
    figure.measure(setting, &mut ours, results, |_| {
        let mut expected = 0.0;
        for (y, x) in (1..height).flat_map(|y| (1..width).map(move |x| (y, x))) {
            let at = |y: usize, x: usize| f64::from(values[y * width + x]);
            expected += (at(y, x) - at(y, x - 1)).hypot(at(y, x) - at(y - 1, x));
        }
        assert_near(NAME, f64::from(into.to_vec()?[0]), expected, (height * width) as f64);
        Ok(())
    })
}

/// The nearest of all points to a place, and its number: an operator without an identity.
fn nearest(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.reduce.nearest";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    #[derive(Clone, Copy, DeviceCopyable, bytemuck::AnyBitPattern)]
    #[repr(C)]
    struct Found {
        distance: f32,
        number: u32,
    }
    let nearer = |a: Found, b: Found| if b.distance < a.distance { b } else { a };
    let distance = |[x, y, z]: [f32; 3]| {
        let (x, y, z) = (x - 0.25, y - 0.5, z + 0.125);
        (x * x + y * y + z * z).sqrt()
    };
    let n = n_of(setting);
    let points: Vec<[f32; 3]> = setting.random().floats(3 * n).as_chunks().0.to_vec();
    let far = Found { distance: f32::MAX, number: u32::MAX };
    let (input, into) = (Buffer::from_slice(&points)?, Buffer::from_vec(vec![far])?);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let input = cg.access(&input, Read);
            let into = reduction_without_identity(cg.access(&into, ReadWrite), nearer);
            cg.parallel_reduce(n, into, move |item, nearest| {
                nearest.combine(Found { distance: distance(input.get(item)), number: item.get(0) as u32 });
            })
        }));
    };
    let figure = Figure { name: NAME, amount: n as f64 / 1e6, bar: 0.95 };
    figure.measure(setting, &mut ours, results, |_| {
        let Found { distance: found, number } = into.to_vec()?[0];
        let least = points.iter().copied().map(distance).fold(f32::MAX, f32::min);
        assert_near(NAME, f64::from(found), f64::from(least), 1.0);
        assert!((number as usize) < n, "{NAME}: point {number}");
        Ok(())
    })
}
