//! Bundles of kernels: which images of which devices they have, and what drivers refuse.

use oxisycl_backend::Captures;
use oxisycl_image::StatedNeeds;

use super::variants::{Block, limits, specialized_image};
use super::*;
use crate::Error;

fn wanted<K: 'static>() -> WantedKernel {
    let descriptor = descriptor::<K>("");
    let key = KernelKey::new(descriptor.id.type_id, descriptor.id.form);
    WantedKernel { key, entry: None, name: descriptor.type_name.to_owned(), stated: StatedNeeds::NONE }
}

#[test]
fn an_image_that_the_driver_refuses_is_a_build_error_with_its_log() {
    let fixture = Fixture::gpu();
    let second = image(ptx(80), vec![entry_of::<Second>("second")]);
    let _bundle = fixture.register(&[first_image(80), second]);
    let bundle = fixture.programs.bundle(&fixture.devices, None, None).unwrap();
    assert!(fixture.loads().is_empty(), "to choose images loads nothing");
    let name = "CUDA_ERROR_INVALID_PTX; the driver's log: line 7".to_owned();
    fixture.recorder.refuse_load(BackendError::Driver { call: "cuModuleLoadDataEx", code: 218, name });
    let error = fixture.programs.load_bundle(&bundle).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Build);
    assert!(error.to_string().contains("First") && error.to_string().contains("line 7"), "{error}");
    assert_eq!(fixture.loads().len(), 2, "the other kernel is loaded");
    let device = &fixture.devices[0];
    fixture.programs.kernel_of_bundle(&bundle, device, &descriptor::<Second>("b")).unwrap().unwrap();
    assert_eq!(fixture.loads().len(), 2);
}

#[test]
fn a_device_that_runs_none_of_the_kernels_is_left_out_if_another_runs_some() {
    let fixture = Fixture::gpu();
    let other = Fixture::new(RecordingConfig::new(1).with_images(&[ptx(70)]));
    let devices = [fixture.devices[0].clone(), other.devices[0].clone()];
    let empty = fixture.programs.bundle(&devices, None, None).unwrap();
    assert_eq!((empty.devices().len(), empty.is_empty()), (2, true));
    let _bundle = fixture.register(&[first_image(80)]);
    let bundle = fixture.programs.bundle(&devices, Some(&[wanted::<First>()]), None).unwrap();
    assert!(bundle.devices().len() == 1 && Arc::ptr_eq(&bundle.devices()[0], &devices[0]));
    let error = fixture.programs.bundle(&devices[1..], Some(&[wanted::<First>()]), None).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
    assert!(error.to_string().contains("build it with `cargo sycl build --targets sm_70`"), "{error}");
    assert!(fixture.programs.bundle(&devices[1..], None, None).unwrap().is_empty());
}

#[test]
fn a_bundle_has_the_best_image_that_its_selector_leaves() {
    let fixture = Fixture::gpu();
    let _bundle = fixture.register(&[first_image(70), first_image(80), first_image(90)]);
    let targets = |select: Option<SelectImage<'_>>| -> Vec<ImageTarget> {
        let bundle = fixture.programs.bundle(&fixture.devices, None, select).unwrap();
        fixture.programs.load_bundle(&bundle).unwrap();
        bundle.images().into_iter().filter_map(|image| image.target).collect()
    };
    assert_eq!(targets(None), [ptx(80)]);
    assert_eq!(targets(Some(&mut |image: &BundleImage| image.target == Some(ptx(70)))), [ptx(70)]);
    assert_eq!(targets(Some(&mut |_: &BundleImage| false)), []);
    assert_eq!(fixture.loads(), ["sm_80", "sm_70"]);
}

#[test]
fn a_bundle_holds_no_kernel_and_what_was_unloaded_is_not_launched() {
    let fixture = Fixture::gpu();
    let (library, device) = (fixture.register(&[first_image(80)]), &fixture.devices[0]);
    let bundle = fixture.programs.bundle(&fixture.devices, None, None).unwrap();
    let launch = || fixture.programs.kernel_of_bundle(&bundle, device, &descriptor::<First>("a"));
    for _ in 0..2 {
        drop(launch().unwrap().unwrap());
    }
    assert_eq!(fixture.recorder.n_modules(), 1);
    // Returns, as nothing but the table holds the kernel.
    fixture.unregister(library);
    assert_eq!(fixture.recorder.n_modules(), 0);
    let error = launch().unwrap_err();
    assert_eq!(error.code(), ErrorCode::KernelNotSupported);
    assert!(error.to_string().contains("its library was unloaded"), "{error}");
}

