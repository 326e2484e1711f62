//! Pictures: the set of Mandelbrot, rays among mirrors, a stencil and a blur along rows.

use oxisycl::float;
use oxisycl::prelude::*;
use rayon::prelude::*;
use wide::f32x8;

use crate::beside::{Figure, Peers, ROUND, Result, copied, n_different};
use crate::points::{Sphere, draw, spheres};
use crate::protocol::Measured;
use crate::{Setting, bodies, finish};

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    mandelbrot(setting, results)?;
    strict_mandelbrot(setting, results)?;
    rays(setting, results)?;
    stencil(setting, results)?;
    blur(setting, results)
}

/// The set of Mandelbrot, of another size with each seed.
struct Set {
    extent: [usize; 2],
    step: f32,
    limit: u32,
    image: Buffer<u32, 2>,
}

impl Set {
    fn of(setting: &Setting) -> Result<Self> {
        let mut random = setting.random();
        let extent @ [height, width] = [512 - random.below(32), 512 - random.below(32)];
        let image = Buffer::from_vec_nd(vec![0; height * width], extent)?;
        // Known when the kernel runs, as for the peer.
        Ok(Self { extent, step: 2.5 / width as f32, limit: std::hint::black_box(1000), image })
    }

    /// The figure of what a kernel computes, and the points that it leaves.
    fn figure(&self, name: &'static str, bar: f64, ours: &mut dyn FnMut()) -> Result<(Figure<'static>, Vec<u32>)> {
        ours();
        let found = self.image.to_vec()?;
        let amount = found.iter().map(|n| f64::from(*n)).sum::<f64>() / 1e6;
        Ok((Figure { name, amount, bar }, found))
    }
}

fn mandelbrot(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.mandelbrot";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let set = Set::of(setting)?;
    let mut ours = || finish(bodies::mandelbrot(&setting.queue, &set.image, set.limit, set.step));
    let (figure, found) = set.figure(NAME, 1.1, &mut ours)?;
    figure.measure(setting, &mut ours, results, |mut peers| {
        mandelbrot_in_opencl(&mut peers, set.limit, set.step, set.extent, &found)
    })
}

/// The set of Mandelbrot, each operation rounded by itself.
fn strict_mandelbrot(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.mandelbrot.hand";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let set = Set::of(setting)?;
    let (limit, step) = (set.limit, set.step);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let image = cg.access(&set.image, Write);
            let strict = float::strict(move |item: Item<2>| {
                let (column, row) = (item.get(1) as f32, item.get(0) as f32);
                image.set(item, bodies::escape(-2.0 + step * column, -1.25 + step * row, limit));
            });
            cg.parallel_for(set.extent, strict)
        }));
    };
    let (figure, found) = set.figure(NAME, 0.85, &mut ours)?;
    figure.measure(setting, &mut ours, results, |mut peers| {
        #[cfg(target_arch = "x86_64")]
        if crate::hand::is_there() {
            let mut theirs = found.clone();
            peers.compare("AVX2 by hand", &mut || crate::hand::mandelbrot(&mut theirs, set.extent[1], limit, step));
            assert_eq!(theirs, found, "{NAME} of {:?}", set.extent);
        }
        Ok(())
    })
}

fn mandelbrot_in_opencl(
    peers: &mut Peers<'_, '_>,
    limit: u32,
    step: f32,
    [height, width]: [usize; 2],
    expected: &[u32],
) -> Result {
    let Some(reference) = peers.opencl() else { return Ok(()) };
    let rounded @ [columns, rows] = [width, height].map(|extent| extent.next_multiple_of(ROUND));
    let kernel = reference.kernel("mandelbrot")?;
    let mut image = reference.memory::<u32>(columns * rows)?;
    kernel.set_memory(0, &image)?;
    kernel.set(1, limit)?;
    kernel.set(2, step)?;
    peers.beside_kernel(&kernel, rounded)?;
    // A product and a sum that are rounded once, not twice, let a few points at the edge escape earlier or later.
    let theirs = image.elements().chunks(columns).flat_map(|row| &row[..width]);
    let n_other = expected.iter().zip(theirs).filter(|(ours, theirs)| ours != theirs).count();
    assert!(n_other < height * width / 20, "{n_other} points of OpenCL C differ");
    Ok(())
}

