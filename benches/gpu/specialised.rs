//! What a number gains that the driver's compiler knows, and what the look-up of code for a value costs a launch.
//!
//! A stencil's radius is set at run time. It is a specialization constant, a const parameter, or a plain argument.

use std::hint::black_box;

use oxisycl::observe::counters;
use oxisycl::prelude::*;
use oxisycl::specialization::SpecId;
use oxisycl::{Result, argument::Bits};

use crate::cases::{SPECIALISED, SPECIALISED_GAIN, SPECIALISED_HIT};
use crate::{Measured, best_of};

/// Elements of the result.
const N: usize = 1 << 24;
const RADIUS: usize = 4;
const LAUNCHES: usize = 20_000;
/// Microseconds that the look-up may take.
const ALLOWED: f64 = 0.03;

static OF_STENCIL: SpecId<u32> = SpecId::new(1);
static OF_LAUNCH: SpecId<u32> = SpecId::new(1);

pub(crate) fn measure(device: &Device, measured: &mut Measured<'_>) -> Result {
    if measured.options.wants_any(&[SPECIALISED[0], SPECIALISED_GAIN[0]]) {
        let queue = Queue::builder().device(device).in_order().build()?;
        let [variant, constant, plain] = Stencil::new(&queue)?.times()?;
        measured.add_pair(SPECIALISED, || Ok([variant, constant]))?;
        measured.add_pair(SPECIALISED_GAIN, || Ok([variant, plain]))?;
    }
    measured.add_pair(SPECIALISED_HIT, || {
        let queue = Queue::builder().device(device).in_order().batching(false).build()?;
        let [hit, plain] = launches(&queue)?;
        Ok([hit, plain + ALLOWED])
    })
}

/// Weighs the neighbours of the work-item's element, as far as the radius. The first is that at the work-item's own id.
#[inline(always)]
fn weigh(item: Item<'_, 1>, radius: u32, input: Accessor<'_, f32, 1, Read>, output: Accessor<'_, f32, 1, Write>) {
    let (input, first) = (input.view(item), item.index());
    let sum = (0..2 * radius + 1).fold(0.0, |sum, at| sum + weight(at) * input[first + at as usize]);
    output.set(item, sum);
}

fn weight(at: u32) -> f32 {
    1.0 + (at % 3) as f32
}

struct Stencil<'a> {
    queue: &'a Queue,
    input: Buffer<f32, 1>,
    output: Buffer<f32, 1>,
}

impl<'a> Stencil<'a> {
    fn new(queue: &'a Queue) -> Result<Self> {
        let input = (0..N + 2 * RADIUS).map(|i| (i % 17) as f32).collect();
        Ok(Self { queue, input: Buffer::from_vec(input)?, output: Buffer::from_vec(vec![0.0; N])? })
    }

    /// With the radius as a specialization constant.
    fn variant(&self, radius: u32) -> Result {
        let event = self.queue.submit(|cg| {
            cg.set_constant(&OF_STENCIL, radius)?;
            let radius = cg.constant(&OF_STENCIL);
            let (input, output) = (cg.access(&self.input, Read), cg.access(&self.output, Write));
            cg.parallel_for(N, move |item| weigh(item, radius.get(), input, output))
        });
        event?.wait()
    }

    /// With the radius as a const parameter.
    fn constant<const R: u32>(&self) -> Result {
        let event = self.queue.submit(|cg| {
            let (input, output) = (cg.access(&self.input, Read), cg.access(&self.output, Write));
            cg.parallel_for(N, move |item| weigh(item, R, input, output))
        });
        event?.wait()
    }

    /// With the radius as a plain argument.
    fn plain(&self, radius: u32) -> Result {
        let event = self.queue.submit(|cg| {
            let (input, output) = (cg.access(&self.input, Read), cg.access(&self.output, Write));
            cg.parallel_for(N, move |item| weigh(item, radius, input, output))
        });
        event?.wait()
    }

    fn check(&self) -> Result {
        let expected =
            |i: usize| -> f32 { (0..2 * RADIUS + 1).map(|at| weight(at as u32) * ((i + at) % 17) as f32).sum() };
        let output = self.output.to_vec()?;
        for i in [0, 1, N / 2, N - 1] {
            assert_eq!(output[i], expected(i), "element {i} agrees with plain Rust");
        }
        Ok(())
    }

    /// Microseconds of each form.
    fn times(&self) -> Result<[f64; 3]> {
        let radius = black_box(RADIUS as u32);
        self.queue.wait()?;
        let before = counters().unspecialized_launches;
        self.variant(radius)?;
        self.check()?;
        assert_eq!(counters().unspecialized_launches, before, "the kernel was compiled for its constant");
        self.constant::<{ RADIUS as u32 }>()?;
        self.check()?;
        self.plain(radius)?;
        self.check()?;
        let mut best = [f64::INFINITY; 3];
        for _ in 0..30 {
            best[0] = best[0].min(best_of(1, || self.variant(radius))?);
            best[1] = best[1].min(best_of(1, || self.constant::<{ RADIUS as u32 }>())?);
            best[2] = best[2].min(best_of(1, || self.plain(radius))?);
        }
        Ok(best.map(|time| time * 1e6))
    }
}

/// Microseconds of a launch with a constant whose code is known, and of one with a plain argument.
fn launches(queue: &Queue) -> Result<[f64; 2]> {
    let numbers = Buffer::from_vec(vec![0u32; 64])?;
    let (one, before) = (black_box(1u32), counters().unspecialized_launches);
    let mut hit = || -> Result {
        queue.submit(|cg| {
            let (added, numbers) = (cg.constant(&OF_LAUNCH), cg.access(&numbers, ReadWrite));
            cg.parallel_for_with(64, added, move |item, added| numbers.update(item, |x| x + added))
        })?;
        Ok(())
    };
    let mut plain = || -> Result {
        queue.submit(|cg| {
            let numbers = cg.access(&numbers, ReadWrite);
            cg.parallel_for_with(64, Bits(one), move |item, added| numbers.update(item, |x| x + added))
        })?;
        Ok(())
    };
    queue.wait()?;
    hit()?;
    queue.wait()?;
    assert_eq!(counters().unspecialized_launches, before, "the kernel was compiled for its constant");
    let time = |launch: &mut dyn FnMut() -> Result| {
        best_of(1, || {
            for _ in 0..LAUNCHES {
                launch()?;
            }
            queue.wait()
        })
    };
    let mut best = [f64::INFINITY; 2];
    for _ in 0..10 {
        best[0] = best[0].min(time(&mut hit)?);
        best[1] = best[1].min(time(&mut plain)?);
    }
    Ok(best.map(|time| time / LAUNCHES as f64 * 1e6))
}
