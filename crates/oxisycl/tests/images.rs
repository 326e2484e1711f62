//! Device images that a test makes itself, for simulated devices that ask for them.

#[path = "support/own_images.rs"]
mod own_images;
mod support;

use std::any::type_name;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use oxisycl::prelude::*;
use oxisycl::selector::{accelerator_selector, default_selector};
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl::{ErrorCode, KernelId, SingleKernel};
use oxisycl_image::{Argument, DeviceImage, Form, KernelEntry, ParameterLayout, UnsupportedKernel, encode_bundle};
use oxisycl_runtime::program::{__oxisycl_register_images, __oxisycl_unregister_images};

#[cfg(target_os = "linux")]
use own_images::Library;
use own_images::{Registered, device, entry, image, image_of, kernel};
use support::alone;

/// A bundle without images, which registers itself before `main` as a link unit does.
static EMPTY: [u8; 24] = {
    let mut bundle = *b"OXISYCLB\0\0\0\0\0\0\0\0\x18\0\0\0\0\0\0\0";
    bundle[8] = oxisycl_image::VERSION as u8;
    bundle
};

#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn register() {
        // SAFETY: constants are valid for ever, and hold no code.
        unsafe { __oxisycl_register_images(EMPTY.as_ptr(), EMPTY.len()) };
    }
    register
};

/// Launches the kernel and tells the error.
#[track_caller]
fn refused<K>(device: &Device, kernel: K) -> (ErrorCode, String)
where
    K: for<'wi> Fn(Item<'wi, 1>) + Copy + Send + Sync + 'static,
{
    let queue = Queue::new(device).unwrap();
    let error = queue.parallel_for(4, kernel).expect_err("a refused kernel");
    (error.code(), error.to_string())
}

#[test]
fn a_kernel_runs_if_there_is_an_image_of_it() {
    let _alone = alone();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let kernel = kernel(|_| {
        COUNT.fetch_add(1, Ordering::Relaxed);
    });
    let device = device();
    let (code, message) = refused(&device, kernel);
    assert_eq!(code, ErrorCode::KernelNotSupported);
    // The empty bundle was there before `main`.
    assert!(message.contains("no device image of the program has it"), "{message}");
    assert!(message.contains(device.name()) && message.contains("cargo sycl build"), "{message}");
    let images = Registered::new(&[image_of(&kernel)]);
    let queue = Queue::new(&device).unwrap();
    for _ in 0..3 {
        queue.parallel_for(4, kernel).unwrap();
    }
    queue.wait().unwrap();
    assert_eq!(COUNT.load(Ordering::Relaxed), 12);
    drop(images);
    assert_eq!(refused(&device, kernel).0, ErrorCode::KernelNotSupported);
}

#[test]
fn an_empty_range_needs_an_image_too() {
    let _alone = alone();
    let queue = Queue::new(&device()).unwrap();
    let error = queue.parallel_for(0, |_| {}).unwrap_err();
    assert_eq!(error.code(), ErrorCode::KernelNotSupported);
}

#[test]
fn captures_that_differ_from_the_images_are_refused_before_the_launch() {
    let _alone = alone();
    static RAN: AtomicU32 = AtomicU32::new(0);
    let summand = 7_u32;
    let kernel = kernel(move |_| _ = RAN.fetch_add(summand, Ordering::Relaxed));
    let mut wrong = image_of(&kernel);
    wrong.kernels[0].parameters = ParameterLayout { size: 64, align: 16 };
    let _images = Registered::new(&[wrong]);
    let (code, message) = refused(&device(), kernel);
    assert_eq!(code, ErrorCode::KernelArgument);
    let expected =
        "its captures are 64 bytes with alignment 16 in the image, but 4 bytes with alignment 4 in the program";
    assert!(message.contains(expected), "{message}");
    assert_eq!(RAN.load(Ordering::Relaxed), 0);
}

