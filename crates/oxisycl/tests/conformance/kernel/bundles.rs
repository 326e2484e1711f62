//! Kernel bundles on each device (M2, M5 to M7).

use oxisycl::KernelId;
use oxisycl::group::nd::{LocalAccessor, NdItem};
use oxisycl::group::{Fixed1, Local};
use oxisycl::kernel_bundle::{Executable, Input, KernelBundle, Object};
use oxisycl::prelude::*;
use oxisycl::specialization::{SpecId, Specialized};

use crate::harness::{Env, tests};
use crate::support::{code, iota};

tests![
    a_group_launches_kernels_of_its_bundle_and_no_others,
    a_kernel_object_has_the_limits_of_its_kernel,
    a_bundle_of_all_kernels_has_those_that_the_device_can_run,
    a_bundle_has_kernels_whose_stated_needs_the_device_meets,
    a_group_has_a_bundle_or_values_of_constants,
    a_bundle_has_values_of_constants_from_the_state_input,
    bundles_are_made_of_devices_of_their_context_compiled_and_linked,
];

#[kernel(sub_group_size(32))]
fn in_warps(item: Item<1>, numbers: Accessor<i32, 1, ReadWrite>) {
    numbers.update(item, |x| x + 1);
}

static FACTOR: SpecId<i32> = SpecId::new(3);
static UNSET: SpecId<i32> = SpecId::new(0);

fn a_group_launches_kernels_of_its_bundle_and_no_others(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(5)).unwrap();
    let data = Buffer::from_vec(iota(5)).unwrap();
    // A kernel's identity is its type: of two of one type, one names both.
    let mut id = None;
    let by_bundle = queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        let kernel = oxisycl::kernel(move |item: Item<1>| data.update(item, |x| x + 10));
        let named = id.insert(KernelId::of_range(&kernel)).clone();
        let bundle = KernelBundle::<Executable>::builder(queue.context())
            .with_devices(std::slice::from_ref(env.device()))
            .with_kernels(&[named])
            .get()?;
        cg.use_bundle(&bundle)?;
        cg.parallel_for(5, kernel)
    });
    by_bundle.unwrap();
    let bundle = KernelBundle::<Executable>::builder(queue.context())
        .with_devices(std::slice::from_ref(env.device()))
        .with_kernels(id.as_slice())
        .get()
        .unwrap();
    assert!(bundle.has_kernel(&id.unwrap()));
    let other = queue.submit(|cg| {
        cg.use_bundle(&bundle)?;
        let data = cg.access(&data, ReadWrite);
        cg.parallel_for(5, move |item| data.update(item, |x| x + 100))
    });
    assert_eq!(code(other), ErrorCode::KernelNotSupported);
    assert_eq!(buffer.to_vec().unwrap(), [10, 11, 12, 13, 14]);
    assert_eq!(data.to_vec().unwrap(), iota(5), "nothing is enqueued");
}

fn a_kernel_object_has_the_limits_of_its_kernel(env: &Env) {
    let turn_round = |mut item: NdItem<'_, '_, 1, Fixed1<32>>, tile: LocalAccessor<'_, u32>| {
        let own = item.local_linear_id();
        // SAFETY: each work-item writes its own element before the barrier, and all only read behind it.
        let other = unsafe {
            tile.set(own, own as u32);
            item.group().barrier();
            tile.get(31 - own)
        };
        assert_eq!(other as usize, 31 - own);
    };
    let (tile, range, device) = (Local::<u32, 32>::new(), (64, Fixed1::<32>), env.device());
    let queue = env.queue();
    let id = KernelId::of_nd_range(&range, &tile, &turn_round);
    let builder = KernelBundle::<Executable>::builder(queue.context()).with_devices(std::slice::from_ref(device));
    let bundle = builder.with_kernels(std::slice::from_ref(&id)).get().unwrap();
    let launched = queue.submit(|cg| {
        cg.use_bundle(&bundle)?;
        cg.parallel_for_nd_range(range, tile, turn_round)
    });
    launched.unwrap().wait().unwrap();
    let info = bundle.kernel(&id).unwrap().info(device).unwrap();
    assert_eq!(info, device.kernel_info(&id).unwrap());
    assert!((32..=device.info().max_work_group_size).contains(&info.max_work_group_size), "{info:?}");
    assert!(info.max_num_sub_groups >= 1, "{info:?}");
    // Only an image tells of a size that is fixed.
    let fixed = (!device.image_targets().is_empty()).then_some(Range([1, 1, 32]));
    assert_eq!(info.compile_work_group_size, fixed, "{info:?}");
    if let Some(size) = info.max_sub_group_size {
        assert!(size.is_power_of_two() && info.max_num_sub_groups <= info.max_work_group_size, "{info:?}");
    }
}

