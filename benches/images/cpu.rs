//! Pictures of 4096^2 on the host: resized by 2 and by 1.7 beside `fast_image_resize`, and a convolution of 3 x 3 beside plain Rust.

use std::error::Error;

use bytemuck::cast_slice_mut;
use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use oxisycl::images::ImageSampler;
use oxisycl::prelude::*;
use rayon::prelude::*;

use crate::arguments::Options;
use crate::case::Case;
use crate::kernels::{convolve, resize};
use crate::model::{F32, Format, Picture, U8x4, check, weights};
use crate::protocol::{Bar, Measured};
use crate::random::Random;

const SIDE: usize = 4096;
/// What the picture is resized to, and how the figures are called after that.
const SMALLER: [(usize, &str); 2] = [(2048, "by2"), (2409, "by1.7")];
const PLACES: usize = 2000;
/// What the rounding of coordinates below 4096 and of sums may make of pixels that are up to 1 apart.
const TOLERANCE: f64 = 1.5e-3;
/// What the weights of `fast_image_resize` may make of them, which are integers for bytes.
const PEER_TOLERANCE: f64 = 4e-3;

pub(crate) fn run(
    device: &Device,
    options: &Options,
    seed: u64,
    results: &mut Vec<Measured>,
) -> Result<(), Box<dyn Error>> {
    if !options.wants_any(&names().iter().map(String::as_str).collect::<Vec<_>>()) {
        return Ok(());
    }
    let threads = [device.info().max_compute_units as usize, rayon::current_num_threads()];
    println!("threads: ours {}, rayon's {}, one of fast_image_resize", threads[0], threads[1]);
    if threads != [1, 1] {
        return Err("all sides must have one thread: set OXISYCL_HOST_THREADS and RAYON_NUM_THREADS".into());
    }
    let queue = Queue::builder().device(device).in_order().build()?;
    let setting = Setting { queue, options, picture: Picture { seed, side: SIDE } };
    setting.format::<F32>(PixelType::F32, 0.9, convolve_floats, Bar::RatioAtLeast(0.9), results)?;
    setting.format::<U8x4>(PixelType::U8x4, 0.5, convolve_bytes, Bar::Information, results)
}

fn resize_name<F: Format>(by: &str) -> String {
    format!("images.cpu.resize.{}.{by}", F::NAME)
}

fn convolve_name<F: Format>() -> String {
    format!("images.cpu.convolve.{}", F::NAME)
}

/// The names of all figures.
fn names() -> Vec<String> {
    let of_both = |by| [resize_name::<F32>(by), resize_name::<U8x4>(by)];
    let resized = SMALLER.into_iter().flat_map(|(_, by)| of_both(by));
    resized.chain([convolve_name::<F32>(), convolve_name::<U8x4>()]).collect()
}

/// Waits for the command of a program.
fn finish(submitted: oxisycl::Result<Event>) {
    submitted.and_then(|event| event.wait()).expect("the command succeeds");
}

struct Setting<'a> {
    queue: Queue,
    options: &'a Options,
    picture: Picture,
}

impl Setting<'_> {
    fn format<F: Format>(
        &self,
        pixel_type: PixelType,
        bar: f64,
        plain: fn(&[F::Pixel], &mut [F::Pixel]),
        convolve_bar: Bar,
        results: &mut Vec<Measured>,
    ) -> Result<(), Box<dyn Error>> {
        let pixels = self.picture.pixels::<F>();
        let image = UnsampledImage::from_vec(F::FORMAT, pixels.clone(), [SIDE, SIDE])?;
        for (side, by) in SMALLER {
            let name = resize_name::<F>(by);
            if self.options.wants(&name) {
                results.push(self.resize::<F>(&name, (&pixels, &image), (pixel_type, side), bar)?);
            }
        }
        let name = convolve_name::<F>();
        if !self.options.wants(&name) {
            return Ok(());
        }
        let to = UnsampledImage::uninit(F::FORMAT, [SIDE, SIDE])?;
        let mut theirs = vec![F::pixel(0); SIDE * SIDE];
        let case = Case { name: &name, unit: "Gpx/s", amount: amount(SIDE), peer: "plain loop, rayon", bar: 0.0 };
        let mut ours = || finish(convolve::<F::Format, 3>(&self.queue, &image, &to));
        let measured = case.measure(self.options.rounds, &mut ours, &mut || plain(&pixels, &mut theirs));
        self.check::<F>(&name, SIDE, &to.to_vec()?, &theirs, |at| self.picture.convolved::<F, 3>(at));
        results.push(measured.bar(convolve_bar));
        Ok(())
    }

    fn resize<F: Format>(
        &self,
        name: &str,
        (pixels, image): (&[F::Pixel], &UnsampledImage<2, F::Format>),
        (pixel_type, side): (PixelType, usize),
        bar: f64,
    ) -> Result<Measured, Box<dyn Error>> {
        let (from, to) = (image.sampled(ImageSampler::LINEAR), UnsampledImage::uninit(F::FORMAT, [side, side])?);
        let mut theirs = vec![F::pixel(0); side * side];
        let source = ImageRef::new(SIDE as u32, SIDE as u32, bytemuck::cast_slice(pixels), pixel_type)?;
        let target = cast_slice_mut(&mut theirs);
        let mut target = Image::from_slice_u8(side as u32, side as u32, target, pixel_type)?;
        let how = ResizeOptions::new().resize_alg(ResizeAlg::Interpolation(FilterType::Bilinear)).use_alpha(false);
        let mut resizer = Resizer::new();
        let mut peer = || resizer.resize(&source, &mut target, &how).expect("the formats are equal");
        let case = Case { name, unit: "Gpx/s", amount: amount(side), peer: "fast_image_resize", bar };
        let measured = case.measure(self.options.rounds, &mut || finish(resize(&self.queue, &from, &to)), &mut peer);
        self.check::<F>(name, side, &to.to_vec()?, &theirs, |at| self.picture.resized::<F>(at, side));
        Ok(measured)
    }

    fn check<F: Format>(
        &self,
        name: &str,
        side: usize,
        ours: &[F::Pixel],
        theirs: &[F::Pixel],
        expected: impl Fn([usize; 2]) -> [f64; 4],
    ) {
        let mut random = Random::new(self.picture.seed);
        let corners = [[0, 0], [0, side - 1], [side - 1, 0], [side - 1, side - 1]];
        let places: Vec<_> = (0..PLACES).map(|_| [random.below(side), random.below(side)]).collect();
        for at in corners.into_iter().chain(places) {
            let [ours, theirs] = [ours, theirs].map(|pixels| F::channels(pixels[at[0] * side + at[1]]));
            let expected = expected(at);
            check::<F>(name, at, ours, expected, TOLERANCE);
            check::<F>(&format!("{name} of the peer"), at, theirs, expected, PEER_TOLERANCE);
            // Within one step of each other.
            check::<F>(name, at, ours, theirs, F::STEP / 2.0 + 1e-3);
        }
    }
}

