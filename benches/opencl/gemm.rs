//! The product of two matrices by tiles in local memory: our kernel and OpenCL C on the same driver, by processor time.

use std::error::Error;

use oxisycl::prelude::*;

use crate::Setting;
use crate::case::Case;
use crate::matrices::{AMOUNT, Matrices};
use crate::product::Product;
use crate::protocol::Measured;
use crate::random::Random;

const NAME: &str = "opencl.gemm";

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    println!("{NAME}: --seed {}", setting.seed);
    let mut random = Random::new(setting.seed);
    let matrices = Matrices::new(&mut random)?;
    let queue = Queue::builder().device(&setting.opencl).in_order().build()?;
    let mut peer = Product::new(&setting.reference, &matrices)?;
    let case = Case { name: NAME, unit: "GFLOP/s", amount: AMOUNT, peer: "OpenCL C, processor time", bar: 0.87 };
    let measured = case.measure(setting.options.rounds, &mut || matrices.multiply(&queue), &mut || peer.multiply());
    matrices.check_ours(&mut random)?;
    matrices.check("OpenCL C", peer.elements(), &mut random);
    results.push(measured);
    Ok(())
}
