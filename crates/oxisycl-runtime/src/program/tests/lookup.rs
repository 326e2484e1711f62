//! Which image a kernel gets, and the errors if none.

use oxisycl_image::{HostLevel, StatedNeeds};
use oxisycl_types::{ArgumentPart, ArgumentType, Aspects};

use super::*;
use crate::program::choose::fit;

#[test]
fn the_bytes_of_a_type_id_are_a_key() {
    let key = |form| KernelKey::new(std::any::TypeId::of::<First>(), form);
    assert_eq!(key(Form::Single).type_id, key(Form::Range(1)).type_id);
    assert_ne!(key(Form::Single), key(Form::Range(1)));
    assert_ne!(key(Form::Single), KernelKey::new(std::any::TypeId::of::<Second>(), Form::Single));
}

#[test]
fn a_kernel_is_found_by_type_and_form() {
    let fixture = Fixture::gpu();
    let kernels = vec![entry_of::<First>("first"), entry_of::<Second>("second")];
    let _bundle = fixture.register(&[image(ptx(80), kernels)]);
    let show = |descriptor: &KernelDescriptor| format!("{:?}", fixture.kernel(descriptor).unwrap());
    assert!(show(&descriptor::<First>("a")).contains("first"));
    assert!(show(&descriptor::<Second>("b")).contains("second"));
    let mut other = descriptor::<First>("c");
    other.id.form = Form::Range(2);
    let (code, message) = fixture.error(&other);
    assert_eq!(code, ErrorCode::KernelNotSupported);
    assert_eq!(
        message,
        "kernel \"c\" on device \"recording device 0\": no device image of the program has it; build the crate that \
         launches it with `cargo sycl build`"
    );
    assert_eq!(fixture.loads(), ["sm_80"]);
}

#[test]
fn a_program_without_images_says_how_to_get_them() {
    let (code, message) = Fixture::gpu().error(&descriptor::<First>("saxpy"));
    assert_eq!(code, ErrorCode::KernelNotSupported);
    assert_eq!(
        message,
        "kernel \"saxpy\" on device \"recording device 0\": the program has no device images; build it with `cargo sycl build`"
    );
}

#[test]
fn the_exact_target_is_preferred_then_the_highest_lower_one() {
    let chosen = |targets: &[ImageTarget], images: &[u32]| {
        let fixture = Fixture::new(RecordingConfig::new(1).with_images(targets));
        let images: Vec<DeviceImage> = images.iter().map(|sm| first_image(*sm)).collect();
        let _bundle = fixture.register(&images);
        fixture.kernel(&descriptor::<First>("a")).map(|_| fixture.loads().join(" ")).map_err(|error| error.to_string())
    };
    assert_eq!(chosen(&[ptx(80)], &[70, 80, 75]).unwrap(), "sm_80");
    assert_eq!(chosen(&[ptx(89)], &[70, 90, 80]).unwrap(), "sm_80");
    assert_eq!(
        chosen(&[ptx(60)], &[70, 80]).unwrap_err(),
        "kernel \"a\" on device \"recording device 0\": its images are for sm_70, sm_80, and the device takes sm_60; build it \
         with `cargo sycl build --targets sm_60`"
    );
}

#[test]
fn nothing_is_said_to_be_built_for_a_device_that_no_compiler_has_a_target_for() {
    let takes = ImageTarget::Host { triple: "simulated".to_owned(), level: None };
    let fixture = Fixture::new(RecordingConfig::new(1).with_images(&[takes]));
    let _bundle = fixture.register(&[first_image(80)]);
    assert_eq!(
        fixture.error(&descriptor::<First>("a")).1,
        "kernel \"a\" on device \"recording device 0\": its images are for sm_80, and the device takes host:simulated; submit it to \
         another device, such as the host's"
    );
}

