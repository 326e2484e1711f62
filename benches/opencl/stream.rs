//! BabelStream's kernels through accessors, the same program on the OpenCL device and on the host device.
//!
//! Every round allocates and fills all arrays anew, so that neither keeps lucky or unlucky memory.

use std::error::Error;

use oxisycl::prelude::*;

use crate::Setting;
use crate::protocol::{Bar, Measured, Rounds, Summary, least, seconds};
use crate::reference::Memory;

/// Elements of an array: four times what the largest caches of such machines hold, with the other arrays more.
const N: usize = 1 << 24;
const SCALAR: f64 = 0.4;
const START: [f64; 3] = [0.1, 0.2, 0.0];

/// A step: its name, and the arrays that it reads and writes.
const STEPS: [(&str, usize); 4] = [("copy", 2), ("mul", 2), ("add", 3), ("triad", 3)];

fn name(step: usize) -> String {
    format!("opencl.stream.{}", STEPS[step].0)
}

struct Arrays {
    queue: Queue,
    a: Buffer<f64, 1>,
    b: Buffer<f64, 1>,
    c: Buffer<f64, 1>,
}

impl Arrays {
    /// Memory of the runtime, first written by a kernel.
    fn new(device: &Device) -> oxisycl::Result<Self> {
        let new = || Buffer::uninit([N]);
        let queue = Queue::builder().device(device).in_order().build()?;
        let arrays = Self { queue, a: new()?, b: new()?, c: new()? };
        let event = arrays.queue.submit(|cg| {
            let a = cg.access(&arrays.a, Write.no_init());
            let b = cg.access(&arrays.b, Write.no_init());
            let c = cg.access(&arrays.c, Write.no_init());
            cg.parallel_for([N], move |item| {
                a.set(item, START[0]);
                b.set(item, START[1]);
                c.set(item, START[2]);
            })
        })?;
        event.wait()?;
        Ok(arrays)
    }

    fn run(&self, step: usize) -> oxisycl::Result {
        let event = self.queue.submit(|cg| match step {
            0 => {
                let (a, c) = (cg.access(&self.a, Read), cg.access(&self.c, Write));
                cg.parallel_for([N], move |item| c.set(item, a.get(item)))
            }
            1 => {
                let (b, c) = (cg.access(&self.b, Write), cg.access(&self.c, Read));
                cg.parallel_for([N], move |item| b.set(item, SCALAR * c.get(item)))
            }
            2 => {
                let (a, b) = (cg.access(&self.a, Read), cg.access(&self.b, Read));
                let c = cg.access(&self.c, Write);
                cg.parallel_for([N], move |item| c.set(item, a.get(item) + b.get(item)))
            }
            _ => {
                let a = cg.access(&self.a, Write);
                let (b, c) = (cg.access(&self.b, Read), cg.access(&self.c, Read));
                cg.parallel_for([N], move |item| a.set(item, b.get(item) + SCALAR * c.get(item)))
            }
        })?;
        event.wait()
    }

    /// GB/s, the best of a few.
    fn rate(&self, step: usize) -> oxisycl::Result<f64> {
        let mut done = Ok(());
        let time = least(|| {
            seconds(|| {
                if done.is_ok() {
                    done = self.run(step);
                }
            })
        });
        done.map(|()| gigabytes(step) / time)
    }

    fn check_equal(&self, other: &Self) -> oxisycl::Result {
        for (ours, theirs) in [(&self.a, &other.a), (&self.b, &other.b), (&self.c, &other.c)] {
            let (ours, theirs) = (ours.to_vec()?, theirs.to_vec()?);
            assert!(ours == theirs, "the OpenCL device and the host device agree");
        }
        Ok(())
    }
}

fn gigabytes(step: usize) -> f64 {
    (STEPS[step].1 * N * size_of::<f64>()) as f64 / 1e9
}

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    let steps: Vec<usize> = (0..STEPS.len()).filter(|step| setting.options.wants(&name(*step))).collect();
    if steps.is_empty() {
        return Ok(());
    }
    let mut rounds = vec![Rounds::default(); STEPS.len()];
    let mut opencl_c: Vec<Vec<f64>> = vec![Vec::new(); STEPS.len()];
    // The first round only warms up.
    for round in 0..=setting.options.rounds {
        let (ours, host) = (Arrays::new(&setting.opencl)?, Arrays::new(&setting.host)?);
        for &step in &steps {
            // Whoever comes second finds the machine as the first one left it.
            let mut values = [0.0; 3];
            for place in 0..3 {
                let who = if round % 2 == 0 { place } else { 2 - place };
                values[who] = if who == 1 { ours.rate(step)? } else { host.rate(step)? };
            }
            let [peer, value, again] = values;
            if round > 0 {
                rounds[step].ours.push(value);
                rounds[step].peer.push(peer);
                rounds[step].again.push(again);
            }
        }
        ours.check_equal(&host)?;
        drop((ours, host));
        let memory = || setting.reference.memory::<f64>(N);
        let memories = [memory()?, memory()?, memory()?];
        for &step in &steps {
            let rate = opencl_c_rate(setting, step, &memories)?;
            if round > 0 {
                opencl_c[step].push(rate);
            }
        }
    }
    for step in steps {
        let measured = rounds[step].measured(&name(step), "GB/s", "host device").bar(Bar::RatioAtLeast(0.95));
        let measured = measured.beside(format!("{} OpenCL C", Summary::of(&opencl_c[step])));
        measured.print();
        results.push(measured);
    }
    Ok(())
}

/// The rate of kernels in OpenCL C, with groups of 1024 work-items.
fn opencl_c_rate(setting: &Setting, step: usize, memories: &[Memory<'_, f64>]) -> Result<f64, String> {
    let kernel = setting.reference.kernel(STEPS[step].0)?;
    for (index, memory) in memories.iter().enumerate() {
        kernel.set_memory(index as u32, memory)?;
    }
    let mut done = Ok(());
    let time = least(|| match kernel.time([N, 1], Some([1024, 1])) {
        Ok(time) => time,
        Err(error) => {
            done = Err(error);
            f64::INFINITY
        }
    });
    done.map(|()| gigabytes(step) / time)
}
