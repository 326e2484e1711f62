//! Bundles of kernels: which images of which devices they have, and what drivers refuse.

use oxisycl_image::StatedNeeds;

use super::*;

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