#[test]
fn the_first_of_the_devices_targets_is_preferred() {
    let spirv = |minor| ImageTarget::SpirV { major: 1, minor };
    let gfx = |arch: &str| ImageTarget::AmdGcn { arch: arch.to_owned() };
    let targets = [gfx("gfx90a"), spirv(4), ptx(80)];
    assert_eq!(fit(&gfx("gfx90a"), &targets), Some((0, 0)));
    assert_eq!(fit(&gfx("gfx942"), &targets), None);
    assert_eq!(fit(&spirv(2), &targets), Some((1, 2)));
    assert_eq!(fit(&spirv(5), &targets), None);
    assert_eq!(fit(&ImageTarget::SpirV { major: 2, minor: 0 }, &targets), None);
    assert_eq!(fit(&ptx(70), &targets), Some((2, 10)));
    assert_eq!(fit(&ptx(70), &[ptx(60), ptx(80)]), Some((1, 10)));
    assert_eq!(fit(&ImageTarget::Host { triple: "x".to_owned(), level: None }, &targets), None);
}

#[test]
fn a_host_takes_levels_not_above_its_own_and_the_highest_first() {
    let host = |triple: &str, level| ImageTarget::Host { triple: triple.to_owned(), level };
    let of = |level| host("x86_64-unknown-linux-gnu", level);
    let (none, v3, v4) = (of(None), of(Some(HostLevel::V3)), of(Some(HostLevel::V4)));
    let ranks = |takes: &ImageTarget| [&none, &v3, &v4].map(|image| fit(image, std::slice::from_ref(takes)));
    assert_eq!(ranks(&none), [Some((0, 0)), None, None]);
    assert_eq!(ranks(&v3), [Some((0, 3)), Some((0, 0)), None]);
    assert_eq!(ranks(&v4), [Some((0, 4)), Some((0, 1)), Some((0, 0))]);
    assert_eq!(fit(&host("x86_64-unknown-linux-musl", None), std::slice::from_ref(&v4)), None);
    assert_eq!(fit(&v3, &[ptx(80), host("simulated", None)]), None);
}

#[test]
fn an_aspect_that_the_device_lacks_is_named() {
    let needs = |sm, names: &[&str]| {
        let mut image = first_image(sm);
        image.kernels[0].requirements = names.iter().map(|&name| name.to_owned()).collect();
        image
    };
    let config = RecordingConfig::new(1).with_images(&[ptx(80)]).without(Aspect::Fp64).without(Aspect::Atomic64);
    let fixture = Fixture::new(config.clone());
    let _bundle = fixture.register(&[needs(80, &["fp16", "fp64"])]);
    let (code, message) = fixture.error(&descriptor::<First>("a"));
    assert_eq!(code, ErrorCode::KernelNotSupported);
    let prefix = "kernel \"a\" on device \"recording device 0\": it needs the ";
    assert_eq!(
        message,
        format!(
            "{prefix}aspect fp64, which the device lacks; submit it to a device that has it (`Device::has`), or write the kernel \
             without it"
        )
    );
    assert!(fixture.loads().is_empty(), "nothing is loaded that cannot run");

    let fixture = Fixture::new(config.clone());
    let _bundle = fixture.register(&[needs(80, &["fp64", "atomic64"])]);
    let (_, message) = fixture.error(&descriptor::<First>("a"));
    assert_eq!(
        message,
        format!(
            "{prefix}aspects fp64, atomic64, which the device lacks; submit it to a device that has them (`Device::has`), or write \
             the kernel without them"
        )
    );

    // Of a newer compiler: no device could be asked for it.
    let fixture = Fixture::new(config.clone());
    let _bundle = fixture.register(&[needs(80, &["fp64", "telepathy"])]);
    let (_, message) = fixture.error(&descriptor::<First>("a"));
    assert_eq!(
        message,
        format!(
            "{prefix}aspects fp64, telepathy, which the device lacks; this version of `oxisycl` does not know telepathy: build with \
             its own version of `cargo sycl`"
        )
    );

    // Another image of the kernel may need less.
    let fixture = Fixture::new(config);
    let _bundle = fixture.register(&[needs(80, &["fp64"]), needs(70, &["fp16"])]);
    fixture.kernel(&descriptor::<First>("a")).unwrap();
    assert_eq!(fixture.loads(), ["sm_70"]);
}