fn rays(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.rays";
    const SPHERES: usize = 24;
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let extent @ [height, width] = [384 - random.below(8), 512 - random.below(8)];
    let spheres = spheres(&mut random, SPHERES);
    let (input, output) = (Buffer::from_slice(&spheres)?, Buffer::<f32, 2>::uninit(extent)?);
    let mut ours = || finish(draw(&setting.queue, &input, &output));
    let figure = Figure { name: NAME, amount: (height * width) as f64 / 1e6, bar: 1.1 };
    figure.measure(setting, &mut ours, results, |mut peers| {
        let Some(reference) = peers.opencl() else { return Ok(()) };
        let kernel = reference.kernel("rays")?;
        let memory = copied::<Sphere>(reference, &spheres, 0)?;
        let mut theirs = reference.memory::<f32>(height * width)?;
        kernel.set_memory(0, &memory)?;
        kernel.set(1, SPHERES as u32)?;
        kernel.set_memory(2, &theirs)?;
        kernel.set(3, [width as u32, height as u32])?;
        peers.beside_kernel(&kernel, [width, height].map(|extent| extent.next_multiple_of(ROUND)))?;
        // At the edges of spheres a rounding decides what a ray meets.
        let n_other = n_different(&output.to_vec()?, theirs.elements(), 1e-2);
        assert!(n_other < height * width / 50, "{NAME} of {extent:?}: {n_other} pixels of OpenCL C differ");
        Ok(())
    })
}

/// The border stays as it is.
fn stencil(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.stencil";
    const FACTORS: [f32; 2] = [0.5, 0.125];
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let extent @ [height, width] = [1024 - random.below(32), 1024 - random.below(32)];
    let field = random.floats(height * width);
    let (input, output) = (Buffer::from_slice_nd(&field, extent)?, Buffer::<f32, 2>::uninit(extent)?);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write.no_init()));
            cg.parallel_for(extent, move |item: Item<2>| {
                let (v, Id([y, x])) = (input.view(item), item.id());
                let is_inside = x > 0 && y > 0 && x + 1 < width && y + 1 < height;
                let own = v[[y, x]];
                output.set(
                    item,
                    if is_inside {
                        let around = v[[y, x - 1]] + v[[y, x + 1]] + v[[y - 1, x]] + v[[y + 1, x]];
                        FACTORS[0] * own + FACTORS[1] * around
                    } else {
                        own
                    },
                );
            })
        }));
    };
    let figure = Figure { name: NAME, amount: (height * width) as f64 / 1e6, bar: 1.3 };
    figure.measure(setting, &mut ours, results, |mut peers| {
        let Some(reference) = peers.opencl() else { return Ok(()) };
        let kernel = reference.kernel("stencil")?;
        let (memory, mut theirs) = (copied(reference, &field, 0)?, reference.memory::<f32>(height * width)?);
        kernel.set_memory(0, &memory)?;
        kernel.set_memory(1, &theirs)?;
        kernel.set(2, [width as u32, height as u32])?;
        kernel.set(3, FACTORS)?;
        peers.beside_kernel(&kernel, [width, height].map(|extent| extent.next_multiple_of(ROUND)))?;
        assert_eq!(n_different(&output.to_vec()?, theirs.elements(), 1e-5), 0, "{NAME} of {extent:?}");
        Ok(())
    })
}

const REACH: usize = 5;
const TAPS: usize = 2 * REACH + 1;