#[test]
fn a_kernel_in_f64_is_refused_only_by_devices_without_it_and_runs_on_the_others() {
    let _alone = alone();
    static SUM: AtomicU32 = AtomicU32::new(0);
    let half = 0.5_f64;
    let kernel = kernel(move |item| _ = SUM.fetch_add((item.linear_id() as f64 / half) as u32, Ordering::Relaxed));
    let mut needs = image_of(&kernel);
    needs.kernels[0].requirements = vec!["fp64".to_owned()];
    let _images = Registered::new(&[needs]);
    let device = |has| {
        let config = SimulatedConfig::new(1).native_kernels(false).fp64(has);
        Simulator::new(config).unwrap().devices()[0].clone()
    };
    let (with, without) = (device(true), device(false));
    assert!(with.has(Aspect::Fp64) && !without.has(Aspect::Fp64) && without.has(Aspect::Atomic64));
    let (code, message) = refused(&without, kernel);
    assert_eq!(code, ErrorCode::KernelNotSupported);
    let expected = "it needs the aspect fp64, which the device lacks; submit it to a device that has it (`Device::has`), or write \
                    the kernel without it";
    assert!(message.ends_with(expected) && message.contains(without.name()), "{message}");
    assert_eq!(SUM.load(Ordering::Relaxed), 0);
    for device in [with, Device::select(oxisycl::selector::cpu_selector).unwrap()] {
        SUM.store(0, Ordering::Relaxed);
        Queue::new(&device).unwrap().parallel_for(4, kernel).unwrap().wait().unwrap();
        assert_eq!(SUM.load(Ordering::Relaxed), 12, "{}", device.name());
    }
}

#[test]
fn a_missing_aspect_is_an_error_of_the_launch_only() {
    let _alone = alone();
    let kernel = kernel(|_| {});
    let mut needs = image_of(&kernel);
    needs.kernels[0].requirements = vec!["fp64".to_owned(), "custom".to_owned()];
    let _images = Registered::new(&[needs]);
    let device = device();
    let (code, message) = refused(&device, kernel);
    assert_eq!(code, ErrorCode::KernelNotSupported);
    let expected =
        "it needs the aspect custom, which the device lacks; submit it to a device that has it (`Device::has`)";
    assert!(message.contains(expected) && message.contains(device.name()), "{message}");
    // Devices that run the program's own code run it.
    let host = Device::select(oxisycl::selector::cpu_selector).unwrap();
    Queue::new(&host).unwrap().parallel_for(4, kernel).unwrap().wait().unwrap();
    let id = KernelId::of_range(&kernel);
    assert!(host.is_compatible([&id]) && !device.is_compatible([&id]));
    let error = device.check_compatible([&id]).unwrap_err();
    assert!(error.to_string().contains("aspect custom"), "{error}");
}

/// An argument of arguments, of which one is in an array in a tuple.
#[derive(KernelArg)]
struct Nested {
    pairs: (u8, [Pair; 2]),
}

#[derive(KernelArg)]
struct Pair {
    first: u32,
    second: Vec<u32>,
}

#[kernel]
fn sum(item: Item<1>, nested: NestedOnDevice, out: Accessor<u32, 1, Write>) {
    let (_, pairs) = nested.pairs;
    out.set(item, pairs.iter().map(|pair| pair.first + pair.second.iter().sum::<u32>()).sum());
}

/// The image of the call, with the list of its arguments as the program has it.
fn image_of_call<A: oxisycl::argument::KernelArg, K: 'static>(_call: &oxisycl::argument::Call<A, K>) -> DeviceImage {
    use oxisycl::argument::{Bound, Sent};
    let arguments = Argument::list(Bound::<K, Sent<A>>::TYPE);
    image(vec![KernelEntry {
        type_name: type_name::<K>().to_owned(),
        arguments,
        ..entry::<Bound<K, Sent<A>>>(Form::Range(1))
    }])
}

