//! Kernel bundles of images that a test makes itself, for simulated devices that ask for them.

#[path = "support/own_images.rs"]
mod own_images;
mod support;

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use oxisycl::kernel_bundle::{Executable, Input, KernelBundle, Object};
use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl::specialization::SpecId;
use oxisycl::{ImageTarget, KernelId};
use oxisycl_image::encode_bundle;
use oxisycl_runtime::program::{__oxisycl_register_images, __oxisycl_unregister_images};

#[cfg(target_os = "linux")]
use own_images::Library;
use own_images::{Registered, device, image, image_of, kernel};
use support::alone;

fn context(device: &Device) -> Context {
    Context::new(std::slice::from_ref(device)).unwrap()
}

fn native_device() -> Device {
    Simulator::new(SimulatedConfig::new(1)).unwrap().devices()[0].clone()
}

#[track_caller]
fn code<T: std::fmt::Debug>(result: oxisycl::Result<T>) -> (ErrorCode, String) {
    let error = result.unwrap_err();
    (error.code(), error.to_string())
}

#[track_caller]
fn invalid<T: std::fmt::Debug>(result: oxisycl::Result<T>, part: &str) {
    let (code, message) = code(result);
    assert!(code == ErrorCode::Invalid && message.contains(part), "{code:?} {message}");
}

#[test]
fn a_bundle_needs_devices_of_its_context_with_what_its_state_needs() {
    let _alone = alone();
    let (device, native) = (device(), native_device());
    let of = context(&device);
    let builder = || KernelBundle::<Executable>::builder(&of);
    invalid(builder().with_devices(&[]).get(), "needs at least one device");
    invalid(builder().with_devices(std::slice::from_ref(&native)).get(), "is not in its context");
    assert!(!builder().with_devices(&[]).has_bundle());
    let twice = builder().with_devices(&[device.clone(), device.clone()]).get().unwrap();
    assert_eq!(twice.devices(), std::slice::from_ref(&device));
    // Nothing compiles the program's own code at run time.
    let of_native = context(&native);
    invalid(KernelBundle::<Input>::new(&of_native), "lacks the aspect online_compiler");
    invalid(KernelBundle::<Object>::new(&of_native), "lacks the aspect online_linker");
    assert!(!KernelBundle::<Input>::builder(&of_native).has_bundle());
    assert!(KernelBundle::<Executable>::new(&of_native).unwrap().is_empty());
    assert!(KernelBundle::<Input>::new(&of).unwrap().is_empty());
    assert!(KernelBundle::<Object>::new(&of).unwrap().is_empty());
}

#[test]
fn a_kernel_that_no_device_can_run_is_an_error_that_says_why() {
    let _alone = alone();
    let (one, other) = (kernel(|_| {}), kernel(|_| {}));
    let ids = [KernelId::of_range(&one), KernelId::of_range(&other)];
    let mut needs = image_of(&other);
    needs.kernels[0].requirements = vec!["custom".to_owned()];
    let _images = Registered::new(&[image_of(&one), needs]);
    let device = device();
    let of = context(&device);
    let builder = || KernelBundle::<Executable>::builder(&of);
    invalid(builder().with_kernels(&ids).get(), "it needs the aspect custom, which the device lacks");
    assert!(!builder().with_kernels(&ids).has_bundle() && !builder().with_kernels(&ids[1..]).has_bundle());
    assert!(builder().with_kernels(&ids[..1]).has_bundle() && builder().with_kernels(&[]).has_bundle());
    // Without a list, a kernel that no device can run is none of the bundle's.
    let all = builder().get().unwrap();
    assert_eq!(all.kernel_ids(), ids[..1]);
    // A device that runs the program's own code runs all of them.
    let native = native_device();
    let of = context(&native);
    let bundle = KernelBundle::<Executable>::builder(&of).with_kernels(&ids).get().unwrap();
    assert!(bundle.has_kernel(&ids[1]) && bundle.images()[0].target.is_none());
}

