//! All inputs of the `f32` functions of one argument, once, on a GPU: see `main`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Instant;

use oxisycl::BackendKind;
use oxisycl::prelude::*;

use crate::measure::{Report, Worst};
use crate::on_devices::devices;
use crate::unary::SINGLE;

/// Inputs at a time: a buffer of 256 MiB.
const PART: usize = 1 << 26;

#[test]
fn all_inputs_of_f32_functions_are_within_their_limits_if_asked_for() {
    let Ok(path) = std::env::var("OXISYCL_MATH_EXHAUSTIVE") else {
        println!("left out: OXISYCL_MATH_EXHAUSTIVE names no file for the results");
        return;
    };
    let wanted = std::env::var("OXISYCL_MATH_FUNCTIONS").unwrap_or_default();
    let wanted: Vec<_> = wanted.split(',').filter(|name| !name.is_empty()).collect();
    let mut file =
        OpenOptions::new().create(true).append(true).open(&path).expect("the file of results can be written");
    let mut report = Report::default();
    let mut devices = devices();
    // The host is the reference's; it is tested alone if there is nothing else.
    if devices.iter().any(|(_, queue)| queue.device().backend() != BackendKind::Host) {
        devices.retain(|(_, queue)| queue.device().backend() != BackendKind::Host);
    }
    for (device, queue) in devices {
        let results = Buffer::uninit(PART).expect("a buffer");
        for function in SINGLE.iter().filter(|function| wanted.is_empty() || wanted.contains(&function.name)) {
            let start = Instant::now();
            let mut worst = Worst::none();
            for first in (0..1_u64 << 32).step_by(PART) {
                let first = first as u32;
                (function.of_bits)(&queue, first, &results);
                let results = results.host_access(Read).expect("the results come to the host");
                worst =
                    worst.join(function.judge(|position| f32::from_bits(first + position as u32), results.as_slice()));
            }
            report.add(&device, function.name, function.limit, &worst);
            let Worst { error, n_inputs, place } = worst;
            let line = format!(
                "{{\"device\": \"{device} {}\", \"function\": \"{}\", \"worst_ulp\": {error:.4}, \"limit_ulp\": {}, \"inputs\": {n_inputs}, \"worst_at\": \"{place}\", \"seconds\": {:.1}}}",
                queue.device().name(),
                function.name,
                function.limit,
                start.elapsed().as_secs_f64()
            );
            writeln!(file, "{line}").and_then(|()| file.flush()).expect("the file of results can be written");
        }
    }
    report.end();
}