/// Bytes along rows, where the outermost ones stand for what is beyond.
fn blur(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.blur";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let extent @ [height, width] = [512 - random.below(32), 1024 - random.below(32)];
    let picture: Vec<u8> = (0..height * width).map(|_| random.next() as u8).collect();
    let weights: [f32; TAPS] = std::array::from_fn(|k| (TAPS - k.abs_diff(REACH)) as f32 / 91.0);
    let (input, output) = (Buffer::from_slice_nd(&picture, extent)?, Buffer::<f32, 2>::uninit(extent)?);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write.no_init()));
            cg.parallel_for(extent, move |item: Item<2>| {
                let Id([y, x]) = item.id();
                let row = input.view(item).row(y);
                let mut sum = 0.0;
                if x >= REACH && x + REACH < row.len() {
                    let around = &row[x - REACH..][..TAPS];
                    for (weight, byte) in weights.iter().zip(around) {
                        sum += weight * f32::from(*byte);
                    }
                } else {
                    for (k, weight) in weights.iter().enumerate() {
                        let at = (x + k).saturating_sub(REACH).min(row.len() - 1);
                        sum += weight * f32::from(row[at]);
                    }
                }
                output.set(item, sum);
            })
        }));
    };
    let figure = Figure { name: NAME, amount: (height * width) as f64 / 1e6, bar: 1.0 };
    figure.measure(setting, &mut ours, results, |mut peers| {
        let mut theirs = vec![0.0; height * width];
        let peer = if cfg!(target_feature = "avx2") { "wide for AVX2, rayon" } else { "wide for SSE2, rayon" };
        peers
            .named("host.blur.wide", 0.7)
            .compare(peer, &mut || blur_in_vectors(&picture, width, &weights, &mut theirs));
        assert_eq!(n_different(&output.to_vec()?, &theirs, 1e-4), 0, "{NAME} of {extent:?} beside vectors");
        let Some(reference) = peers.opencl() else { return Ok(()) };
        let kernel = reference.kernel("blur")?;
        let (memory, weights) = (copied(reference, &picture, 0)?, copied(reference, &weights, 0)?);
        let mut theirs = reference.memory::<f32>(height * width)?;
        kernel.set_memory(0, &memory)?;
        kernel.set_memory(1, &weights)?;
        kernel.set_memory(2, &theirs)?;
        kernel.set(3, [width as u32, height as u32])?;
        peers.beside_kernel(&kernel, [width, height].map(|extent| extent.next_multiple_of(ROUND)))?;
        assert_eq!(n_different(&output.to_vec()?, theirs.elements(), 1e-4), 0, "{NAME} of {extent:?}");
        Ok(())
    })
}

/// The blur with the vectors of a crate. Each row is widened and gets its borders once, so that the sums need no special case.
fn blur_in_vectors(picture: &[u8], width: usize, weights: &[f32; TAPS], to: &mut [f32]) {
    const LANES: usize = 8;
    let vectors = weights.map(f32x8::splat);
    let rows = to.par_chunks_mut(width).zip(picture.par_chunks(width));
    rows.for_each_init(Vec::new, |padded: &mut Vec<f32>, (to, from)| {
        padded.clear();
        padded.resize(REACH, f32::from(from[0]));
        padded.extend(from.iter().map(|byte| f32::from(*byte)));
        padded.resize(width + 2 * REACH, f32::from(from[width - 1]));
        let (whole, rest) = to.as_chunks_mut::<LANES>();
        let n_whole = whole.len();
        for (place, to) in whole.iter_mut().enumerate() {
            let around = &padded[LANES * place..][..LANES + TAPS - 1];
            let mut sum = f32x8::splat(0.0);
            for (weight, around) in vectors.iter().zip(around.array_windows()) {
                sum = f32x8::new(*around).mul_add(*weight, sum);
            }
            *to = sum.to_array();
        }
        for (around, to) in padded[LANES * n_whole..].windows(TAPS).zip(rest) {
            *to = weights.iter().zip(around).map(|(weight, value)| weight * value).sum();
        }
    });
}