fn a_bundle_of_all_kernels_has_those_that_the_device_can_run(env: &Env) {
    let (queue, device) = (env.queue(), env.device());
    let builder = KernelBundle::<Executable>::builder(queue.context()).with_devices(std::slice::from_ref(device));
    let bundle = builder.get().unwrap();
    let all = KernelId::all().unwrap();
    let of_device: Vec<KernelId> = all.into_iter().filter(|id| device.is_compatible([id])).collect();
    assert_eq!(bundle.kernel_ids().len(), of_device.len());
    assert!(of_device.iter().all(|id| bundle.has_kernel_on(id, device)));
    assert_eq!(bundle.is_empty(), of_device.is_empty());
}

fn a_bundle_has_kernels_whose_stated_needs_the_device_meets(env: &Env) {
    let (queue, device, numbers) = (env.queue(), env.device(), Buffer::from_vec(iota(5)).unwrap());
    let id = KernelId::of_call(&in_warps(numbers.update()));
    let builder = || {
        let builder = KernelBundle::<Executable>::builder(queue.context()).with_devices(std::slice::from_ref(device));
        builder.with_kernels(std::slice::from_ref(&id))
    };
    let has = device.is_compatible([&id]);
    assert_eq!(builder().has_bundle(), has);
    match builder().get() {
        Ok(bundle) => assert!(has && bundle.has_kernel_on(&id, device)),
        Err(error) => {
            let text = error.to_string();
            assert!(!has && error.code() == ErrorCode::Invalid && text.contains("in_warps"), "{text}");
        }
    }
}

fn a_group_has_a_bundle_or_values_of_constants(env: &Env) {
    let (queue, numbers) = (env.queue(), Buffer::from_vec(iota(5)).unwrap());
    let builder =
        || KernelBundle::<Executable>::builder(queue.context()).with_devices(std::slice::from_ref(env.device()));
    let bundle = builder().get().unwrap();
    let set_first = queue.submit(|cg| {
        cg.set_constant(&FACTOR, 4)?;
        cg.use_bundle(&bundle)?;
        cg.parallel_for(5, |_| {})
    });
    assert_eq!(code(set_first), ErrorCode::Invalid);
    let set_later = queue.submit(|cg| {
        cg.use_bundle(&bundle)?;
        cg.set_constant(&FACTOR, 4)?;
        cg.parallel_for(5, |_| {})
    });
    assert_eq!(code(set_later), ErrorCode::Invalid);
    // What is only read has its default.
    let launched = queue.submit(|cg| {
        let (factor, numbers) = (cg.constant(&FACTOR), cg.access(&numbers, ReadWrite));
        let kernel = oxisycl::kernel(move |item: Item<1>| numbers.update(item, |x| factor.get() * x));
        let named = KernelId::of_range(&kernel);
        cg.use_bundle(&builder().with_kernels(&[named]).get()?)?;
        cg.parallel_for(5, kernel)
    });
    launched.unwrap().wait().unwrap();
    assert_eq!(numbers.to_vec().unwrap(), [0, 3, 6, 9, 12]);
}