#[test]
fn a_bundle_tells_its_kernels_and_images() {
    let _alone = alone();
    let (one, other, third) = (kernel(|_| {}), kernel(|_| {}), kernel(|_| {}));
    let [one_id, other_id, third_id] =
        [KernelId::of_range(&one), KernelId::of_range(&other), KernelId::of_range(&third)];
    let mut large = image_of(&other);
    large.code = vec![0; 100];
    let _images = Registered::new(&[image_of(&one), large]);
    let (device, native) = (device(), native_device());
    let of = context(&device);
    let bundle = KernelBundle::<Executable>::new(&of).unwrap();
    assert_eq!(bundle.kernel_ids(), [one_id.clone(), other_id.clone()]);
    assert!(!bundle.is_empty() && bundle.context() == &of && bundle.devices() == [device.clone()]);
    assert!(bundle.has_kernel(&one_id) && !bundle.has_kernel(&third_id));
    assert!(bundle.has_kernel_on(&one_id, &device) && !bundle.has_kernel_on(&one_id, &native));
    assert_eq!(bundle.kernel(&other_id).unwrap().id(), &other_id);
    invalid(bundle.kernel(&third_id), "the kernel bundle has no kernel");
    let images = bundle.images();
    let target = ImageTarget::Host { triple: "simulated".to_owned(), level: None };
    assert_eq!(images.iter().map(|image| image.size).collect::<Vec<_>>(), [3, 100]);
    assert!(images.iter().all(|image| image.target.as_ref() == Some(&target)), "{images:?}");
    assert_eq!(images[1].kernel_ids, std::slice::from_ref(&other_id));
    let (copy, same) = (bundle.clone(), KernelBundle::<Executable>::new(&of).unwrap());
    assert!(copy == bundle && same != bundle);
    // A selector chooses among images; a kernel whose image is left out is no error.
    let mut asked = 0;
    let builder = KernelBundle::<Executable>::builder(&of).with_kernels(&[one_id.clone(), other_id.clone()]);
    let builder = builder.selecting(|image| {
        asked += 1;
        image.size > 50
    });
    let selected = builder.get().unwrap();
    assert_eq!(selected.kernel_ids(), std::slice::from_ref(&other_id));
    assert_eq!(asked, 2);
    let (kernel, info) = (bundle.kernel(&one_id).unwrap(), device.info());
    let told = kernel.info(&device).unwrap();
    assert_eq!(told.max_work_group_size, info.max_work_group_size);
    assert_eq!(told.max_num_sub_groups, info.max_num_sub_groups as usize);
    assert_eq!(code(kernel.info(&native)).0, ErrorCode::KernelNotSupported);
}

#[test]
fn bundles_are_compiled_linked_built_and_joined() {
    let _alone = alone();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let one = kernel(|_| _ = COUNT.fetch_add(1, Ordering::Relaxed));
    let other = kernel(|_| _ = COUNT.fetch_add(100, Ordering::Relaxed));
    let ids = [KernelId::of_range(&one), KernelId::of_range(&other)];
    let _images = Registered::new(&[image_of(&one), image_of(&other)]);
    let simulator = Simulator::new(SimulatedConfig::new(2).native_kernels(false)).unwrap();
    let devices = simulator.devices();
    let (of, foreign) = (Context::new(&devices).unwrap(), Context::new(&devices).unwrap());
    let input = |context: &Context, ids: &[KernelId], devices: &[Device]| {
        KernelBundle::<Input>::builder(context).with_devices(devices).with_kernels(ids).get().unwrap()
    };
    let first = input(&of, &ids[..1], &devices);
    let joined = KernelBundle::join([&first, &input(&of, &ids, &devices), &first]).unwrap();
    assert_eq!(joined.images().len(), 2, "each image once");
    assert_eq!(joined.kernel_ids(), ids);
    invalid(KernelBundle::<Input>::join([]), "no kernel bundles are given that could be joined");
    invalid(KernelBundle::join([&first, &input(&foreign, &ids, &devices)]), "of different contexts");
    invalid(KernelBundle::join([&first, &input(&of, &ids, &devices[..1])]), "they are of different devices");

    let object =
        |context: &Context, ids: &[KernelId], devices: &[Device]| input(context, ids, devices).compile().unwrap();
    let objects = [object(&of, &ids[..1], &devices), object(&of, &ids[1..], &devices[1..])];
    let linked = KernelBundle::link(&objects).unwrap();
    assert_eq!((linked.devices(), linked.kernel_ids()), (&devices[1..], ids.to_vec()));
    invalid(KernelBundle::link([]), "no kernel bundles are given that could be linked");
    invalid(KernelBundle::link([&objects[0], &object(&foreign, &ids, &devices)]), "of different contexts");
    let apart = [object(&of, &ids, &devices[..1]), object(&of, &ids, &devices[1..])];
    invalid(KernelBundle::link(&apart), "no device in common");

    for (bundle, device) in [(linked, &devices[1]), (joined.build().unwrap(), &devices[0])] {
        COUNT.store(0, Ordering::Relaxed);
        let queue = Queue::builder().context(&of).device(device).build().unwrap();
        let launch = |n: usize| {
            queue.submit(|cg| {
                cg.use_bundle(&bundle)?;
                cg.parallel_for(n, other)
            })
        };
        launch(3).unwrap();
        launch(0).unwrap();
        launch(2).unwrap();
        queue.wait().unwrap();
        assert_eq!(COUNT.load(Ordering::Relaxed), 500);
    }
}

