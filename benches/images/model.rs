//! Pictures of a seed, and what becomes of them, in `f64`.

use bytemuck::Pod;
use half::f16;
use oxisycl::DeviceCopyable;
use oxisycl::images::{PixelFormat, R32Float, Rgba8Unorm, Rgba16Float};

use crate::random::Random;

/// What the picture is turned by: the sine and cosine of 30 degrees.
pub(crate) const TURN: [f32; 2] = [0.5, 0.866_025_4];

/// A format that is measured.
pub(crate) trait Format {
    const NAME: &'static str;
    type Pixel: Pod + DeviceCopyable;
    type Format: PixelFormat;
    const FORMAT: Self::Format;
    const CHANNELS: usize;
    /// The greatest distance between neighbouring numbers of a channel below 1.
    const STEP: f64;
    /// A pixel of any 64 bits.
    fn pixel(bits: u64) -> Self::Pixel;
    /// Red, green, blue and alpha of a pixel. Alpha of a format without it is 1, and not compared.
    fn channels(pixel: Self::Pixel) -> [f64; 4];
}

pub(crate) struct F32;
pub(crate) struct U8x4;
pub(crate) struct F16x4;

impl Format for F32 {
    const NAME: &'static str = "f32";
    type Pixel = f32;
    type Format = R32Float;
    const FORMAT: R32Float = R32Float;
    const CHANNELS: usize = 1;
    const STEP: f64 = 0.0;

    fn pixel(bits: u64) -> f32 {
        (bits >> 40) as f32 / 16_777_216.0
    }

    fn channels(pixel: f32) -> [f64; 4] {
        [f64::from(pixel), 0.0, 0.0, 1.0]
    }
}

impl Format for U8x4 {
    const NAME: &'static str = "u8x4";
    type Pixel = [u8; 4];
    type Format = Rgba8Unorm;
    const FORMAT: Rgba8Unorm = Rgba8Unorm;
    const CHANNELS: usize = 4;
    const STEP: f64 = 1.0 / 255.0;

    fn pixel(bits: u64) -> [u8; 4] {
        (bits as u32).to_le_bytes()
    }

    fn channels(pixel: [u8; 4]) -> [f64; 4] {
        pixel.map(|channel| f64::from(channel) / 255.0)
    }
}

impl Format for F16x4 {
    const NAME: &'static str = "f16x4";
    type Pixel = [u16; 4];
    type Format = Rgba16Float;
    const FORMAT: Rgba16Float = Rgba16Float;
    const CHANNELS: usize = 4;
    const STEP: f64 = 1.0 / 2048.0;

    fn pixel(bits: u64) -> [u16; 4] {
        [0, 16, 32, 48].map(|first| f16::from_f32((bits >> (first + 5) & 2047) as f32 / 2048.0).to_bits())
    }

    fn channels(pixel: [u16; 4]) -> [f64; 4] {
        pixel.map(|channel| f16::from_bits(channel).to_f64())
    }
}

/// A picture that is as high as wide.
#[derive(Clone, Copy)]
pub(crate) struct Picture {
    pub(crate) seed: u64,
    pub(crate) side: usize,
}

impl Picture {
    fn bits(self, position: usize) -> u64 {
        // As in the reference.
        Random::new(self.seed.wrapping_add((position as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))).next()
    }

    pub(crate) fn pixels<F: Format>(self) -> Vec<F::Pixel> {
        (0..self.side * self.side).map(|position| F::pixel(self.bits(position))).collect()
    }

    /// A pixel, or zeros beyond the edges.
    fn at<F: Format>(self, [y, x]: [i64; 2]) -> [f64; 4] {
        let inside = 0..self.side as i64;
        if !inside.contains(&y) || !inside.contains(&x) {
            return [0.0; 4];
        }
        F::channels(F::pixel(self.bits(y as usize * self.side + x as usize)))
    }

    /// The mixture of four pixels around a place.
    fn between<F: Format>(self, place: [f64; 2], is_clamped: bool) -> [f64; 4] {
        let first = place.map(|at| (at - 0.5).floor());
        let [v, u] = [place[0] - 0.5 - first[0], place[1] - 0.5 - first[1]];
        let corners = [(0, 0, (1.0 - v) * (1.0 - u)), (0, 1, (1.0 - v) * u), (1, 0, v * (1.0 - u)), (1, 1, v * u)];
        let weighted = corners.map(|(dy, dx, weight)| {
            let at = [first[0] as i64 + dy, first[1] as i64 + dx];
            let last = self.side as i64 - 1;
            let at = if is_clamped { at.map(|at| at.clamp(0, last)) } else { at };
            self.at::<F>(at).map(|channel| weight * channel)
        });
        sum(weighted)
    }

    /// What a picture of another size has at a place.
    pub(crate) fn resized<F: Format>(self, [y, x]: [usize; 2], side: usize) -> [f64; 4] {
        let scale = self.side as f64 / side as f64;
        self.between::<F>([y, x].map(|at| (at as f64 + 0.5) * scale), true)
    }

    /// What the turned picture has at a place.
    pub(crate) fn rotated<F: Format>(self, [y, x]: [usize; 2]) -> [f64; 4] {
        let [sine, cosine] = TURN.map(f64::from);
        let centre = self.side as f64 / 2.0;
        let [dy, dx] = [y, x].map(|at| at as f64 + 0.5 - centre);
        self.between::<F>([sine * dx + cosine * dy + centre, cosine * dx - sine * dy + centre], false)
    }

    /// The weighted sum of the neighbours, which are zero beyond the edges.
    pub(crate) fn convolved<F: Format, const N: usize>(self, [y, x]: [usize; 2]) -> [f64; 4] {
        let weights = weights::<N>();
        let reach = (N / 2) as i64;
        let neighbours = (0..N).flat_map(|dy| (0..N).map(move |dx| [dy, dx]));
        sum(neighbours.map(|[dy, dx]| {
            let at = [y as i64 + dy as i64 - reach, x as i64 + dx as i64 - reach];
            self.at::<F>(at).map(|channel| f64::from(weights[dy][dx]) * channel)
        }))
    }
}

fn sum(values: impl IntoIterator<Item = [f64; 4]>) -> [f64; 4] {
    let add = |a: [f64; 4], b: [f64; 4]| std::array::from_fn(|i| a[i] + b[i]);
    values.into_iter().fold([0.0; 4], add)
}

/// A pyramid whose sum is 1, as in the reference.
pub(crate) fn weights<const N: usize>() -> [[f32; N]; N] {
    let height = |at: usize| (N / 2 + 1 - at.abs_diff(N / 2)) as f32;
    let whole = ((N / 2 + 1) * (N / 2 + 1)) as f32;
    std::array::from_fn(|y| std::array::from_fn(|x| height(y) * height(x) / (whole * whole)))
}

/// Compares a pixel with the model. `tolerance` is that of the mixture, and its result may be one step of the format off.
pub(crate) fn check<F: Format>(what: &str, at: [usize; 2], found: [f64; 4], expected: [f64; 4], tolerance: f64) {
    for channel in 0..F::CHANNELS {
        let distance = (found[channel] - expected[channel]).abs();
        assert!(
            distance <= F::STEP / 2.0 + tolerance,
            "{what}: {found:?} at {at:?}, {expected:?} expected (channel {channel})"
        );
    }
}
