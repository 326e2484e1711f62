//! What the attribute of a kernel function states: which devices run it, and in which groups.

use oxisycl::prelude::*;
use oxisycl::{ErrorCode, KernelId};

use crate::harness::{Env, tests};

tests![
    devices_without_a_stated_aspect_run_nothing,
    all_stated_aspects_are_needed,
    ranges_of_any_size_run_in_groups_of_the_stated_size,
    groups_beyond_a_devices_limit_run_nothing,
    sub_groups_of_a_size_that_a_device_lacks_run_nothing,
    what_is_stated_can_be_asked_for,
];

const TILE: usize = 4;

#[kernel(device_has(Cpu))]
fn on_processors(item: Item<1>, numbers: Accessor<u32, 1, ReadWrite>) {
    numbers.update(item, |x| x + 1);
}

#[kernel(device_has(Gpu))]
fn on_graphics(item: Item<1>, numbers: Accessor<u32, 1, ReadWrite>) {
    numbers.update(item, |x| x + 1);
}

/// No device is one.
#[kernel(device_has(UsmDeviceAllocations, Custom))]
fn on_none(task: Single, numbers: Accessor<u32, 1, ReadWrite>) {
    numbers.set_at(task, 0, numbers.get_at(task, 0) + 1);
}

#[kernel(work_group_size(TILE, 2 * TILE))]
fn in_tiles<T: DeviceCopyable + From<u16>>(item: Item<2>, base: u16, numbers: Accessor<T, 2, Write>) {
    numbers.set(item, T::from(base + (1000 * item.get(0) + item.get(1)) as u16));
}

#[kernel(work_group_size(16))]
fn in_lines(item: Item<1>, numbers: Accessor<u32, 1, ReadWrite>) {
    numbers.update(item, |x| x + item.index() as u32);
}

#[kernel(work_group_size(2, 1, 4))]
fn in_boxes(item: Item<3>, numbers: Accessor<u32, 3, ReadWrite>) {
    numbers.update(item, |x| x + item.linear_id() as u32);
}

/// More than most devices have.
#[kernel(work_group_size(65_536))]
fn in_large_groups(item: Item<1>, numbers: Accessor<u32, 1, ReadWrite>) {
    numbers.update(item, |x| x + 1);
}

#[kernel(sub_group_size(32))]
fn in_warps(item: Item<1>, numbers: Accessor<u32, 1, ReadWrite>) {
    numbers.update(item, |x| x + 1);
}

#[kernel(sub_group_size(8))]
fn in_eights(task: Single, numbers: Accessor<u32, 1, ReadWrite>) {
    numbers.set_at(task, 0, numbers.get_at(task, 0) + 1);
}

/// The result of a launch says whether the device has what it needs, as asking before does, and so does the buffer.
#[track_caller]
fn assert_runs(
    env: &Env,
    expected: bool,
    kernel: (&str, &KernelId),
    what: &str,
    launch: impl FnOnce(&Queue, &Buffer<u32, 1>) -> oxisycl::Result<Event>,
) {
    let (numbers, (name, id), queue) = (Buffer::from_vec(vec![1u32; 3]).unwrap(), kernel, env.queue());
    let launched = launch(&queue, &numbers);
    assert_eq!((env.device().is_compatible([id]), launched.is_ok()), (expected, expected), "{name}: {launched:?}");
    assert_eq!(numbers.to_vec().unwrap()[0], 1 + u32::from(expected), "{name}");
    if let Err(error) = launched {
        let text = error.to_string();
        assert_eq!(error.code(), ErrorCode::KernelNotSupported);
        let start = format!("kernel \"{name}\" on device \"{}\": it states ", env.device().name());
        assert!(text.starts_with(&start) && text.contains(what), "{text}");
    }
}

fn devices_without_a_stated_aspect_run_nothing(env: &Env) {
    let numbers = Buffer::from_vec(vec![0u32]).unwrap();
    let processors = KernelId::of_call(&on_processors(numbers.update()));
    let graphics = KernelId::of_call(&on_graphics(numbers.update()));
    let has = |aspect| env.device().has(aspect);
    assert_runs(env, has(Aspect::Cpu), ("on_processors", &processors), "the aspect cpu,", |queue, numbers| {
        queue.launch_call(3, on_processors(numbers.update()))
    });
    assert_runs(env, has(Aspect::Gpu), ("on_graphics", &graphics), "the aspect gpu,", |queue, numbers| {
        queue.submit(|cg| {
            let numbers = cg.access(numbers, ReadWrite);
            cg.launch_call(3, on_graphics(numbers))
        })
    });
}