#[test]
fn the_reason_why_a_target_cannot_run_a_kernel_is_told() {
    let unsupported = |sm| {
        let KernelEntry { type_id, form, type_name, .. } = entry_of::<First>("");
        let reason = "it calls `std::fs::read` at src/main.rs:7:9".to_owned();
        let unsupported = vec![UnsupportedKernel { type_id, form, type_name, reason }];
        DeviceImage { unsupported, ..image(ptx(sm), vec![entry_of::<Second>("second")]) }
    };
    let fixture = Fixture::gpu();
    let bundle = fixture.register(&[unsupported(80)]);
    let (code, message) = fixture.error(&descriptor::<First>("a"));
    assert_eq!(code, ErrorCode::KernelNotSupported);
    assert_eq!(
        message,
        "kernel \"a\" on device \"recording device 0\": the target sm_80 cannot run it: it calls `std::fs::read` at \
         src/main.rs:7:9; submit it to another device, such as the host's, or write the kernel without what is named here"
    );
    fixture.kernel(&descriptor::<Second>("b")).unwrap();
    fixture.unregister(bundle);
    // What one target cannot run another one may.
    let _bundle = fixture.register(&[unsupported(80), first_image(70)]);
    fixture.kernel(&descriptor::<First>("a")).unwrap();
    assert_eq!(fixture.loads(), ["sm_80", "sm_70"]);
}

#[test]
fn image_and_program_must_agree_on_the_kernel() {
    let fixture = Fixture::gpu();
    let _bundle = fixture.register(&[first_image(80)]);
    let with = |change: fn(&mut KernelDescriptor)| {
        let mut descriptor = descriptor::<First>("a");
        change(&mut descriptor);
        fixture.error(&descriptor)
    };
    let (code, message) = with(|descriptor| descriptor.parameters.size = 24);
    assert_eq!(code, ErrorCode::KernelArgument);
    let prefix =
        "kernel \"a\" on device \"recording device 0\": its captures are 16 bytes with alignment 8 in the image, but";
    let suffix = "in the program (image target: sm_80); build both anew with `cargo sycl build`";
    assert_eq!(message, format!("{prefix} 24 bytes with alignment 8 {suffix}"));
    let (code, message) = with(|descriptor| descriptor.parameters.align = 16);
    assert_eq!(code, ErrorCode::KernelArgument);
    assert_eq!(message, format!("{prefix} 16 bytes with alignment 16 {suffix}"));
    let (code, message) = with(|descriptor| descriptor.type_name = "app::Other");
    assert_eq!(code, ErrorCode::KernelNotSupported);
    assert_eq!(
        message,
        format!(
            "kernel \"a\" on device \"recording device 0\": it is of type \"{}\" in the image, but of type \"app::Other\" in the \
             program (image target: sm_80); one of the two was not built anew, which `cargo sycl build` does",
            std::any::type_name::<First>()
        )
    );
    assert!(fixture.loads().is_empty());
}

#[test]
fn a_kernel_that_is_launched_elsewhere_in_the_image_is_another_one() {
    let fixture = Fixture::gpu();
    let descriptor = descriptor::<First>("a");
    let here = descriptor.location;
    let place = SourceLocation { file: here.file().to_owned(), line: here.line(), column: here.column() };
    let with = |place: &SourceLocation| {
        let mut image = first_image(80);
        image.kernels[0].launch = Some(place.clone());
        image
    };
    let other = fixture.register(&[with(&SourceLocation { line: place.line + 1, ..place.clone() })]);
    let (code, message) = fixture.error(&descriptor);
    assert_eq!(code, ErrorCode::KernelNotSupported);
    let line = place.line + 1;
    let expected = format!(
        "kernel \"a\" on device \"recording device 0\": it is launched at {}:{line}:{} in the image, but at {here} in the program \
         (image target: sm_80); one of the two was not built anew, which `cargo sycl build` does, or a macro has made different code \
         for them, which must be the same",
        place.file, place.column
    );
    assert_eq!(message, expected);
    fixture.unregister(other);
    let _same = fixture.register(&[with(&place)]);
    fixture.kernel(&descriptor).unwrap();
}