#[test]
fn an_image_with_another_nested_argument_is_refused_with_its_path() {
    let _alone = alone();
    let (device, out) = (device(), Buffer::from_vec(vec![0u32]).unwrap());
    let nested = || Nested { pairs: (1, [2, 3].map(|first| Pair { first, second: vec![first; 2] })) };
    let launch = || Queue::new(&device).unwrap().launch_call(1, sum(nested(), out.write())).map(drop);
    let made = image_of_call(&sum(nested(), out.write()));
    let path = "0.pairs.1[1].second";
    let changes: [&dyn Fn(&mut Argument); 3] =
        [&|argument| argument.path = "0.pairs.1[1].third".to_owned(), &|argument| argument.offset -= 4, &|argument| {
            argument.size += 8
        }];
    for change in changes {
        let mut doctored = made.clone();
        let arguments = &mut doctored.kernels[0].arguments;
        change(arguments.iter_mut().find(|argument| argument.path == path).unwrap());
        let _images = Registered::new(&[doctored]);
        let error = launch().unwrap_err();
        assert_eq!(error.code(), ErrorCode::KernelArgument);
        let text = error.to_string();
        let start = format!("kernel \"sum\" on device \"{}\": its argument number ", device.name());
        assert!(text.starts_with(&start) && text.contains(&format!("but `{path}: ")), "{text}");
    }
    // As it was made, it is taken.
    let _images = Registered::new(&[made]);
    launch().unwrap();
    assert_eq!(out.to_vec().unwrap(), [2 + 4 + 3 + 6]);
}

/// Two arguments of one type, which only their names tell apart.
#[derive(KernelArg)]
struct Ends {
    low: u32,
    high: u32,
}

#[kernel]
fn width(item: Item<1>, ends: EndsOnDevice, out: Accessor<u32, 1, Write>) {
    out.set(item, ends.high - ends.low);
}

#[test]
fn an_image_with_two_arguments_of_one_type_swapped_is_refused_with_their_path() {
    let _alone = alone();
    let (device, out) = (device(), Buffer::from_vec(vec![0u32]).unwrap());
    let call = || width(Ends { low: 2, high: 9 }, out.write());
    let launch = || Queue::new(&device).unwrap().launch_call(1, call()).map(drop);
    let made = image_of_call(&call());
    let at = |path: &str| made.kernels[0].arguments.iter().position(|argument| argument.path == path).unwrap();
    let (low, high) = (at("0.low"), at("0.high"));
    let of = |number: usize| &made.kernels[0].arguments[number];
    assert_eq!((&of(low).type_name, of(low).size), (&of(high).type_name, of(high).size));
    let doctored = |change: fn(&mut Argument, &mut Argument)| {
        let mut image = made.clone();
        let [low, high] = image.kernels[0].arguments.get_disjoint_mut([low, high]).unwrap();
        change(low, high);
        image
    };
    let images = [
        // Other names for the same places, as by a program with the fields in another order.
        (doctored(|low, high| std::mem::swap(&mut low.path, &mut high.path)), "0.high"),
        // The places are swapped, the list has its order.
        (doctored(|low, high| std::mem::swap(&mut low.offset, &mut high.offset)), "0.low"),
        // Each has its own name and place, and they are declared in another order.
        (doctored(std::mem::swap), "0.high"),
    ];
    let since = oxisycl::observe::counters();
    for (doctored, in_image) in images {
        let place = doctored.kernels[0].arguments[low].offset;
        let _images = Registered::new(&[doctored]);
        let error = launch().unwrap_err();
        assert_eq!(error.code(), ErrorCode::KernelArgument);
        let expected = format!(
            "kernel \"width\" on device \"{}\": its argument number {low} is `{in_image}: u32, 4 bytes at {place}` in the image, \
             but `0.low: u32, 4 bytes at {}` in the program",
            device.name(),
            of(low).offset
        );
        assert!(error.to_string().starts_with(&expected), "{error}, not {expected}");
    }
    assert_eq!((oxisycl::observe::counters() - since).nodes, 0, "nothing is enqueued");
    let _images = Registered::new(&[made]);
    launch().unwrap();
    assert_eq!(out.to_vec().unwrap(), [7]);
}

