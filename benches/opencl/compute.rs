//! Kernels that compute: n-body and Mandelbrot in `f32`, beside the same in OpenCL C with its best group.

use std::error::Error;

use oxisycl::prelude::*;

use crate::Setting;
use crate::bodies::{Body, force_in_x, mandelbrot as draw, pull};
use crate::protocol::{Bar, Measured, Rounds, Summary, least, seconds};
use crate::reference::Kernel;

const BODIES: usize = 8192;
/// Pixels of a side of the image.
const SIDE: usize = 1024;
const LIMIT: u32 = 1000;
const STEP: f32 = 2.5 / SIDE as f32;

/// How often each group of the peer is tried.
const TRIALS: usize = 3;

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    if setting.options.wants(NBODY) {
        results.push(nbody(setting)?);
    }
    if setting.options.wants(MANDELBROT) {
        results.push(mandelbrot(setting)?);
    }
    Ok(())
}

const NBODY: &str = "opencl.nbody";
const MANDELBROT: &str = "opencl.mandelbrot";

/// One work on three sides.
struct Case<'a> {
    name: &'a str,
    /// What is done, in 10^9.
    amount: f64,
    ours: &'a dyn Fn() -> oxisycl::Result,
    host: &'a dyn Fn() -> oxisycl::Result,
    peer: &'a Kernel<'a>,
    range: [usize; 2],
}

impl Case<'_> {
    fn measure(&self, setting: &Setting) -> Result<Measured, Box<dyn Error>> {
        let group = self.peer.best_group(self.range, TRIALS)?;
        let group_text = group.map_or("the driver's groups".to_owned(), |[x, y]| format!("groups of {x} x {y}"));
        let rate =
            |run: &dyn Fn() -> oxisycl::Result| self.amount / least(|| seconds(|| run().expect("the kernel runs")));
        let mut host_rates = Vec::new();
        let rounds = Rounds::run(
            setting.options.rounds,
            None,
            || {
                host_rates.push(rate(self.host));
                rate(self.ours)
            },
            || self.amount / least(|| self.peer.time(self.range, group).expect("the peer's kernel runs")),
        );
        let measured =
            rounds.measured(self.name, "G/s", &format!("OpenCL C, {group_text}")).bar(Bar::RatioAtLeast(0.95));
        let measured = measured.beside(format!("{} host device", Summary::of(&host_rates[1..])));
        measured.print();
        Ok(measured)
    }
}

/// Interactions in 10^9 per second.
fn nbody(setting: &Setting) -> Result<Measured, Box<dyn Error>> {
    let place = |i: usize| (i * 7919 % 1000) as f32 * 0.001;
    let start: Vec<Body> =
        (0..BODIES).map(|i| Body { x: place(i), y: place(i + 1), z: place(i + 2), w: 1.0 }).collect();
    let side = |device: &Device| -> oxisycl::Result<_> {
        let queue = Queue::builder().device(device).in_order().build()?;
        let bodies = Buffer::from_vec(start.clone())?;
        Ok((queue, bodies, Buffer::from_vec(start.clone())?))
    };
    let run = |(queue, bodies, forces): &(Queue, Buffer<Body, 1>, Buffer<Body, 1>)| pull(queue, bodies, forces)?.wait();
    let (ours, host) = (side(&setting.opencl)?, side(&setting.host)?);
    let kernel = setting.reference.kernel("nbody")?;
    let (mut bodies, mut forces) = (setting.reference.memory(BODIES)?, setting.reference.memory(BODIES)?);
    bodies.elements().copy_from_slice(&start);
    kernel.set_memory(0, &bodies)?;
    kernel.set_memory(1, &forces)?;
    kernel.set(2, BODIES as u32)?;
    let amount = (BODIES * BODIES) as f64 / 1e9;
    let (run_ours, run_host) = (|| run(&ours), || run(&host));
    let case = Case { name: NBODY, amount, ours: &run_ours, host: &run_host, peer: &kernel, range: [BODIES, 1] };
    let measured = case.measure(setting)?;
    let (got, theirs): (Vec<Body>, &[Body]) = (ours.2.to_vec()?, forces.elements());
    for i in (0..BODIES).step_by(97) {
        let expected = force_in_x(start[i], &start);
        for (who, found) in [("ours", got[i].x), ("OpenCL C", theirs[i].x)] {
            let error = (f64::from(found) - expected).abs() / expected.abs().max(1.0);
            assert!(error < 1e-2, "body {i}: {found} of {who}, {expected} in plain Rust");
        }
    }
    Ok(measured)
}

/// Steps in 10^9 per second.
fn mandelbrot(setting: &Setting) -> Result<Measured, Box<dyn Error>> {
    let side = |device: &Device| -> oxisycl::Result<_> {
        let queue = Queue::builder().device(device).in_order().build()?;
        Ok((queue, Buffer::<u32, 2>::from_vec_nd(vec![0; SIDE * SIDE], [SIDE, SIDE])?))
    };
    // Known when the kernel runs, as for the peer.
    let limit = std::hint::black_box(LIMIT);
    let run = |(queue, image): &(Queue, Buffer<u32, 2>)| draw(queue, image, limit, STEP)?.wait();
    let (ours, host) = (side(&setting.opencl)?, side(&setting.host)?);
    let kernel = setting.reference.kernel("mandelbrot")?;
    let mut image = setting.reference.memory::<u32>(SIDE * SIDE)?;
    kernel.set_memory(0, &image)?;
    kernel.set(1, LIMIT)?;
    kernel.set(2, STEP)?;
    run(&host)?;
    let expected = host.1.to_vec()?;
    let amount = expected.iter().map(|n| f64::from(*n)).sum::<f64>() / 1e9;
    let (run_ours, run_host) = (|| run(&ours), || run(&host));
    let case = Case { name: MANDELBROT, amount, ours: &run_ours, host: &run_host, peer: &kernel, range: [SIDE, SIDE] };
    let measured = case.measure(setting)?;
    // A product and a sum that are rounded once, not twice, let a few points at the edge escape earlier or later.
    for (who, found) in [("ours", &ours.1.to_vec()?[..]), ("OpenCL C", &image.elements()[..])] {
        let n_other = found.iter().zip(&expected).filter(|(found, expected)| found != expected).count();
        assert!(n_other < SIDE * SIDE / 20, "{n_other} points of {who} differ from the host device's");
    }
    Ok(measured)
}