#[test]
fn a_group_uses_the_kernels_of_its_bundle_alone() {
    let _alone = alone();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let one = kernel(|_| _ = COUNT.fetch_add(1, Ordering::Relaxed));
    let other = kernel(|_| _ = COUNT.fetch_add(100, Ordering::Relaxed));
    let _images = Registered::new(&[image_of(&one), image_of(&other)]);
    for device in [device(), native_device()] {
        COUNT.store(0, Ordering::Relaxed);
        let of = context(&device);
        let queue = Queue::builder().context(&of).device(&device).build().unwrap();
        let builder = KernelBundle::<Executable>::builder(&of).with_kernels(&[KernelId::of_range(&one)]);
        let bundle = builder.get().unwrap();
        let other_context = context(&device);
        let foreign = KernelBundle::<Executable>::new(&other_context).unwrap();
        let by_bundle = |bundle: &KernelBundle<Executable>, which: bool| {
            queue.submit(|cg| {
                cg.use_bundle(bundle)?;
                if which { cg.parallel_for(4, one) } else { cg.parallel_for(4, other) }
            })
        };
        by_bundle(&bundle, true).unwrap();
        let (refused, message) = code(by_bundle(&bundle, false));
        assert_eq!(refused, ErrorCode::KernelNotSupported);
        assert!(message.contains("the kernel bundle does not have it") && message.contains(device.name()), "{message}");
        invalid(by_bundle(&foreign, true), "of another context");
        // The group fails also if it ignores the error.
        let ignored = queue.submit(|cg| {
            let _ = cg.use_bundle(&foreign);
            Ok(())
        });
        invalid(ignored, "of another context");
        let late = queue.submit(|cg| {
            cg.parallel_for(4, one)?;
            cg.use_bundle(&bundle)
        });
        invalid(late, "has its command already");
        queue.parallel_for(4, other).unwrap();
        queue.wait().unwrap();
        assert_eq!(COUNT.load(Ordering::Relaxed), 404);
    }
}

#[test]
fn a_device_that_a_bundle_is_not_for_gets_no_kernel_of_it() {
    let _alone = alone();
    let one = kernel(|_| {});
    let _images = Registered::new(&[image_of(&one)]);
    let devices = Simulator::new(SimulatedConfig::new(2).native_kernels(false)).unwrap().devices();
    let of = Context::new(&devices).unwrap();
    let bundle = KernelBundle::<Executable>::builder(&of).with_devices(&devices[..1]).get().unwrap();
    let launch = |device: &Device| {
        Queue::builder().context(&of).device(device).build().unwrap().submit(|cg| {
            cg.use_bundle(&bundle)?;
            cg.parallel_for(4, one)
        })
    };
    launch(&devices[0]).unwrap().wait().unwrap();
    let (refused, message) = code(launch(&devices[1]));
    assert!(refused == ErrorCode::KernelNotSupported && message.contains("the kernel bundle is for"), "{message}");
}