#[test]
fn what_the_target_cannot_run_is_refused_with_the_builds_reason() {
    let _alone = alone();
    let kernel = kernel(|_| {});
    let KernelEntry { type_id, form, type_name, .. } = image_of(&kernel).kernels.remove(0);
    let reason = "it allocates memory, called from main.rs:7:9".to_owned();
    let unsupported = vec![UnsupportedKernel { type_id, form, type_name, reason }];
    let _images = Registered::new(&[DeviceImage { unsupported, ..image(Vec::new()) }]);
    let (code, message) = refused(&device(), kernel);
    assert_eq!(code, ErrorCode::KernelNotSupported);
    let expected = "the target host:simulated cannot run it: it allocates memory, called from main.rs:7:9; submit it to another \
                    device, such as the host's, or write the kernel without what is named here";
    assert!(message.ends_with(expected), "{message}");
}

#[test]
fn a_corrupt_bundle_is_told_by_the_first_launch() {
    let _alone = alone();
    let mut bytes = encode_bundle(&[image(Vec::new())]).unwrap();
    let last = bytes.len() - 30;
    bytes[last] ^= 1;
    // SAFETY: as in `Registered::new`.
    unsafe { __oxisycl_register_images(bytes.as_ptr(), bytes.len()) };
    let _images = Registered::taken(bytes);
    let queue = Queue::new(&device()).unwrap();
    let error = queue.parallel_for(4, |_| {}).unwrap_err();
    assert_eq!(error.code(), ErrorCode::KernelNotSupported);
    assert!(format!("{error:?}").contains("device image: "), "{error:?}");
    assert!(KernelId::all().is_err());
}

#[test]
fn the_default_selector_prefers_devices_that_the_program_has_code_for() {
    let _alone = alone();
    let bare = device();
    let native = Simulator::new(SimulatedConfig::new(1)).unwrap().devices()[0].clone();
    assert!(default_selector(&bare) < default_selector(&native) && accelerator_selector(&bare) >= 0);
    let _images = Registered::new(&[image_of(&kernel(|_| {}))]);
    assert_eq!(default_selector(&bare), default_selector(&native));
}

#[derive(Clone, Copy)]
struct Named(u32);

static NAMED: AtomicU32 = AtomicU32::new(0);

impl Kernel<Item<'_, 2>> for Named {
    fn run(&self, _: Item<'_, 2>) {
        NAMED.fetch_add(self.0, Ordering::Relaxed);
    }
}

impl SingleKernel for Named {
    fn run(&self, _: Single<'_>) {
        NAMED.fetch_add(self.0, Ordering::Relaxed);
    }
}

#[test]
fn kernels_have_an_identity_of_their_own() {
    let _alone = alone();
    let (one, other) = (kernel(|_| {}), kernel(|_| {}));
    assert_eq!(KernelId::of_range(&one), KernelId::of_range(&one.clone()));
    assert_ne!(KernelId::of_range(&one), KernelId::of_range(&other), "equal closures in different places");
    let named = [KernelId::of_kernel::<2, Named>(), KernelId::of_single_kernel::<Named>()];
    assert_ne!(named[0], named[1]);
    assert_eq!(named[0].name(), type_name::<Named>());
    let single = |_: Single<'_>| {};
    assert_ne!(KernelId::of_single(&single), named[1]);
    assert_eq!(KernelId::all().unwrap(), []);
    let _images = Registered::new(&[image_of(&one), image_of(&other)]);
    let all = KernelId::all().unwrap();
    assert_eq!(all, [KernelId::of_range(&one), KernelId::of_range(&other)]);
    assert!(device().is_compatible(&all) && !device().is_compatible(&named));
    assert_eq!(device().load_kernels().unwrap(), 2);
}