fn a_bundle_has_values_of_constants_from_the_state_input(env: &Env) {
    let (queue, numbers) = (env.queue(), Buffer::from_vec(iota(5)).unwrap());
    let device = std::slice::from_ref(env.device());
    let scale = |bundle: &dyn Fn(&KernelId) -> oxisycl::Result<KernelBundle<Executable>>| {
        queue.submit(|cg| {
            let numbers = cg.access(&numbers, ReadWrite);
            // A kernel's identity is its type, whatever it captures.
            let kernel_with = |factor: Specialized<i32>| {
                oxisycl::kernel(move |item: Item<1>| numbers.update(item, |x| factor.get() * x))
            };
            let named = KernelId::of_range(&kernel_with(cg.constant(&UNSET)));
            cg.use_bundle(&bundle(&named)?)?;
            let factor = cg.constant(&FACTOR);
            cg.parallel_for(5, kernel_with(factor))
        })
    };
    let input = |id: &KernelId| {
        KernelBundle::<Input>::builder(queue.context())
            .with_devices(device)
            .with_kernels(std::slice::from_ref(id))
            .get()
    };
    let built = |id: &KernelId| {
        let input = input(id)?;
        input.set_constant(&FACTOR, 10);
        let built = input.clone().build()?;
        input.set_constant(&FACTOR, 100);
        assert_eq!((built.constant(&FACTOR), input.constant(&FACTOR)), (10, 100));
        Ok(built)
    };
    let launched = scale(&built);
    if !env.device().has(Aspect::OnlineCompiler) {
        // Nothing compiles the program's own code at run time.
        assert_eq!(code(launched), ErrorCode::Invalid);
        return;
    }
    launched.unwrap().wait().unwrap();
    assert_eq!(numbers.to_vec().unwrap(), [0, 10, 20, 30, 40]);
}

fn bundles_are_made_of_devices_of_their_context_compiled_and_linked(env: &Env) {
    let (queue, device) = (env.queue(), std::slice::from_ref(env.device()));
    let foreign = Context::new(std::slice::from_ref(env.other_device())).unwrap();
    let builder = || KernelBundle::<Input>::builder(queue.context());
    assert_eq!(code(builder().with_devices(&[]).get()), ErrorCode::Invalid);
    assert_eq!(code(KernelBundle::<Executable>::builder(&foreign).with_devices(device).get()), ErrorCode::Invalid);
    assert_eq!(code(KernelBundle::link([])), ErrorCode::Invalid);

    let (first, second) = (Buffer::from_vec(iota(5)).unwrap(), Buffer::from_vec(iota(5)).unwrap());
    let launched = queue.submit(|cg| {
        let numbers = cg.access(&first, ReadWrite);
        let add = oxisycl::kernel(move |item: Item<1>| numbers.update(item, |x| x + 20));
        let numbers = cg.access(&second, ReadWrite);
        let scale = oxisycl::kernel(move |item: Item<1>| numbers.update(item, |x| 30 * x));
        let object = |id: KernelId| -> oxisycl::Result<KernelBundle<Object>> {
            builder().with_devices(device).with_kernels(&[id]).get()?.compile()
        };
        let objects = [object(KernelId::of_range(&add))?, object(KernelId::of_range(&scale))?];
        let linked = KernelBundle::link(&objects)?;
        assert_eq!((linked.devices(), linked.kernel_ids().len()), (device, 2));
        cg.use_bundle(&linked)?;
        cg.parallel_for(5, scale)
    });
    if !(env.device().has(Aspect::OnlineCompiler) && env.device().has(Aspect::OnlineLinker)) {
        assert_eq!(code(launched), ErrorCode::Invalid);
        return;
    }
    launched.unwrap().wait().unwrap();
    assert_eq!((first.to_vec().unwrap(), second.to_vec().unwrap()), (iota(5), vec![0, 30, 60, 90, 120]));
}