#[test]
fn arguments_of_image_and_program_are_compared() {
    const NUMBER: ArgumentType = ArgumentType::leaf(std::any::type_name::<f32>, 4);
    static PAIR: ArgumentType = ArgumentType {
        type_name: std::any::type_name::<(f32, f32)>,
        size: 8,
        length: ArgumentType::NO_ARRAY,
        parts: &[
            ArgumentPart { name: "0", offset: 0, part: &NUMBER },
            ArgumentPart { name: "1", offset: 4, part: &NUMBER },
        ],
    };
    let fixture = Fixture::gpu();
    let descriptor = KernelDescriptor { arguments: Some(&PAIR), ..descriptor::<First>("a") };
    let argument =
        |path: &str, offset| Argument { path: path.to_owned(), type_name: "f32".to_owned(), offset, size: 4 };
    let with = |arguments: Vec<Argument>| {
        let mut image = first_image(80);
        image.kernels[0].arguments = arguments;
        image
    };
    let begin = "kernel \"a\" on device \"recording device 0\": its argument number";
    let end = "(image target: sm_80); build both anew with `cargo sycl build`";
    for (arguments, what) in [
        // Two fields of the same size have changed places.
        (
            vec![argument("0", 4), argument("1", 0)],
            "0 is `0: f32, 4 bytes at 4` in the image, but `0: f32, 4 bytes at 0` in the program",
        ),
        (vec![argument("0", 0)], "1 is none in the image, but `1: f32, 4 bytes at 4` in the program"),
        (
            vec![argument("0", 0), argument("1", 4), argument("2", 8)],
            "2 is `2: f32, 4 bytes at 8` in the image, but none in the program",
        ),
        (
            vec![argument("0", 0), argument("b", 4)],
            "1 is `b: f32, 4 bytes at 4` in the image, but `1: f32, 4 bytes at 4` in the program",
        ),
        (vec![], "0 is none in the image, but `0: f32, 4 bytes at 0` in the program"),
    ] {
        let doctored = fixture.register(&[with(arguments)]);
        assert_eq!(fixture.error(&descriptor), (ErrorCode::KernelArgument, format!("{begin} {what} {end}")));
        fixture.unregister(doctored);
    }
    let _same = fixture.register(&[with(vec![argument("0", 0), argument("1", 4)])]);
    fixture.kernel(&descriptor).unwrap();
}

#[test]
fn what_image_and_program_state_is_compared_and_held_against_the_device() {
    let stated = StatedNeeds { aspects: Aspects::of(&[Aspect::Fp16]), group: [1, 1, 64], sub_group: 1 };
    let stating = KernelDescriptor { stated, ..descriptor::<First>("a") };
    let image = |change: &dyn Fn(&mut KernelEntry)| {
        let mut image = first_image(80);
        let kernel = &mut image.kernels[0];
        kernel.requirements = vec!["fp16".to_owned()];
        kernel.aspects = vec!["fp16".to_owned()];
        (kernel.groups.local, kernel.groups.sub_group) = (stated.group, stated.sub_group);
        change(kernel);
        image
    };
    let fixture = Fixture::gpu();
    let changes: [&dyn Fn(&mut KernelEntry); 3] =
        [&|kernel| kernel.aspects.clear(), &|kernel| kernel.groups.local = [1, 1, 32], &|kernel| {
            kernel.groups.sub_group = 0
        }];
    for change in changes {
        let doctored = fixture.register(&[image(change)]);
        let (code, message) = fixture.error(&stating);
        assert_eq!(code, ErrorCode::KernelNotSupported);
        let start = "kernel \"a\" on device \"recording device 0\": it states aspects [";
        assert!(message.starts_with(start) && message.contains("{Fp16}, [1, 1, 64] and 1 in the program"), "{message}");
        fixture.unregister(doctored);
    }
    let same = fixture.register(&[image(&|_| {})]);
    let (_, message) = fixture.error(&descriptor::<First>("a"));
    assert!(message.contains("but {}, [0, 0, 0] and 0 in the program"), "{message}");
    fixture.kernel(&stating).unwrap();
    fixture.unregister(same);

    // The device has sub-groups of one work-item.
    let eight = StatedNeeds { sub_group: 8, ..stated };
    let _eight = fixture.register(&[image(&|kernel| kernel.groups.sub_group = 8)]);
    let (code, message) = fixture.error(&KernelDescriptor { stated: eight, ..stating });
    assert_eq!(code, ErrorCode::KernelNotSupported);
    let end = "it states sub-groups of 8 work-items, and the device has those of [1]";
    assert_eq!(message, format!("kernel \"a\" on device \"recording device 0\": {end}"));
}

