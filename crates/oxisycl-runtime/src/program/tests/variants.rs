//! Variants for values of specialization constants: when they are built, how many, and what launches run meanwhile.

use std::sync::Barrier;

use oxisycl_backend::{Captures, KernelGroupLimits};
use oxisycl_image::SpecializedLoad;

use super::*;
use crate::Error;
use crate::program::variants::MAX_VARIANTS;

/// The argument block of the kernels here: an address, a constant, and padding that nothing may look at.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) constant: u32,
    // Padding follows.
}

/// An image whose kernel loads a constant in two places.
pub(super) fn specialized_image() -> DeviceImage {
    let load = |register: &str| SpecializedLoad::text(8, 4, register, "first_param_1");
    let mut image = first_image(80);
    image.code = format!("{{\n\t{}\n\tadd;\n\t{}\n}}\n", load("%r1"), load("%r2")).into_bytes();
    image.kernels[0].specialized = SpecializedLoad::find(&image.code);
    assert_eq!(image.kernels[0].specialized.len(), 2);
    image
}

impl Fixture {
    fn launch_when(&self, constant: u32, is_named: bool, is_idle: fn() -> bool) -> Arc<dyn LoadedKernel> {
        let block = Block { address: 7, constant };
        let values = Values { captures: Captures::of(&block), are_of_constants: is_named, is_idle };
        // SAFETY: the block is a value of the described kernel's type.
        unsafe { self.programs.code_for(&self.devices[0], &descriptor::<First>("a"), &values, |_| Ok(())) }
            .unwrap()
            .wait()
            .unwrap()
    }

    pub(super) fn launch(&self, constant: u32) -> Arc<dyn LoadedKernel> {
        self.launch_when(constant, true, || true)
    }

    /// The code for all values.
    pub(super) fn general(&self) -> Arc<dyn LoadedKernel> {
        self.kernel(&descriptor::<First>("a")).unwrap()
    }

    /// The values for which code was loaded, in that order.
    pub(super) fn variants(&self) -> Vec<u32> {
        let value = |code: &str| {
            let number = code.split("mov.b32 %r1, 0x").nth(1)?.split(';').next()?;
            assert!(code.contains(&format!("mov.b32 %r2, 0x{number};")) && !code.contains("ld.param"), "{code}");
            u32::from_str_radix(number, 16).ok()
        };
        let loads = self.recorder.loads();
        loads.iter().filter_map(|load| value(std::str::from_utf8(&load.image.code).unwrap())).collect()
    }
}

#[test]
fn code_for_a_named_constant_is_built_at_its_first_launch_and_once() {
    let fixture = Fixture::gpu();
    let _bundle = fixture.register(&[specialized_image()]);
    let first = fixture.launch(32);
    assert!(!Arc::ptr_eq(&first, &fixture.general()));
    for _ in 0..3 {
        assert!(Arc::ptr_eq(&fixture.launch(32), &first));
    }
    assert!(!Arc::ptr_eq(&fixture.launch(0xffff_ffff), &first));
    assert_eq!(fixture.variants(), [32, 0xffff_ffff]);
    // Another library is loaded: launches are looked up anew, and nothing is compiled again.
    let _other = fixture.register(&[image(ptx(80), vec![entry_of::<Second>("second")])]);
    assert!(Arc::ptr_eq(&fixture.launch(32), &first));
    assert_eq!(fixture.loads().len(), 3);
}

#[test]
fn code_for_a_value_without_a_name_is_built_when_the_value_comes_again() {
    let fixture = Fixture::gpu();
    let _bundle = fixture.register(&[specialized_image()]);
    let launch = |constant| fixture.launch_when(constant, false, || true);
    for constant in 0..200 {
        assert!(Arc::ptr_eq(&launch(constant), &fixture.general()));
    }
    assert_eq!(fixture.loads().len(), 1, "values that change cost nothing");
    let variant = launch(199);
    assert!(!Arc::ptr_eq(&variant, &fixture.general()) && Arc::ptr_eq(&launch(199), &variant));
    assert_eq!(fixture.variants(), [199]);
    // So long ago that it was forgotten.
    assert!(Arc::ptr_eq(&launch(0), &fixture.general()));
}

#[test]
fn two_values_in_turn_on_four_threads_are_two_builds() {
    let fixture = Fixture::gpu();
    let _bundle = fixture.register(&[specialized_image()]);
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (fixture, start) = (&fixture, &start);
            scope.spawn(move || {
                start.wait();
                (0..100).for_each(|round| drop(fixture.launch((thread + round) % 2)));
            });
        }
    });
    let mut variants = fixture.variants();
    variants.sort_unstable();
    assert_eq!(variants, [0, 1]);
    assert_eq!(fixture.loads().len(), 3);
}

#[test]
fn values_beyond_the_limit_run_the_code_for_all_values() {
    let fixture = Fixture::gpu();
    let _bundle = fixture.register(&[specialized_image()]);
    let n = MAX_VARIANTS as u32;
    for _ in 0..2 {
        for constant in 0..2 * n {
            let is_general = Arc::ptr_eq(&fixture.launch(constant), &fixture.general());
            assert_eq!(is_general, constant >= n, "{constant}");
        }
    }
    assert_eq!(fixture.variants(), (0..n).collect::<Vec<_>>());
}

#[test]
fn nothing_is_built_while_commands_are_unfinished() {
    let fixture = Fixture::gpu();
    let _bundle = fixture.register(&[specialized_image()]);
    for _ in 0..3 {
        assert!(Arc::ptr_eq(&fixture.launch_when(5, true, || false), &fixture.general()));
    }
    assert_eq!(fixture.variants(), []);
    let variant = fixture.launch(5);
    assert_eq!(fixture.variants(), [5]);
    // What there is, is used.
    assert!(Arc::ptr_eq(&fixture.launch_when(5, true, || false), &variant));
}