/// A device with a context, and what launches a kernel there by a bundle.
#[cfg(target_os = "linux")]
struct Launcher<L> {
    device: Device,
    of: Context,
    launch: L,
}

#[cfg(target_os = "linux")]
fn launcher<K>(kernel: K) -> Launcher<impl Fn(&KernelBundle<Executable>) -> oxisycl::Result<Event>>
where
    K: for<'wi> Fn(Item<'wi, 1>) + Copy + Send + Sync + 'static,
{
    let device = device();
    let of = context(&device);
    let queue = Queue::builder().context(&of).device(&device).build().unwrap();
    let launch = move |bundle: &KernelBundle<Executable>| {
        queue.submit(|cg| {
            cg.use_bundle(bundle)?;
            cg.parallel_for(4, kernel)
        })
    };
    Launcher { device, of, launch }
}

#[test]
#[cfg(target_os = "linux")]
fn a_library_is_unloaded_while_a_bundle_of_it_is_held() {
    let _alone = alone();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let one = kernel(|_| _ = COUNT.fetch_add(1, Ordering::Relaxed));
    let Launcher { device, of, launch } = launcher(one);
    let library = Library::load("one", &[image_of(&one)]);
    let (input, bundle) = (KernelBundle::<Input>::new(&of).unwrap(), KernelBundle::<Executable>::new(&of).unwrap());
    let object = bundle.kernel(&KernelId::of_range(&one)).unwrap();
    launch(&bundle).unwrap();
    launch(&bundle).unwrap();
    let began = Instant::now();
    drop(library);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(COUNT.load(Ordering::Relaxed), 8, "it waits for launches");
    let is_refused = |(refused, message): (ErrorCode, String)| {
        assert!(refused == ErrorCode::KernelNotSupported, "{message}");
        assert!(message.contains("its library was unloaded"), "{message}");
    };
    is_refused(code(launch(&bundle)));
    is_refused(code(input.build()));
    is_refused(code(object.info(&device)));
    assert!(!bundle.has_kernel(object.id()));
    // The same library, loaded again, is not the one of the bundle.
    let _again = Library::load("one", &[image_of(&one)]);
    is_refused(code(launch(&bundle)));
    launch(&KernelBundle::<Executable>::new(&of).unwrap()).unwrap().wait().unwrap();
    assert_eq!(COUNT.load(Ordering::Relaxed), 12);
}

#[test]
#[cfg(target_os = "linux")]
fn a_launch_gets_no_image_of_another_link_unit_if_its_own_has_one() {
    let _alone = alone();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let one = kernel(|_| _ = COUNT.fetch_add(1, Ordering::Relaxed));
    let Launcher { of, launch, .. } = launcher(one);
    let _library = Library::load("one", &[image_of(&one)]);
    let bundle = KernelBundle::<Executable>::new(&of).unwrap();
    launch(&bundle).unwrap().wait().unwrap();
    // In the program's own memory, as the kernel's native code is.
    static OWN: [AtomicU8; 4096] = [const { AtomicU8::new(0) }; 4096];
    let mut own_image = image(image_of(&one).kernels);
    own_image.code = vec![7; 9];
    let bytes = encode_bundle(&[own_image]).unwrap();
    for (byte, value) in OWN.iter().zip(&bytes) {
        byte.store(*value, Ordering::Relaxed);
    }
    let own = OWN.as_ptr().cast::<u8>();
    assert!(bytes.len() <= OWN.len());
    // SAFETY: the bytes are not changed any more.
    unsafe { __oxisycl_register_images(own, bytes.len()) };
    let result = launch(&bundle);
    let both = KernelBundle::<Executable>::new(&of).unwrap();
    // SAFETY: registered above.
    unsafe { __oxisycl_unregister_images(own, bytes.len()) };
    let (refused, message) = code(result);
    assert!(refused == ErrorCode::KernelNotSupported && message.contains("does not have it"), "{message}");
    assert_eq!((both.kernel_ids().len(), both.images().len()), (1, 2));
    assert_eq!(COUNT.load(Ordering::Relaxed), 4);
    launch(&bundle).unwrap().wait().unwrap();
}

