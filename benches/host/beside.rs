//! Kernels beside the same work on the same processor: OpenCL C (`../opencl/reference.cl`) by its driver, and vectors that were written by hand.
//!
//! Each side has one thread, and values are of processor time. The peer has the best of several groups. Its ranges are rounded up to what
//! groups divide; what is beyond is less than 2 % and counts for none.

use oxisycl::prelude::*;

use crate::Setting;
use crate::case::Case;
use crate::entries;
use crate::protocol::Measured;
use crate::reference::{Kernel, Memory, Reference};

/// How often each group of the peer is tried.
pub(crate) const TRIALS: usize = 3;
/// What divides ranges of the peer, so that it may choose its groups.
pub(crate) const ROUND: usize = 16;

pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What is measured.
#[derive(Clone, Copy)]
pub(crate) struct Figure<'a> {
    pub(crate) name: &'a str,
    /// What is done, in 10^6.
    pub(crate) amount: f64,
    /// The least ratio to the peer.
    pub(crate) bar: f64,
}

/// The device of an OpenCL driver that is this processor.
pub(crate) fn processor() -> Result<Option<Reference>> {
    let is_wanted = |device: &Device| {
        device.backend() == oxisycl::BackendKind::OpenCl && device.is_cpu() && device.unusable().is_none()
    };
    match Device::all()?.iter().find(|device| is_wanted(device)) {
        Some(device) => Reference::of(device).map(Some),
        None => Ok(None),
    }
}

impl Figure<'_> {
    /// Runs the kernel as a process of one entry is told, or leaves it to `others` to compare it.
    pub(crate) fn measure(
        self,
        setting: &Setting,
        ours: &mut dyn FnMut(),
        results: &mut Vec<Measured>,
        others: impl FnOnce(Peers<'_, '_>) -> Result,
    ) -> Result {
        if setting.is_entry() {
            entries::serve(self.name, ours, &mut || {});
            return Ok(());
        }
        ours();
        others(Peers { figure: self, setting, ours, results })
    }
}

/// A figure whose peers take turns with it.
pub(crate) struct Peers<'a, 's> {
    figure: Figure<'a>,
    setting: &'s Setting,
    ours: &'a mut dyn FnMut(),
    results: &'a mut Vec<Measured>,
}

impl<'s> Peers<'_, 's> {
    /// For one more peer, with a name and a bar of its own.
    pub(crate) fn named<'a>(&'a mut self, name: &'a str, bar: f64) -> Peers<'a, 's> {
        let figure = Figure { name, bar, ..self.figure };
        Peers { figure, setting: self.setting, ours: &mut *self.ours, results: &mut *self.results }
    }

    /// The driver of OpenCL, if there is one.
    pub(crate) fn opencl(&self) -> Option<&'s Reference> {
        let opencl = self.setting.opencl.as_ref();
        if opencl.is_none() {
            eprintln!("  {}: there is no OpenCL device that is this processor", self.figure.name);
        }
        opencl
    }

    /// Beside a kernel of OpenCL C over a range, the innermost dimension first.
    pub(crate) fn beside_kernel(&mut self, kernel: &Kernel<'_>, range: [usize; 2]) -> Result {
        let group = kernel.best_group(range, TRIALS)?;
        let peer = match group {
            Some([x, y]) => format!("OpenCL C, groups of {x} x {y}"),
            None => "OpenCL C, the driver's groups".to_owned(),
        };
        self.compare(&peer, &mut || {
            kernel.time(range, group).expect("the peer's kernel runs");
        });
        Ok(())
    }

    /// Beside another program.
    pub(crate) fn compare(&mut self, peer: &str, theirs: &mut dyn FnMut()) {
        let Figure { name, amount, bar } = self.figure;
        let case = Case { name, unit: "M/s", amount, peer, bar };
        let measured = case.measure(self.setting.options.rounds, self.ours, theirs);
        self.results.push(measured);
    }
}

/// Memory of the peer with a copy of these values, and with zeros behind them, `len` in all.
pub(crate) fn copied<'r, T: Copy>(reference: &'r Reference, values: &[T], len: usize) -> Result<Memory<'r, T>> {
    let mut memory = reference.memory(len.max(values.len()))?;
    memory.elements()[..values.len()].copy_from_slice(values);
    Ok(memory)
}

/// How many of the values differ from the others by more than `tolerance`, of the larger one of theirs and 1.
pub(crate) fn n_different(ours: &[f32], theirs: &[f32], tolerance: f32) -> usize {
    // What is no number is near to nothing.
    let are_near = |a: f32, b: f32| (a - b).abs() <= tolerance * b.abs().max(1.0);
    ours.iter().zip(theirs).filter(|(a, b)| !are_near(**a, **b)).count()
}