#[test]
fn no_kernels_are_compatible_with_every_device_and_each_of_several_counts() {
    let _alone = alone();
    let (one, other) = (kernel(|_| {}), kernel(|_| {}));
    let mut needs = image_of(&other);
    needs.kernels[0].requirements = vec!["atomic64".to_owned()];
    let _images = Registered::new(&[image_of(&one), needs]);
    let config = SimulatedConfig::new(1).native_kernels(false).atomic64(false);
    let device = Simulator::new(config).unwrap().devices()[0].clone();
    let (one, other) = (KernelId::of_range(&one), KernelId::of_range(&other));
    assert!(device.is_compatible([]) && device.is_compatible([&one]));
    for kernels in [vec![&other], vec![&one, &other], vec![&other, &one]] {
        let error = device.check_compatible(kernels).unwrap_err();
        assert!(error.to_string().contains("it needs the aspect atomic64"), "{error}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn kernels_of_two_libraries_run_and_not_any_more_after_one_is_unloaded() {
    let _alone = alone();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let one = kernel(|_| _ = COUNT.fetch_add(1, Ordering::Relaxed));
    let other = kernel(|_| _ = COUNT.fetch_add(100, Ordering::Relaxed));
    let device = device();
    let queue = Queue::new(&device).unwrap();
    let library = Library::load("one", &[image_of(&one)]);
    let _other = Library::load("other", &[image_of(&other)]);
    queue.parallel_for(4, one).unwrap();
    queue.parallel_for(4, other).unwrap();
    // Waits for the kernel.
    drop(library);
    assert_eq!(COUNT.load(Ordering::Relaxed) % 100, 4);
    assert_eq!(refused(&device, one).0, ErrorCode::KernelNotSupported);
    queue.parallel_for(4, other).unwrap().wait().unwrap();
    assert_eq!(COUNT.load(Ordering::Relaxed), 804);
    let _again = Library::load("one", &[image_of(&one)]);
    queue.parallel_for(4, one).unwrap().wait().unwrap();
    assert_eq!(COUNT.load(Ordering::Relaxed), 808);
}

#[test]
#[cfg(target_os = "linux")]
fn the_image_of_the_kernels_own_link_unit_wins_over_those_of_libraries() {
    let _alone = alone();
    let kernel = kernel(|_| {});
    let needs = |aspect: &str| {
        let mut image = image_of(&kernel);
        image.kernels[0].requirements = vec![aspect.to_owned()];
        image
    };
    let device = device();
    let _first = Library::load("first", &[needs("fp16")]);
    let _second = Library::load("second", &[needs("fp64")]);
    let (code, message) = refused(&device, kernel);
    assert_eq!(code, ErrorCode::KernelNotSupported);
    assert!(
        message.contains("first.so\" and \"") && message.contains("second.so\" have different images"),
        "{message}"
    );
    // In the program's own memory, as the kernel's native code is.
    static OWN: [AtomicU8; 4096] = [const { AtomicU8::new(0) }; 4096];
    let bundle = encode_bundle(&[needs("custom")]).unwrap();
    for (byte, value) in OWN.iter().zip(&bundle) {
        byte.store(*value, Ordering::Relaxed);
    }
    let own = OWN.as_ptr().cast::<u8>();
    assert!(bundle.len() <= OWN.len());
    // SAFETY: the bytes are not changed any more.
    unsafe { __oxisycl_register_images(own, bundle.len()) };
    let (_, message) = refused(&device, kernel);
    // SAFETY: registered above.
    unsafe { __oxisycl_unregister_images(own, bundle.len()) };
    assert!(message.contains("it needs the aspect custom"), "{message}");
}
