//! Pictures of 8192^2 on a GPU: resized by 1.7, turned, and a convolution of 5 x 5, beside CUDA C++.
//!
//! Each measurement submits several launches and waits for the last. Both sides take the best of as many measurements: the reference tries
//! several block sizes. A row of `texture` has texture objects over the same memory as its peer, which mix with weights of 8 bits. A row of
//! `array` has textures over memory in the driver's order, and one of `raw` kernels that leave bytes as they are. These two have no bars.

use std::cell::RefCell;
use std::error::Error;

use oxisycl::images::{ImageSampler, PixelFormat};
use oxisycl::prelude::*;

use crate::arguments::Options;
use crate::kernels::{convolve, resize, rotate};
use crate::model::{F16x4, F32, Format, Picture, U8x4, check};
use crate::peer::Reference;
use crate::protocol::{Bar, Measured, Rounds, seconds};
use crate::random::Random;

const SIDE: usize = 8192;
/// What the picture is resized to.
const SMALL: usize = 4819;
/// Launches of a measurement.
const LAUNCHES: usize = 10;
/// Measurements, of which the best counts: as many as the reference has block sizes.
const MEASUREMENTS: usize = 7;
/// Places at which results are compared with the model.
const PLACES: usize = 500;
/// What the rounding of coordinates below 8192 and of sums may make of pixels that are up to 1 apart.
const TOLERANCE: f64 = 3e-3;
/// What weights of 8 bits may make of them.
const TEXTURE_TOLERANCE: f64 = 1.2e-2;

/// The least ratios to plain loads, and to texture objects.
const BARS: [f64; 2] = [0.97, 0.87];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Resize,
    Rotate,
    Convolve,
}

impl Work {
    const ALL: [Self; 3] = [Self::Resize, Self::Rotate, Self::Convolve];

    fn name(self) -> &'static str {
        match self {
            Self::Resize => "resize",
            Self::Rotate => "rotate",
            Self::Convolve => "convolve",
        }
    }

    fn side(self) -> usize {
        if self == Self::Resize { SMALL } else { SIDE }
    }

    fn expected<F: Format>(self, picture: Picture, at: [usize; 2]) -> [f64; 4] {
        match self {
            Self::Resize => picture.resized::<F>(at, SMALL),
            Self::Rotate => picture.rotated::<F>(at),
            Self::Convolve => picture.convolved::<F, 5>(at),
        }
    }
}

/// What is compared.
struct Paths {
    /// The peer's name, as a part of the figure's and for the table, and the bar.
    paths: &'static [(&'static str, &'static str, Bar)],
}

const PLAIN: (&str, &str, Bar) = ("plain", "plain loads", Bar::RatioAtLeast(BARS[0]));
const TEXTURE: (&str, &str, Bar) = ("texture", "texture objects", Bar::RatioAtLeast(BARS[1]));
const ARRAY: (&str, &str, Bar) = ("array", "textures of arrays", Bar::Information);
const RAW: (&str, &str, Bar) = ("raw", "plain loads of bytes", Bar::Information);

fn name<F: Format>(work: Work, path: &str) -> String {
    format!("images.gpu.{}.{}.{path}", work.name(), F::NAME)
}

pub(crate) fn run(
    device: &Device,
    options: &Options,
    seed: u64,
    reference: Option<&str>,
    results: &mut Vec<Measured>,
) -> Result<(), Box<dyn Error>> {
    let picture = Picture { seed, side: SIDE };
    let reference = reference.map(|program| Reference::start(program, seed)).transpose()?;
    let queue = Queue::builder().device(device).in_order().build()?;
    let mut setting = Setting { queue, options, picture, reference: reference.map(RefCell::new), results };
    setting.format::<F32>(&Paths { paths: &[PLAIN, TEXTURE, ARRAY] })?;
    setting.format::<F16x4>(&Paths { paths: &[PLAIN, TEXTURE, ARRAY] })?;
    setting.format::<U8x4>(&Paths { paths: &[PLAIN, TEXTURE, ARRAY, RAW] })
}

struct Setting<'a> {
    queue: Queue,
    options: &'a Options,
    picture: Picture,
    reference: Option<RefCell<Reference>>,
    results: &'a mut Vec<Measured>,
}

