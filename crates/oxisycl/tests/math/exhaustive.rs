//! Tests the `f32` functions of one argument on successive inputs. By default these are the first ones of each part of the range. On
//! request a GPU gets all of them, once: see `main`.

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
/// Of each part where not all inputs are asked for.
const FEW: usize = 1 << 10;

#[test]
fn successive_inputs_of_f32_functions_are_within_their_limits() {
    let path = std::env::var_os("OXISYCL_TEST_MATH_EXHAUSTIVE");
    let n_of_part = if path.is_some() { PART } else { FEW };
    let wanted = std::env::var("OXISYCL_TEST_MATH_FUNCTIONS").unwrap_or_default();
    let wanted: Vec<_> = wanted.split(',').filter(|name| !name.is_empty()).collect();
    let functions: Vec<_> =
        SINGLE.iter().filter(|function| wanted.is_empty() || wanted.contains(&function.name)).collect();
    assert!(!functions.is_empty(), "OXISYCL_TEST_MATH_FUNCTIONS names no function of one argument: {wanted:?}");
    let mut file = path.map(|path| {
        OpenOptions::new().create(true).append(true).open(path).expect("the file of results can be written")
    });
    let mut report = Report::default();
    let mut devices = devices();
    // The host is the reference's; it is tested alone if there is nothing else.
    if devices.iter().any(|(_, queue)| queue.device().backend() != BackendKind::Host) {
        devices.retain(|(_, queue)| queue.device().backend() != BackendKind::Host);
    }
    for (device, queue) in devices {
        let results = Buffer::uninit(n_of_part).expect("a buffer");
        for function in &functions {
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
            let Some(file) = &mut file else { continue };
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