/// 10^9 pixels of a picture.
fn amount(side: usize) -> f64 {
    (side * side) as f64 / 1e9
}

/// The rows around a row, and zeros in place of those that do not exist.
fn neighbours<'a, T>(pixels: &'a [T], zeros: &'a [T], y: usize) -> [&'a [T]; 3] {
    let row = |y: usize| if y < SIDE { &pixels[y * SIDE..][..SIDE] } else { zeros };
    [row(y.wrapping_sub(1)), row(y), row(y + 1)]
}

/// The convolution of 3 x 3 as a plain program has it: the ends of rows apart, so that the loop between becomes vector code.
fn convolve_floats(pixels: &[f32], to: &mut [f32]) {
    let (weights, zeros) = (weights::<3>(), vec![0.0; SIDE]);
    to.par_chunks_mut(SIDE).enumerate().for_each(|(y, to)| {
        let rows = neighbours(pixels, &zeros, y);
        let at = |x: usize| {
            let of_row = |(row, weights): (&[f32], &[f32; 3])| {
                let value = |x: usize| row.get(x).copied().unwrap_or(0.0);
                value(x.wrapping_sub(1)) * weights[0] + value(x) * weights[1] + value(x + 1) * weights[2]
            };
            rows.into_iter().zip(&weights).map(of_row).sum::<f32>()
        };
        (to[0], to[SIDE - 1]) = (at(0), at(SIDE - 1));
        let [a, b, c] = rows;
        let [u, v, w] = weights;
        for x in 0..SIDE - 2 {
            let row = |row: &[f32], weights: [f32; 3]| {
                row[x] * weights[0] + row[x + 1] * weights[1] + row[x + 2] * weights[2]
            };
            to[x + 1] = row(a, u) + row(b, v) + row(c, w);
        }
    });
}

/// A convolution of 3 x 3 of bytes, without parts of 1.
fn convolve_bytes(pixels: &[[u8; 4]], to: &mut [[u8; 4]]) {
    let (weights, zeros) = (weights::<3>(), vec![[0; 4]; SIDE]);
    to.par_chunks_mut(SIDE).enumerate().for_each(|(y, to)| {
        let rows = neighbours(pixels, &zeros, y);
        let at = |x: usize| -> [u8; 4] {
            std::array::from_fn(|channel| {
                let mut sum = 0.0;
                for (row, weights) in rows.iter().zip(&weights) {
                    for (weight, x) in weights.iter().zip([x.wrapping_sub(1), x, x + 1]) {
                        sum += weight * f32::from(row.get(x).map_or(0, |pixel| pixel[channel]));
                    }
                }
                (sum + 0.5) as u8
            })
        };
        (to[0], to[SIDE - 1]) = (at(0), at(SIDE - 1));
        let [a, b, c] = rows.map(<[[u8; 4]]>::as_flattened);
        let [u, v, w] = weights;
        let to = &mut to.as_flattened_mut()[4..4 * SIDE - 4];
        for (x, to) in to.iter_mut().enumerate() {
            let row = |row: &[u8], weights: [f32; 3]| {
                f32::from(row[x]) * weights[0] + f32::from(row[x + 4]) * weights[1] + f32::from(row[x + 8]) * weights[2]
            };
            *to = (row(a, u) + row(b, v) + row(c, w) + 0.5) as u8;
        }
    });
}
