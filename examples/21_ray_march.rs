//! A scene that is given by distances. A work-item follows the rays of its pixel by steps of the distance to what is nearest. The ground reads a
//! picture of tiles. A ray that leaves the scene reads a panorama of the sky. Both are sampled images that repeat.
//!
//! `cargo run --release --example 21_ray_march --features image -- scene.png [HEIGHT]`

#![forbid(unsafe_code)]

use std::array::from_fn;
use std::error::Error;
use std::f32::consts::{PI, TAU};

use image::RgbaImage;
use oxisycl::images::{AddressingMode, Rgba8Srgb};
use oxisycl::math::{clamp, cross, dot, length, mix, normalize, smoothstep};
use oxisycl::prelude::*;
use oxisycl::vector::{Float3, Float4, swizzle};

/// Pixels mix, and a coordinate of 1.25 is as good as one of 0.25.
const SAMPLER: ImageSampler = ImageSampler::LINEAR.normalized().with_addressing(AddressingMode::Repeat);

/// Where the sun is: a vector of length one.
const SUN: Float3 = Float3::new(0.48, 0.6, -0.64);
const FAR: f32 = 40.0;

/// What the scene reads: a kernel by accessors, and the host by host accessors. Coordinates are `[y, x]`, from 0 to 1.
struct Pictures<T, S> {
    tiles: T,
    sky: S,
}

#[derive(Clone, Copy, PartialEq)]
enum Thing {
    Ground,
    Ball,
    Ring,
    Block,
}

/// The distance to what is nearest, and what it is.
fn nearest(p: Float3) -> (f32, Thing) {
    let ball = length(p - Float3::new(-1.25, 1.0, 0.4)) - 1.0;
    let q = p - Float3::new(1.15, 0.3, -0.9);
    let ring = ((q.x() * q.x() + q.z() * q.z()).sqrt() - 0.75).hypot(q.y()) - 0.3;
    // A block with round edges, less a ball.
    let q = p - Float3::new(1.35, 0.85, 1.7);
    let outside = q.map(|x| (x.abs() - 0.75).max(0.0));
    let block = (length(outside) - 0.1).max(0.98 - length(q));
    let mut found = (p.y(), Thing::Ground);
    for other in [(ball, Thing::Ball), (ring, Thing::Ring), (block, Thing::Block)] {
        if other.0 < found.0 {
            found = other;
        }
    }
    found
}

/// How far a ray goes, and what it meets.
fn march(origin: Float3, direction: Float3) -> Option<(f32, Thing)> {
    let mut far = 0.02;
    for _ in 0..96 {
        let (distance, thing) = nearest(origin + direction * far);
        if distance < 0.001 * far.max(1.0) {
            return Some((far, thing));
        }
        far += distance;
        if far > FAR {
            break;
        }
    }
    None
}

/// The direction in which the distance grows.
fn normal(p: Float3) -> Float3 {
    let step = 0.001;
    let slope = |axis: usize| {
        let offset = Float3::from_fn(|i| if i == axis { step } else { 0.0 });
        nearest(p + offset).0 - nearest(p - offset).0
    };
    normalize(Float3::new(slope(0), slope(1), slope(2)))
}

/// From 0 in the shadow to 1 in the sun. A ray that nearly meets something is at the shadow's edge.
fn sunlight(p: Float3) -> f32 {
    let (mut light, mut far) = (1.0f32, 0.03);
    while far < 6.0 && light > 0.01 {
        let (distance, _) = nearest(p + SUN * far);
        light = light.min(9.0 * distance / far);
        far += clamp(distance, 0.03, 0.5);
    }
    light.max(0.0)
}

impl<T: Fn([f32; 2]) -> Float4, S: Fn([f32; 2]) -> Float4> Pictures<T, S> {
    fn sky(&self, direction: Float3) -> Float3 {
        // To the left of the first column is the last one: an angle may be negative.
        let colour = (self.sky)([direction.y().clamp(-1.0, 1.0).acos() / PI, direction.x().atan2(direction.z()) / TAU]);
        swizzle!(colour, xyz)
    }