#[test]
fn code_that_is_refused_is_tried_once() {
    let fixture = Fixture::gpu();
    let _bundle = fixture.register(&[specialized_image()]);
    fixture.general();
    let name = "CUDA_ERROR_INVALID_PTX".to_owned();
    fixture.recorder.refuse_load(BackendError::Driver { call: "cuModuleLoadDataEx", code: 218, name });
    for _ in 0..3 {
        assert!(Arc::ptr_eq(&fixture.launch(1), &fixture.general()));
    }
    assert!(!Arc::ptr_eq(&fixture.launch(2), &fixture.general()));
    // The refused one and the other.
    assert_eq!(fixture.variants(), [1, 2]);
}

/// The launch that has waited as long as it may, those before the driver's answer, and those after it.
#[test]
fn code_that_a_driver_is_late_with_is_used_when_it_is_there() {
    for fails in [false, true] {
        let fixture = Fixture::gpu();
        fixture.programs.limit_compiling(Some(Duration::from_secs(1)));
        let _bundle = fixture.register(&[specialized_image()]);
        let general = fixture.general();
        fixture.recorder.hold_loads();
        for _ in 0..3 {
            assert!(Arc::ptr_eq(&fixture.launch(5), &general));
        }
        assert_eq!(fixture.variants(), [5], "the driver is asked once");
        if fails {
            let name = "CUDA_ERROR_INVALID_PTX".to_owned();
            fixture.recorder.refuse_load(BackendError::Driver { call: "cuModuleLoadDataEx", code: 218, name });
        }
        fixture.recorder.release_loads();
        let begun = std::time::Instant::now();
        let is_there = || !Arc::ptr_eq(&fixture.launch_when(5, true, || false), &general);
        // The thread that has the driver compile drops its job before it answers.
        while if fails { fixture.programs.variants.has_late() } else { !is_there() } {
            assert!(begun.elapsed() < Duration::from_secs(60), "its answer is used");
            drop(fixture.launch(5));
            std::thread::yield_now();
        }
        assert_eq!(is_there(), !fails);
        assert_eq!(fixture.variants(), [5]);
    }
}

#[test]
fn without_the_setting_nothing_is_built() {
    let fixture = Fixture::gpu();
    fixture.programs.specialize(false);
    let _bundle = fixture.register(&[specialized_image()]);
    assert!(Arc::ptr_eq(&fixture.launch(3), &fixture.general()));
    assert_eq!(fixture.loads().len(), 1);
}

#[test]
fn an_unregistered_image_takes_its_variants_with_it() {
    let fixture = Fixture::gpu();
    let bundle = fixture.register(&[specialized_image()]);
    let variant = Arc::downgrade(&fixture.launch(3));
    // Waits until no launch uses it.
    fixture.unregister(bundle);
    assert_eq!(variant.strong_count(), 0);
    let _bundle = fixture.register(&[specialized_image()]);
    fixture.launch(3);
    assert_eq!(fixture.variants(), [3, 3]);
}

/// The limits of code whose groups have up to `items` work-items, and which has `bytes` of local memory itself.
pub(super) fn limits(items: usize, bytes: usize) -> KernelGroupLimits {
    KernelGroupLimits { items, static_local_bytes: bytes, bytes_of_element: 0 }
}

#[test]
fn launches_are_checked_with_the_limits_of_the_code_for_all_values() {
    let fixture = Fixture::gpu();
    let _bundle = fixture.register(&[specialized_image()]);
    fixture.recorder.limit_groups(limits(64, 100));
    let general = fixture.general();
    // Code for one value needs less.
    fixture.recorder.limit_groups(limits(256, 0));
    for _ in 0..2 {
        let block = Block { address: 7, constant: 3 };
        let values = Values { captures: Captures::of(&block), are_of_constants: true, is_idle: || true };
        let mut checked = None;
        let check = |info: &KernelInfo| {
            checked = Some(info.group_limits);
            Ok(())
        };
        // SAFETY: the block is a value of the described kernel's type.
        let kernel =
            unsafe { fixture.programs.code_for(&fixture.devices[0], &descriptor::<First>("a"), &values, check) };
        let kernel = kernel.unwrap().wait().unwrap();
        assert!(!Arc::ptr_eq(&kernel, &general), "the variant runs");
        assert_eq!((kernel.info().group_limits, checked), (limits(256, 0), Some(limits(64, 100))));
    }
    // A launch that is refused compiles nothing.
    let block = Block { address: 7, constant: 4 };
    let values = Values { captures: Captures::of(&block), are_of_constants: true, is_idle: || true };
    let refuse = |_: &KernelInfo| Err(Error::new(ErrorCode::NdRange, "too large"));
    // SAFETY: as above.
    let refused = unsafe { fixture.programs.code_for(&fixture.devices[0], &descriptor::<First>("a"), &values, refuse) };
    assert_eq!(refused.unwrap_err().code(), ErrorCode::NdRange);
    assert_eq!(fixture.variants(), [3]);
}

#[test]
fn code_for_one_value_that_allows_less_is_not_used() {
    for less in [limits(63, 100), limits(64, 101)] {
        let fixture = Fixture::gpu();
        let _bundle = fixture.register(&[specialized_image()]);
        fixture.recorder.limit_groups(limits(64, 100));
        let general = fixture.general();
        fixture.recorder.limit_groups(less);
        assert!(Arc::ptr_eq(&fixture.launch(3), &general));
        assert!(Arc::ptr_eq(&fixture.launch(3), &general));
        assert_eq!(fixture.variants(), [3], "it was tried once");
    }
}