impl Setting<'_> {
    fn format<F: Format>(&mut self, Paths { paths }: &Paths) -> Result<(), Box<dyn Error>> {
        let is_wanted = |work: Work| paths.iter().any(|(path, ..)| self.options.wants(&name::<F>(work, path)));
        if !Work::ALL.into_iter().any(is_wanted) {
            return Ok(());
        }
        let from = UnsampledImage::from_vec(F::FORMAT, self.picture.pixels::<F>(), [SIDE, SIDE])?;
        let sampled = from.sampled(ImageSampler::LINEAR);
        for work in Work::ALL {
            let to = UnsampledImage::uninit(F::FORMAT, [work.side(); 2])?;
            for &(path, peer, bar) in *paths {
                let name = name::<F>(work, path);
                if self.options.wants(&name) {
                    let images = Images { from: &from, sampled: &sampled, to: &to };
                    let measured = self.measure::<F>(work, &images, &name, peer)?;
                    measured.print();
                    self.results.push(if self.reference.is_some() { measured.bar(bar) } else { measured });
                }
                if self.reference.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn measure<F: Format>(
        &self,
        work: Work,
        images: &Images<'_, F::Format>,
        name: &str,
        peer: &'static str,
    ) -> Result<Measured, Box<dyn Error>> {
        let amount = (work.side() * work.side() * LAUNCHES) as f64 / 1e9;
        let once = || {
            for _ in 0..LAUNCHES {
                images.submit(work, &self.queue).expect("the command is valid");
            }
            self.queue.wait().expect("the commands succeed");
        };
        let ours = || amount / (0..MEASUREMENTS).map(|_| seconds(once)).fold(f64::INFINITY, f64::min);
        let in_reference = name.trim_start_matches("images.gpu.");
        let measured = match &self.reference {
            None => {
                let values: Vec<f64> = (0..self.options.rounds).map(|_| ours()).collect();
                Measured::alone(name, "Gpx/s", &values, Bar::Information)
            }
            Some(reference) => {
                let theirs = || reference.borrow_mut().rate(in_reference).expect("the reference answers");
                Rounds::run(self.options.rounds, None, ours, theirs).measured(name, "Gpx/s", peer)
            }
        };
        self.check::<F>(work, images, name, in_reference)?;
        Ok(measured)
    }

    /// Compares both results with the model.
    fn check<F: Format>(
        &self,
        work: Work,
        images: &Images<'_, F::Format>,
        name: &str,
        in_reference: &str,
    ) -> Result<(), Box<dyn Error>> {
        let (side, found) = (work.side(), images.to.to_vec::<F::Pixel>()?);
        let mut random = Random::new(self.picture.seed);
        let corners = [[0, 0], [0, side - 1], [side - 1, 0], [side - 1, side - 1]];
        let places = (0..PLACES).map(|_| [random.below(side), random.below(side)]);
        let is_texture = in_reference.ends_with("texture") || in_reference.ends_with("array");
        for at in corners.into_iter().chain(places.collect::<Vec<_>>()) {
            let expected = work.expected::<F>(self.picture, at);
            let pixel = F::channels(found[at[0] * side + at[1]]);
            check::<F>(name, at, pixel, expected, TOLERANCE);
            if let Some(reference) = &self.reference {
                let pixel = reference.borrow_mut().pixel(in_reference, at)?;
                let tolerance = if is_texture { TEXTURE_TOLERANCE } else { TOLERANCE };
                check::<F>(&format!("{name} of the reference"), at, pixel, expected, tolerance);
            }
        }
        Ok(())
    }
}

struct Images<'a, F: PixelFormat> {
    from: &'a UnsampledImage<2, F>,
    sampled: &'a SampledImage<2, F>,
    to: &'a UnsampledImage<2, F>,
}

impl<F: PixelFormat> Images<'_, F> {
    fn submit(&self, work: Work, queue: &Queue) -> oxisycl::Result<Event> {
        match work {
            Work::Resize => resize(queue, self.sampled, self.to),
            Work::Rotate => rotate(queue, self.sampled, self.to),
            Work::Convolve => convolve::<F, 5>(queue, self.from, self.to),
        }
    }
}