    /// Colour and mirror of a place.
    fn surface(&self, thing: Thing, p: Float3) -> (Float3, f32) {
        match thing {
            Thing::Ground => (swizzle!((self.tiles)([0.5 * p.z(), 0.5 * p.x()]), xyz), 0.12),
            Thing::Ball => (Float3::new(0.9, 0.92, 0.95), 0.85),
            Thing::Ring => (Float3::new(0.85, 0.5, 0.12), 0.3),
            Thing::Block => (Float3::new(0.12, 0.3, 0.45), 0.08),
        }
    }

    /// The colour of a ray, which mirrors send on.
    fn colour(&self, mut origin: Float3, mut direction: Float3) -> Float3 {
        let (mut sum, mut share) = (Float3::splat(0.0), Float3::splat(1.0));
        for _ in 0..3 {
            let Some((far, thing)) = march(origin, direction) else {
                return sum + share * self.sky(direction);
            };
            let p = origin + direction * far;
            let normal = if thing == Thing::Ground { Float3::new(0.0, 1.0, 0.0) } else { normal(p) };
            let (own, mirror) = self.surface(thing, p);
            // Surfaces mirror more where one looks along them.
            let mirror = mirror + (1.0 - mirror) * (1.0 + dot(direction, normal)).max(0.0).powi(5);
            let sun = dot(normal, SUN).max(0.0) * sunlight(p + normal * 0.01);
            // Close to other things there is less light from the sky.
            let open = clamp(nearest(p + normal * 0.3).0 / 0.3, 0.2, 1.0);
            let light = Float3::new(1.25, 1.15, 0.95) * sun + Float3::new(0.22, 0.28, 0.38) * open;
            let haze = smoothstep(0.35 * FAR, 0.9 * FAR, far);
            let lit = mix(own * light, self.sky(direction), Float3::splat(haze));
            sum += share * lit * (1.0 - mirror * (1.0 - haze));
            share = share * own * (mirror * (1.0 - haze));
            origin = p + normal * 0.01;
            direction = direction - normal * (2.0 * dot(direction, normal));
        }
        sum
    }

    /// The mean of four rays.
    fn pixel(&self, [y, x]: [usize; 2], [height, width]: [usize; 2]) -> Float4 {
        let eye = Float3::new(0.5, 1.9, -5.6);
        let forward = normalize(Float3::new(0.15, 0.7, 0.3) - eye);
        let right = normalize(cross(Float3::new(0.0, 1.0, 0.0), forward));
        let up = cross(forward, right);
        let mut sum = Float3::splat(0.0);
        for ray in 0..4 {
            let [dy, dx] = [ray / 2, ray % 2].map(|i| 0.5 * i as f32 + 0.25);
            let [v, u] = [(y as f32 + dy, height), (x as f32 + dx, width)].map(|(at, n)| at - 0.5 * n as f32);
            sum += self.colour(eye, normalize(forward * 2.5 + (right * u - up * v) * (2.0 / height as f32)));
        }
        Float4::from((sum * 0.25, 1.0))
    }
}

type Texture = SampledImage<2, Rgba8Srgb>;

/// Each work-item writes its pixel.
fn render(queue: &Queue, tiles: &Texture, sky: &Texture, picture: &UnsampledImage<2, Rgba8Srgb>) -> oxisycl::Result {
    let Range(size) = picture.range();
    let arguments = (tiles.read(), sky.read(), picture.with(Write.no_init()));
    queue.parallel_for_with(size, arguments, move |item: Item<2>, (tiles, sky, picture)| {
        // The constant instead of the images' own sampler leaves the kernel no choices.
        let pictures =
            Pictures { tiles: |at| tiles.sample_with(item, SAMPLER, at), sky: |at| sky.sample_with(item, SAMPLER, at) };
        picture.set(item, pictures.pixel(item.id().into(), size));
    })?;
    Ok(())
}

/// A picture of colours from 0 to 1 along the curve of sRGB, by the place from 0 to 1.
fn painted(size: [usize; 2], colour: impl Fn([f32; 2]) -> [f32; 3]) -> oxisycl::Result<Texture> {
    let [height, width] = size;
    let pixels = (0..height * width).map(|i| {
        let [r, g, b] = colour([((i / width) as f32 + 0.5) / height as f32, ((i % width) as f32 + 0.5) / width as f32]);
        [r, g, b, 1.0].map(|channel| (255.0 * channel).round() as u8)
    });
    SampledImage::from_vec(Rgba8Srgb, SAMPLER, pixels.collect(), size)
}