#[test]
fn constants_of_bundles_are_frozen_when_they_are_compiled_and_two_values_are_not_joined() {
    static NUMBER: SpecId<u32> = SpecId::new(1);
    static OTHER: SpecId<u32> = SpecId::new(1);
    let _alone = alone();
    let device = device();
    let of = context(&device);
    let input = || KernelBundle::<Input>::new(&of).unwrap();
    let (first, second) = (input(), input());
    first.set_constant(&NUMBER, 2);
    let object = first.clone().compile().unwrap();
    first.set_constant(&NUMBER, 3);
    assert_eq!([first.constant(&NUMBER), object.constant(&NUMBER), second.constant(&NUMBER)], [3, 2, 1]);
    second.set_constant(&OTHER, 4);
    let joined = KernelBundle::join([&first, &second]).unwrap();
    assert_eq!([joined.constant(&NUMBER), joined.constant(&OTHER)], [3, 4]);
    let linked = KernelBundle::link([&object, &second.clone().compile().unwrap()]).unwrap();
    assert_eq!([linked.constant(&NUMBER), linked.constant(&OTHER)], [2, 4]);
    second.set_constant(&NUMBER, 3);
    invalid(KernelBundle::join([&first, &second]), "constant of type `u32`");
    invalid(KernelBundle::link([&object, &second.compile().unwrap()]), "constant of type `u32`");
}

#[test]
fn a_constant_that_was_read_gets_no_value_of_a_bundle() {
    static NUMBER: SpecId<u32> = SpecId::new(1);
    let _alone = alone();
    let device = device();
    let queue = Queue::new(&device).unwrap();
    let input = KernelBundle::<Input>::new(queue.context()).unwrap();
    let without = input.clone().build().unwrap();
    input.set_constant(&NUMBER, 2);
    let with = input.build().unwrap();
    let submitted = queue.submit(|cg| {
        cg.constant(&NUMBER);
        cg.use_bundle(&without)?;
        let _ = cg.use_bundle(&with);
        Ok(())
    });
    invalid(submitted, "has read a specialization constant that a bundle has set");
    let exchanged = queue.submit(|cg| {
        cg.use_bundle(&with)?;
        assert_eq!(cg.constant(&NUMBER).get(), 2);
        let _ = cg.use_bundle(&without);
        Ok(())
    });
    invalid(exchanged, "has read a specialization constant that a bundle has set");
}

#[test]
fn errors_of_bundles_and_constants_name_kernels_and_devices() {
    static NUMBER: SpecId<u32> = SpecId::new(1);
    let _alone = alone();
    let device = device();
    let (of, other) = (context(&device), context(&device));
    let queue = Queue::builder().context(&of).device(&device).build().unwrap();
    let name = device.name();
    let foreign = KernelBundle::<Executable>::new(&other).unwrap();
    let named = queue.submit(|cg| {
        cg.name("saxpy");
        cg.use_bundle(&foreign)
    });
    invalid(
        named,
        &format!("kernel \"saxpy\" on device \"{name}\": a kernel bundle for \"{name}\", of another context"),
    );
    let unnamed = queue.submit(|cg| cg.use_bundle(&foreign));
    invalid(unnamed, &format!("a command group on device \"{name}\": a kernel bundle"));
    let set = |title: Option<&'static str>| {
        queue.submit(|cg| {
            title.into_iter().for_each(|title| cg.name(title));
            cg.constant(&NUMBER);
            cg.set_constant(&NUMBER, 2)
        })
    };
    let what = "a specialization constant of type `u32` is set after";
    invalid(set(Some("saxpy")), &format!("kernel \"saxpy\" on device \"{name}\": {what}"));
    invalid(set(None), &format!("a command group on device \"{name}\": {what}"));
    let two = [1, 2].map(|value| {
        let input = KernelBundle::<Input>::new(&of).unwrap();
        input.set_constant(&NUMBER, value);
        input
    });
    invalid(
        KernelBundle::join(&two),
        &format!("kernel bundles for \"{name}\" have set a specialization constant of type `u32`"),
    );
}