#[test]
fn a_corrupt_bundle_is_an_error_of_the_kernels_that_are_missed() {
    let fixture = Fixture::gpu();
    let mut bytes = encode_bundle(&[first_image(80)]).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    let corrupt = fixture.register_bytes(bytes);
    let good = fixture.register(&[image(ptx(80), vec![entry_of::<Second>("second")])]);
    let error = fixture.kernel(&descriptor::<First>("a")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::KernelNotSupported);
    let text = error.to_string();
    let start = "kernel \"a\" on device \"recording device 0\": it has no device image among those that can be read; the device \
                 images of \"";
    let remedy = "; build it anew with `cargo sycl build`, and with the version of `cargo sycl` that the version of `oxisycl` has";
    assert!(
        text.starts_with(start) && text.contains("cannot be read: device image: ") && text.ends_with(remedy),
        "{text}"
    );
    // Without a kernel that was asked for, it is not known which ones they are.
    let text = fixture.programs.kernels().unwrap_err().to_string();
    assert!(text.starts_with("the device images of \"") && text.ends_with(remedy), "{text}");
    let text = fixture.programs.load_all(&fixture.devices[0]).unwrap_err().to_string();
    assert!(
        text.starts_with("device \"recording device 0\": the device images of \"") && text.ends_with(remedy),
        "{text}"
    );
    fixture.kernel(&descriptor::<Second>("b")).unwrap();
    fixture.unregister(corrupt);
    assert!(fixture.error(&descriptor::<First>("a")).1.contains("no device image of the program has it"));
    assert_eq!(fixture.programs.kernels().unwrap().len(), 1);
    fixture.unregister(good);
    assert!(fixture.error(&descriptor::<Second>("b")).1.contains("the program has no device images"));
}

#[test]
fn bytes_that_are_no_bundle_are_told_as_such() {
    for bytes in [Vec::new(), b"OXISYCLB".to_vec(), vec![0xff; 100]] {
        let fixture = Fixture::gpu();
        let _bundle = fixture.register_bytes(bytes);
        let text = format!("{:?}", fixture.kernel(&descriptor::<First>("a")).unwrap_err());
        assert!(text.contains("device image: "), "{text}");
    }
}

/// An index of bundles of the given link units.
fn index_of(bundles: Vec<(Option<&str>, DeviceImage)>) -> index::Index {
    let unit = |name: &str| match name {
        "program" => link_unit::of(entry as *const ()),
        _ => link_unit::of(libc::getppid as *const ()),
    };
    let units = bundles.into_iter().enumerate().map(|(number, (name, image))| index::Unit {
        number: number as u64,
        unit: name.and_then(unit),
        name: name.unwrap_or("unknown").to_owned(),
        native: None,
        images: Ok(vec![Arc::new(Image { image, of: None })]),
    });
    index::Index::new(units.collect())
}

/// The code that a kernel of the program gets.
fn code_of(index: &index::Index, unit: Option<&str>) -> Result<String> {
    let fixture = Fixture::gpu();
    let descriptor = descriptor::<First>("a");
    let query = Query {
        name: "a",
        key: KernelKey::new(descriptor.id.type_id, descriptor.id.form),
        host: Some(HostSide {
            layout: descriptor.parameters,
            type_name: descriptor.type_name,
            arguments: None,
            stated: descriptor.stated,
            location: None,
        }),
        unit: unit.and_then(|_| link_unit::of(entry as *const ())),
    };
    let choice = choose::choose(index, fixture.devices[0].as_ref(), &query)?;
    Ok(String::from_utf8(choice.image.image.code.clone()).unwrap())
}