/// Two by two tiles with grooves.
fn tile_colour([y, x]: [f32; 2]) -> [f32; 3] {
    let [row, column] = [y, x].map(|at| (2.0 * at) as i32);
    let edge = [y, x].map(|at| (0.5 - (2.0 * at).fract()).abs()).into_iter().fold(0.0, f32::max);
    let vein = 0.05 * (40.0 * x + 9.0 * (TAU * y).sin()).sin() * (TAU * 2.0 * y).cos();
    let level = if edge > 0.47 { 0.25 } else { vein + if row == column { 0.82 } else { 0.46 } };
    [level, 0.96 * level, 0.88 * level]
}

/// A sky in all directions, whose columns go once around.
fn sky_colour([y, x]: [f32; 2]) -> [f32; 3] {
    let (up, around) = ((PI * y).cos(), TAU * x);
    let side = (PI * y).sin();
    let to_sun = side * around.sin() * SUN[0] + up * SUN[1] + side * around.cos() * SUN[2];
    let waves = |n: f32, phase: f32| (n * around + phase + 5.0 * up).sin() * (2.0 * n * up + phase).cos();
    let cloud = waves(3.0, 0.4) + 0.6 * waves(7.0, 2.0) + 0.4 * waves(15.0, 4.0) + 0.25 * waves(31.0, 1.0);
    let cloud = smoothstep(0.1, 1.2, cloud) * smoothstep(0.02, 0.2, up) * 0.85;
    let glow = smoothstep(0.90, 1.0, to_sun) * 0.35 + smoothstep(0.994, 0.996, to_sun);
    let blue = up.max(0.0).powf(0.6);
    from_fn(|i| {
        let clear = mix([0.86, 0.88, 0.90][i], [0.16, 0.36, 0.70][i], blue);
        (mix(clear, 0.97, cloud) + glow).min(1.0)
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (path, height) = (arguments.next(), arguments.next());
    let height: usize = match &height {
        Some(height) => height.to_string_lossy().parse().map_err(|error| format!("the height {height:?}: {error}"))?,
        None if path.is_some() => 360,
        None => 45,
    };
    let width = height.checked_mul(16).ok_or_else(|| format!("the height {height} is too large"))? / 9;
    let size = [height, width];
    let (tiles, sky) = (painted([256, 256], tile_colour)?, painted([512, 1024], sky_colour)?);
    let picture = UnsampledImage::uninit(Rgba8Srgb, size)?;

    render(&Queue::default()?, &tiles, &sky, &picture)?;

    // The same by a plain call, for some pixels. A host accessor writes them, so that both are rounded alike.
    let expected = UnsampledImage::zeroed(Rgba8Srgb, size)?;
    let mut looked_at = Vec::new();
    {
        let (tiles, sky, mut expected) = (tiles.host_access()?, sky.host_access()?, expected.host_access(ReadWrite)?);
        let pictures = Pictures { tiles: |at| tiles.sample(at), sky: |at| sky.sample(at) };
        for (y, x) in
            (0..size[0]).step_by(size[0].div_ceil(15)).flat_map(|y| (0..size[1]).step_by(7).map(move |x| (y, x)))
        {
            expected.write([y, x], pictures.pixel([y, x], size));
            looked_at.push(y * size[1] + x);
        }
    }
    let (pixels, expected) = (picture.to_vec::<[u8; 4]>()?, expected.into_vec::<[u8; 4]>()?);
    let is_close = |&&i: &&usize| pixels[i].iter().zip(expected[i]).all(|(a, b)| a.abs_diff(b) <= 2);
    let n_close = looked_at.iter().filter(is_close).count();
    // Where a ray just meets an edge, or just misses it, depends on how a device rounds.
    assert!(100 * n_close >= 99 * looked_at.len(), "only {n_close} of {} pixels are right", looked_at.len());
    println!("{} x {} pixels, {n_close} of {} looked at are right", size[1], size[0], looked_at.len());

    if let Some(path) = path {
        let picture: RgbaImage = picture.into_image_buffer()?;
        picture.save(path)?;
    }
    Ok(())
}
