//! Pictures of 4096^2, resized by 1.7 with linear samples: our kernel and the image objects of the same driver, by processor time.

use std::error::Error;

use oxisycl::images::ImageSampler;
use oxisycl::prelude::*;
use oxisycl_backend_opencl::sys::{ImageFormat, code};

use crate::Setting;
use crate::case::Case;
use crate::kernels::resize;
use crate::model::{F32, Format, Picture, U8x4, check};
use crate::protocol::{Bar, Measured};
use crate::random::Random;

const SIDE: usize = 4096;
const SMALLER: usize = 2409;
/// Groups of the peer are tried so often.
const TRIALS: usize = 2;
const PLACES: usize = 2000;
/// What the rounding of coordinates below 4096 and of sums may make of pixels that are up to 1 apart.
const TOLERANCE: f64 = 1.5e-3;
/// What image objects may make of them, whose weights may have 8 bits.
const PEER_TOLERANCE: f64 = 8e-3;

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    let float = ImageFormat { channel_order: code::R, channel_type: code::FLOAT };
    let bytes = ImageFormat { channel_order: code::RGBA, channel_type: code::UNORM_INT8 };
    format::<F32>(setting, "opencl.image.resize.f32", float, results)?;
    format::<U8x4>(setting, "opencl.image.resize.u8x4", bytes, results)
}

fn format<F: Format>(
    setting: &Setting,
    name: &str,
    format: ImageFormat,
    results: &mut Vec<Measured>,
) -> Result<(), Box<dyn Error>> {
    if !setting.options.wants(name) {
        return Ok(());
    }
    println!("{name}: --seed {}", setting.seed);
    let picture = Picture { seed: setting.seed, side: SIDE };
    let pixels = picture.pixels::<F>();
    let queue = Queue::builder().device(&setting.opencl).in_order().build()?;
    let from = SampledImage::from_vec(F::FORMAT, ImageSampler::LINEAR, pixels.clone(), [SIDE, SIDE])?;
    let to = UnsampledImage::uninit(F::FORMAT, [SMALLER, SMALLER])?;
    let kernel = setting.reference.kernel(&format!("resize_{}", F::NAME))?;
    let image = setting.reference.image(format, SIDE, &pixels)?;
    let mut theirs = setting.reference.memory(SMALLER * SMALLER)?;
    kernel.set_image(0, &image)?;
    kernel.set_memory(1, &theirs)?;
    kernel.set(2, SIDE as f32 / SMALLER as f32)?;
    let range = [SMALLER, SMALLER];
    let group = kernel.best_group(range, TRIALS)?;
    let amount = (SMALLER * SMALLER) as f64 / 1e9;
    let case = Case { name, unit: "Gpx/s", amount, peer: "image object, processor time", bar: 0.0 };
    let mut ours = || resize(&queue, &from, &to).and_then(|event| event.wait()).expect("the command succeeds");
    let mut peer = || {
        kernel.time(range, group).expect("the peer's kernel runs");
    };
    let measured = case.measure(setting.options.rounds, &mut ours, &mut peer);
    results.push(measured.bar(Bar::Information));
    let (ours, theirs): (Vec<F::Pixel>, &[F::Pixel]) = (to.to_vec()?, theirs.elements());
    let mut random = Random::new(setting.seed);
    for _ in 0..PLACES {
        let at @ [y, x] = [random.below(SMALLER), random.below(SMALLER)];
        let expected = picture.resized::<F>(at, SMALLER);
        check::<F>(name, at, F::channels(ours[y * SMALLER + x]), expected, TOLERANCE);
        check::<F>(&format!("{name} of the peer"), at, F::channels(theirs[y * SMALLER + x]), expected, PEER_TOLERANCE);
    }
    Ok(())
}