fn with_code(sm: u32, code: &str) -> DeviceImage {
    DeviceImage { code: code.as_bytes().to_vec(), ..first_image(sm) }
}

#[test]
fn the_link_unit_that_holds_the_kernel_is_preferred() {
    let index = index_of(vec![(Some("other"), with_code(80, "other")), (Some("program"), with_code(80, "own"))]);
    assert_eq!(code_of(&index, Some("program")).unwrap(), "own");
    // Also if the other one has the better image, which may be of another kernel of that name.
    let index = index_of(vec![(Some("other"), with_code(80, "other")), (Some("program"), with_code(70, "own"))]);
    assert_eq!(code_of(&index, Some("program")).unwrap(), "own");
}

#[test]
fn different_images_of_other_link_units_are_ambiguous() {
    let index = index_of(vec![(Some("other"), with_code(80, "one")), (None, with_code(80, "two"))]);
    let error = code_of(&index, Some("program")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::KernelNotSupported);
    assert_eq!(
        error.to_string(),
        "kernel \"a\" on device \"recording device 0\": \"other\" and \"unknown\" have different images of it, and the \
         program's half of the kernel is in neither; build the crate that launches it with `cargo sycl build`, or those two with \
         the same options"
    );
    // The better one, if one is better.
    let index = index_of(vec![(Some("other"), with_code(70, "one")), (None, with_code(80, "two"))]);
    assert_eq!(code_of(&index, Some("program")).unwrap(), "two");
    assert_eq!(code_of(&index, None).unwrap(), "two");
}

#[test]
fn an_image_of_another_link_unit_that_disagrees_is_passed_over() {
    let mut wrong = with_code(80, "wrong");
    wrong.kernels[0].parameters.size = 32;
    let index = index_of(vec![(Some("other"), wrong.clone()), (None, with_code(70, "right"))]);
    assert_eq!(code_of(&index, Some("program")).unwrap(), "right");
    // But an image of the kernel's own link unit has to be right.
    let index = index_of(vec![(Some("program"), wrong), (None, with_code(70, "right"))]);
    assert_eq!(code_of(&index, Some("program")).unwrap_err().code(), ErrorCode::KernelArgument);
}

#[test]
fn what_a_device_can_run_is_known_without_loading() {
    let fixture = Fixture::new(RecordingConfig::new(1).with_images(&[ptx(80)]).with_host());
    let (host, gpu) = (fixture.devices[0].as_ref(), fixture.devices[1].as_ref());
    let key = KernelKey::new(std::any::TypeId::of::<First>(), Form::Range(1));
    assert!(fixture.programs.is_usable(host) && !fixture.programs.is_usable(gpu));
    assert!(
        fixture.programs.check(host, key, None, "a").is_ok()
            && fixture.programs.check(gpu, key, Some(entry), "a").is_err()
    );
    let bundle = fixture.register(&[first_image(90)]);
    assert!(!fixture.programs.is_usable(gpu), "an image for another device is of no use");
    fixture.unregister(bundle);
    let without_kernels = fixture.register(&[image(ptx(80), Vec::new())]);
    assert!(!fixture.programs.is_usable(gpu), "an image that only tells of kernels that cannot run is of no use");
    fixture.unregister(without_kernels);
    let _bundle = fixture.register(&[first_image(75), image(ptx(90), vec![entry_of::<Second>("second")])]);
    assert!(fixture.programs.is_usable(gpu) && fixture.programs.check(gpu, key, Some(entry), "a").is_ok());
    let known = fixture.programs.kernels().unwrap();
    assert_eq!(known.iter().map(|kernel| kernel.key).collect::<Vec<_>>()[0], key);
    assert_eq!((known.len(), known[1].type_name.as_str()), (2, std::any::type_name::<Second>()));
    assert!(known.iter().all(|kernel| kernel.location.is_none()));
    assert!(fixture.loads().is_empty());
}
