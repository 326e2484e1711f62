//! Functions applied to many inputs by kernels.

use oxisycl::prelude::*;

/// Every device that is present, by name, less those that have no code of this program: it was not built by `cargo sycl`.
pub(crate) fn devices() -> Vec<(String, Queue)> {
    let mut devices = Vec::new();
    for (number, device) in Device::all().expect("devices can be listed").into_iter().enumerate() {
        let name = format!("{}:{number}", device.backend().name());
        if let Some(reason) = device.unusable() {
            println!("{name} is left out: {reason}");
            continue;
        }
        let queue = Queue::new(&device).expect("a queue can be made");
        let probe = queue.submit(|cg| cg.parallel_for(1, |_| {}));
        match probe {
            Ok(event) => {
                event.wait().expect("an empty kernel runs");
                devices.push((name, queue));
            }
            Err(error) if error.code() == ErrorCode::KernelNotSupported => println!("{name} is left out: {error}"),
            Err(error) => panic!("{name}: {error}"),
        }
    }
    assert!(!devices.is_empty(), "the host device is always there");
    devices
}

/// Whether the device has `f64`; says so if not.
pub(crate) fn has_double((name, queue): &(String, Queue)) -> bool {
    let has = queue.device().has(Aspect::Fp64);
    if !has {
        println!("{name} has no f64");
    }
    has
}

/// `f` of each input.
pub(crate) fn mapped<I, R>(queue: &Queue, inputs: &[I], f: impl Fn(I) -> R + Copy + Send + Sync + 'static) -> Vec<R>
where
    I: DeviceCopyable,
    R: DeviceCopyable + Default,
{
    let n = inputs.len();
    let arguments = Buffer::from_slice_nd(inputs, n).expect("a buffer");
    let results = Buffer::from_vec(vec![R::default(); n]).expect("a buffer");
    let event = queue.submit(|cg| {
        let arguments = cg.access(&arguments, Read);
        let results = cg.access(&results, Write);
        cg.parallel_for(n, move |item| results.set(item, f(arguments.get(item))))
    });
    event.expect("the kernel is submitted").wait().expect("the kernel runs");
    results.into_vec().expect("results")
}

/// Fills `results` with `f` of the numbers with successive bit patterns.
pub(crate) fn of_bits(
    queue: &Queue,
    first: u32,
    results: &Buffer<f32, 1>,
    f: impl Fn(f32) -> f32 + Copy + Send + Sync + 'static,
) {
    let event = queue.submit(|cg| {
        let results = cg.access(results, Write);
        cg.parallel_for(results.range(), move |item| {
            results.set(item, f(f32::from_bits(first + item.linear_id() as u32)))
        })
    });
    event.expect("the kernel is submitted").wait().expect("the kernel runs");
}