#[test]
fn captures_are_compared_in_a_launch_by_a_bundle_as_in_another() {
    let fixture = Fixture::gpu();
    let mut wrong = first_image(80);
    wrong.kernels[0].parameters = ParameterLayout { size: 64, align: 16 };
    let _bundle = fixture.register(&[wrong]);
    let bundle = fixture.programs.bundle(&fixture.devices, None, None).unwrap();
    let launch = fixture.programs.kernel_of_bundle(&bundle, &fixture.devices[0], &descriptor::<First>("a"));
    assert_eq!(launch.unwrap_err().code(), ErrorCode::KernelArgument);
}

impl Fixture {
    /// The code of a launch by a bundle, with a named constant of this value. `check` is what it is held against.
    fn launch_by(
        &self,
        bundle: &KernelBundle,
        constant: u32,
        check: impl FnOnce(&KernelInfo) -> Result,
    ) -> Result<Arc<dyn LoadedKernel>> {
        let block = Block { address: 7, constant };
        let values = Values { captures: Captures::of(&block), are_of_constants: true, is_idle: || true };
        let descriptor = descriptor::<First>("a");
        // SAFETY: the block is a value of the described kernel's type.
        unsafe { self.programs.code_of_bundle_for(bundle, &self.devices[0], &descriptor, &values, check) }?
            .expect("the device takes images")
            .wait()
    }
}

#[test]
fn launches_by_bundles_have_code_for_their_values_as_others_have() {
    let fixture = Fixture::gpu();
    let library = fixture.register(&[specialized_image()]);
    let bundles = [0; 2].map(|_| fixture.programs.bundle(&fixture.devices, None, None).unwrap());
    fixture.programs.load_bundle(&bundles[0]).unwrap();
    assert_eq!(fixture.variants(), []);
    let launch = |bundle: usize, constant| fixture.launch_by(&bundles[bundle], constant, |_| Ok(())).unwrap();
    let first = launch(0, 5);
    assert!(!Arc::ptr_eq(&first, &fixture.general()));
    for bundle in [0, 1, 0, 1] {
        assert!(Arc::ptr_eq(&launch(bundle, 5), &first));
    }
    assert!(Arc::ptr_eq(&fixture.launch(5), &first), "a launch without a bundle has the same code");
    assert!(!Arc::ptr_eq(&launch(1, 6), &first));
    assert_eq!(fixture.variants(), [5, 6]);
    // No bundle holds a variant.
    let first = Arc::downgrade(&{ first });
    fixture.unregister(library);
    assert_eq!((first.strong_count(), fixture.recorder.n_modules()), (0, 0));
    let error = fixture.launch_by(&bundles[0], 5, |_| Ok(())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::KernelNotSupported);
}

#[test]
fn launches_by_bundles_are_checked_with_the_limits_of_the_code_for_all_values() {
    let fixture = Fixture::gpu();
    let _library = fixture.register(&[specialized_image()]);
    let bundle = fixture.programs.bundle(&fixture.devices, None, None).unwrap();
    fixture.recorder.limit_groups(limits(64, 100));
    fixture.programs.load_bundle(&bundle).unwrap();
    fixture.recorder.limit_groups(limits(256, 0));
    for _ in 0..2 {
        let mut checked = None;
        let check = |info: &KernelInfo| {
            checked = Some(info.group_limits);
            Ok(())
        };
        let kernel = fixture.launch_by(&bundle, 3, check).unwrap();
        assert_eq!((kernel.info().group_limits, checked), (limits(256, 0), Some(limits(64, 100))));
    }
    // A launch that is refused compiles nothing.
    let refused = fixture.launch_by(&bundle, 4, |_| Err(Error::new(ErrorCode::NdRange, "too large")));
    assert_eq!(refused.unwrap_err().code(), ErrorCode::NdRange);
    assert_eq!(fixture.variants(), [3]);
    // The setting holds for bundles, too.
    let fixture = Fixture::gpu();
    fixture.programs.specialize(false);
    let _library = fixture.register(&[specialized_image()]);
    let bundle = fixture.programs.bundle(&fixture.devices, None, None).unwrap();
    fixture.launch_by(&bundle, 3, |_| Ok(())).unwrap();
    assert_eq!(fixture.loads().len(), 1);
}