fn all_stated_aspects_are_needed(env: &Env) {
    let numbers = Buffer::from_vec(vec![0u32]).unwrap();
    let id = KernelId::of_single_call(&on_none(numbers.update()));
    assert!(!env.device().has(Aspect::Custom));
    let missing = if env.device().has(Aspect::UsmDeviceAllocations) {
        "the aspect custom,"
    } else {
        "custom, usm_device_allocations,"
    };
    assert_runs(env, false, ("on_none", &id), missing, |queue, numbers| {
        queue.launch_single_call(on_none(numbers.update()))
    });
    // An empty range, too.
    let error = env.queue().launch_call(0, in_large_groups(numbers.update()));
    assert_eq!(error.is_ok(), env.device().info().max_work_group_size >= 65_536);
}

fn ranges_of_any_size_run_in_groups_of_the_stated_size(env: &Env) {
    let queue = env.queue();
    for extent in [[1, 1], [4, 8], [5, 9], [33, 7]] {
        let numbers = Buffer::from_vec_nd(vec![0u32; extent[0] * extent[1]], extent).unwrap();
        queue.launch_call(extent, in_tiles(7, numbers.write())).unwrap();
        let expected = (0..extent[0]).flat_map(|row| (0..extent[1]).map(move |column| 7 + 1000 * row + column));
        let expected: Vec<u32> = expected.map(|number| u32::from(number as u16)).collect();
        assert_eq!(numbers.to_vec().unwrap(), expected, "{extent:?}");
    }
    let line = Buffer::from_vec(vec![5u32; 1000]).unwrap();
    queue.launch_call(1000, in_lines(line.update())).unwrap();
    assert!(line.to_vec().unwrap().into_iter().eq(5..1005));
    let boxes = Buffer::from_vec_nd(vec![1u32; 3 * 2 * 5], [3, 2, 5]).unwrap();
    queue.launch_call([3, 2, 5], in_boxes(boxes.update())).unwrap();
    assert!(boxes.to_vec().unwrap().into_iter().eq(1..31));
}

fn groups_beyond_a_devices_limit_run_nothing(env: &Env) {
    let numbers = Buffer::from_vec(vec![0u32]).unwrap();
    let id = KernelId::of_call(&in_large_groups(numbers.update()));
    let info = env.device().info();
    let fits = info.max_work_group_size >= 65_536 && info.max_work_item_sizes[2] >= 65_536;
    assert_runs(env, fits, ("in_large_groups", &id), "work-groups of [65536] work-items", |queue, numbers| {
        queue.launch_call(3, in_large_groups(numbers.update()))
    });
}

fn sub_groups_of_a_size_that_a_device_lacks_run_nothing(env: &Env) {
    let numbers = Buffer::from_vec(vec![0u32]).unwrap();
    let warps = KernelId::of_call(&in_warps(numbers.update()));
    let eights = KernelId::of_single_call(&in_eights(numbers.update()));
    let has = |size| env.device().info().sub_group_sizes.contains(&size);
    assert_runs(env, has(32), ("in_warps", &warps), "sub-groups of 32 work-items", |queue, numbers| {
        queue.launch_call(3, in_warps(numbers.update()))
    });
    assert_runs(env, has(8), ("in_eights", &eights), "sub-groups of 8 work-items", |queue, numbers| {
        queue.launch_single_call(in_eights(numbers.update()))
    });
}

fn what_is_stated_can_be_asked_for(env: &Env) {
    let numbers = Buffer::from_vec_nd(vec![0u32], [1, 1]).unwrap();
    let tiles = env.device().kernel_info(&KernelId::of_call(&in_tiles(0, numbers.write()))).unwrap();
    assert_eq!((tiles.compile_work_group_size, tiles.compile_sub_group_size), (Some(Range([1, 4, 8])), None));
    let line = Buffer::from_vec(vec![0u32]).unwrap();
    let warps = KernelId::of_call(&in_warps(line.update()));
    match env.device().kernel_info(&warps) {
        Ok(info) => assert_eq!((info.compile_work_group_size, info.compile_sub_group_size), (None, Some(32))),
        Err(error) => assert_eq!(error.code(), ErrorCode::KernelNotSupported),
    }
}
