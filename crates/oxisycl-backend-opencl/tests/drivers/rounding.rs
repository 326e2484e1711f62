//! Division and square root of `f32`, which drivers round correctly only if they are asked to.

use std::alloc::Layout;
use std::sync::Arc;

use oxisycl_backend::{Command, CopyCommand, Device, FpConfig, MemoryId, Module, UsmKind};
use oxisycl_backend_opencl::SharingKind;

use crate::support::{devices_that, image, in_order, launch_with, row, succeed};

crate::suite::tests![division_and_square_root_are_rounded_correctly_by_code_and_by_binary,];

const N: usize = 1 << 14;

/// Numbers from 2^-20 to 2^20 without pattern.
fn pairs() -> Vec<[f32; 2]> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let exponent = 107 + (state >> 33) as u32 % 40;
        f32::from_bits(exponent << 23 | (state >> 41) as u32)
    };
    (0..N).map(|_| [next(), next()]).collect()
}

/// The quotient of each pair and the square root of its first number, by their bits, as the module's kernel computes them.
fn computed(device: &Arc<dyn Device>, module: &Arc<dyn Module>) -> Vec<[u32; 2]> {
    let mut numbers = pairs();
    let queue = in_order(device);
    let layout = Layout::for_value(&numbers[..]);
    let memory = device.memory().allocate(UsmKind::Device, layout, true).expect("there is memory");
    let (near, host) =
        (row(device.info().memory.id, memory.as_ptr()), row(MemoryId::HOST, numbers.as_mut_ptr().cast()));
    let extent = [1, 1, layout.size()];
    succeed(&queue, Command::from(CopyCommand { source: host, target: near, extent }));
    let kernel = module.kernel("rounded").expect("the image has the kernel");
    succeed(&queue, launch_with(&kernel, "rounded", &(memory.as_ptr() as u64), N));
    succeed(&queue, Command::from(CopyCommand { source: near, target: host, extent }));
    // SAFETY: allocated above; the commands have ended.
    unsafe { device.memory().free(memory, UsmKind::Device, layout) };
    numbers.into_iter().map(|pair| pair.map(f32::to_bits)).collect()
}

fn division_and_square_root_are_rounded_correctly_by_code_and_by_binary() {
    let right: Vec<_> = pairs().into_iter().map(|[a, b]| [a / b, a.sqrt()].map(f32::to_bits)).collect();
    // SAFETY: the code of this test.
    let load = |device: &Arc<dyn Device>| unsafe { device.load(&image(), None) }.expect("the driver takes the image");
    // Some drivers do it without a promise.
    let rounds = |device: &Arc<dyn Device>| {
        device.info().single_fp_config.contains(&FpConfig::CorrectlyRoundedDivideSqrt)
            || computed(device, &load(device)) == right
    };
    for device in devices_that(SharingKind::Best, "promises correct rounding, or does it", rounds) {
        let module = load(&device);
        let by_code = computed(&device, &module);
        let n_wrong = by_code.iter().zip(&right).filter(|(found, right)| found != right).count();
        assert_eq!(n_wrong, 0, "of {N} on {}", device.info().name);
        let Some(binary) = module.binary() else { continue };
        drop(module);
        // SAFETY: what `binary` gave.
        let again = unsafe { device.load(&image(), Some(&binary)) }.expect("the driver takes its own binary");
        assert!(computed(&device, &again) == by_code, "the binary rounds otherwise on {}", device.info().name);
    }
}
