//! Pointers of each space: what they access, how they are compared and cast, and where they may be.

use oxisycl::atomic::{Relaxed, Scope};
use oxisycl::group::nd::LocalAccessor;
use oxisycl::group::{Fixed1, Local};
use oxisycl::multi_ptr::{MultiPtr, space};
use oxisycl::prelude::*;
use oxisycl::{BackendKind, UsmKind};

use crate::harness::{Env, tests};

tests![
    each_space_is_read_and_written,
    a_dynamic_cast_finds_the_memory_of_an_address,
    null_is_of_no_memory,
    pointers_are_compared_across_spaces,
    pointers_move_by_elements,
    elements_are_changed_atomically_in_global_and_local_memory,
    pointers_are_captured_passed_and_kept,
    a_list_is_walked_through_the_pointers_in_it,
    allocations_give_pointers_of_their_kind,
    a_prefetch_changes_nothing,
];

const ITEMS: usize = 8;

/// Reads and writes through a pointer of one space, in all ways.
///
/// # Safety
/// The calling work-item may access the element, and nothing else does.
unsafe fn exercise<S: space::Writable>(pointer: MultiPtr<u32, S>) {
    // SAFETY: by the contract of this function.
    unsafe {
        pointer.write(pointer.read() + 1);
        let cell = pointer.as_cell();
        cell.set(cell.get() * 10);
        assert_eq!(*pointer.as_ref(), pointer.cast::<i32>().read() as u32);
    }
}

fn each_space_is_read_and_written(env: &Env) {
    let numbers = Buffer::from_vec((0..24u32).collect()).unwrap();
    let results = Buffer::from_vec(vec![[0u32; 6]; 24]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let (numbers, results) = (cg.access(&numbers, ReadWrite), cg.access(&results, Write));
        let memory = Local::<u32, ITEMS>::new();
        cg.parallel_for_nd_range((24, Fixed1::<ITEMS>), memory, move |item, tile: LocalAccessor<'_, u32>| {
            let (token, own) = (item.global(), item.local_linear_id());
            let global = numbers.multi_ptr(token).wrapping_add(item.global_linear_id());
            let mut variable = 5;
            let local = tile.multi_ptr().wrapping_add(own);
            // SAFETY: elements of the work-item's own.
            unsafe {
                local.write(7 + own as u32);
                exercise(local);
                exercise(MultiPtr::new(&raw mut variable).static_cast::<space::Private>());
                let (three, four) = (local.read(), variable);
                exercise(global);
                let one = global.read();
                exercise(global.static_cast::<space::GlobalDevice>());
                let two = global.read();
                exercise::<space::Generic>(global.into());
                exercise::<space::Generic>(local.into());
                results.set(token, [one, two, three, four, global.read(), local.read()]);
            }
        })
    });
    submitted.unwrap();
    let twice = |n: u32| ((n + 1) * 10 + 1) * 10;
    let expected = |i: u32| {
        let own = 7 + i % ITEMS as u32;
        [(i + 1) * 10, twice(i), (own + 1) * 10, 60, (twice(i) + 1) * 10, twice(own)]
    };
    assert_eq!(results.to_vec().unwrap(), (0..24).map(expected).collect::<Vec<_>>());
}

fn a_dynamic_cast_finds_the_memory_of_an_address(env: &Env) {
    let numbers = Buffer::from_vec((0..24u32).map(|i| 100 + i).collect()).unwrap();
    let found = Buffer::from_vec(vec![([false; 5], 0); 24]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let (numbers, found) = (cg.access(&numbers, ReadWrite), cg.access(&found, Write));
        let memory = Local::<u32, ITEMS>::new();
        cg.parallel_for_nd_range((24, Fixed1::<ITEMS>), memory, move |item, tile: LocalAccessor<'_, u32>| {
            let (token, own, i) = (item.global(), item.local_linear_id(), item.global_linear_id());
            let local = tile.multi_ptr().wrapping_add(own);
            // SAFETY: an element of the work-item's own.
            unsafe { local.write(200 + i as u32) };
            let mut variable = 300 + i as u32;
            let pointers: [MultiPtr<u32>; 3] =
                [numbers.multi_ptr(token).wrapping_add(i).into(), local.into(), MultiPtr::new(&raw mut variable)];
            let pointer = pointers[i % 3];
            let casts = [
                pointer.dynamic_cast::<space::Global>().map(MultiPtr::get),
                pointer.dynamic_cast::<space::GlobalDevice>().map(MultiPtr::get),
                pointer.dynamic_cast::<space::GlobalHost>().map(MultiPtr::get),
                pointer.dynamic_cast::<space::Local>().map(MultiPtr::get),
                pointer.dynamic_cast::<space::Private>().map(MultiPtr::get),
            ];
            let own = casts[[0, 3, 4][i % 3]];
            // SAFETY: the address of the element.
            let value = own.map_or(0, |pointer| unsafe { pointer.read() });
            let right = casts.iter().flatten().all(|cast| *cast == pointer.get());
            found.set(token, (casts.map(|cast| right && cast.is_some()), value));
        })
    });
    submitted.unwrap();
    // Other processors than GPUs may have one memory.
    let tells_apart = env.device().backend() == BackendKind::Cuda || env.device().info().device_type == DeviceType::Gpu;
    for (i, (casts, value)) in found.to_vec().unwrap().into_iter().enumerate() {
        let kind = i % 3;
        assert_eq!(value as usize, (kind + 1) * 100 + i, "{i}: the value at the address, {casts:?}");
        let own = [kind == 0, kind == 0, kind == 0, kind == 1, kind == 2];
        match env.device().backend() {
            BackendKind::Host | BackendKind::Simulated => assert_eq!(casts, [true; 5], "{i}: all memory is one"),
            _ if tells_apart => assert_eq!(casts, own, "{i}"),
            _ => assert!(own.iter().zip(casts).all(|(own, cast)| !own || cast), "{i}: {casts:?}"),
        }
    }
}

fn null_is_of_no_memory(env: &Env) {
    let pointers = Buffer::from_vec(vec![MultiPtr::<u8>::null(); 4]).unwrap();
    let found = Buffer::from_vec(vec![true; 4]).unwrap();
    let kernel = |item: Item<1>, (pointers, found): (Accessor<MultiPtr<u8>, 1, Read>, Accessor<bool, 1, Write>)| {
        let pointer = pointers.get(item);
        let is_found = pointer.dynamic_cast::<space::Global>().is_some()
            || pointer.dynamic_cast::<space::Local>().is_some()
            || pointer.dynamic_cast::<space::Private>().is_some();
        found.set(item, is_found || !pointer.is_null());
    };
    env.queue().parallel_for_with(4, (pointers.read(), found.write()), kernel).unwrap();
    assert_eq!(found.to_vec().unwrap(), [false; 4]);
}

fn pointers_are_compared_across_spaces(env: &Env) {
    let numbers = Buffer::from_vec(vec![0u32; 8]).unwrap();
    let found = Buffer::from_vec(vec![[false; 6]; 8]).unwrap();
    let kernel = |item: Item<1>, (numbers, found): (Accessor<u32, 1, ReadWrite>, Accessor<[bool; 6], 1, Write>)| {
        let first = numbers.multi_ptr(item);
        let own = first.wrapping_add(item.index());
        let generic: MultiPtr<u32> = own.into();
        // SAFETY: a buffer is a device allocation.
        let of_device = unsafe { own.static_cast::<space::GlobalDevice>() };
        let equal = [own == generic, generic == of_device, of_device == own];
        found.set(item, [equal[0], equal[1], equal[2], first <= generic, generic < first, own != first]);
    };
    env.queue().parallel_for_with(8, (numbers.update(), found.write()), kernel).unwrap();
    let expected: Vec<_> = (0..8).map(|i| [true, true, true, true, false, i != 0]).collect();
    assert_eq!(found.to_vec().unwrap(), expected);
}

fn pointers_move_by_elements(env: &Env) {
    let numbers = Buffer::from_vec((0..64u16).collect()).unwrap();
    let found = Buffer::from_vec(vec![[0i64; 4]; 8]).unwrap();
    let kernel = |item: Item<1>, (numbers, found): (Accessor<u16, 1, ReadWrite>, Accessor<[i64; 4], 1, Write>)| {
        let first = numbers.multi_ptr(item);
        // SAFETY: all are elements of the buffer, which nothing writes.
        unsafe {
            let at = first.add(8 * item.index());
            let back = at.add(7).sub(2).wrapping_sub(1).wrapping_offset(-2);
            let values = [at.read(), back.read()].map(i64::from);
            found.set(item, [values[0], values[1], back.offset_from(first) as i64, first.offset_from(back) as i64]);
        }
    };
    env.queue().parallel_for_with(8, (numbers.update(), found.write()), kernel).unwrap();
    let expected: Vec<_> = (0..8).map(|i| [8 * i, 8 * i + 2, 8 * i + 2, -8 * i - 2]).collect();
    assert_eq!(found.to_vec().unwrap(), expected);
}

fn elements_are_changed_atomically_in_global_and_local_memory(env: &Env) {
    const GROUPS: usize = 16;
    let totals = Buffer::from_vec(vec![0u32; 3]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let totals = cg.access(&totals, Atomic);
        let memory = Local::<u32, 1>::new();
        let range = (64 * GROUPS, Fixed1::<64>);
        cg.parallel_for_nd_range(range, memory, move |mut item, tile: LocalAccessor<'_, u32>| {
            let (token, own) = (item.global(), item.local_linear_id() as u32);
            let (totals, local) = (totals.multi_ptr(token), tile.multi_ptr());
            // SAFETY: elements of the buffer and of the tile. All accesses are atomic, or barriers stand between.
            unsafe {
                if own == 0 {
                    local.write(0);
                }
                item.group().barrier();
                assert_eq!(local.atomic_ref(token).scope(), Scope::WorkGroup);
                local.atomic_ref(token).fetch_add(own, Relaxed);
                item.group().barrier();
                if own == 0 {
                    totals.atomic_ref(token).fetch_add(local.atomic_ref(token).load(Relaxed), Relaxed);
                }
                totals.add(1).atomic_ref(token).fetch_add(1, Relaxed);
                let generic: MultiPtr<u32> = totals.add(2).into();
                generic.atomic_ref(token).fetch_max(item.global_linear_id() as u32, Relaxed);
            }
        })
    });
    submitted.unwrap();
    let n = 64 * GROUPS as u32;
    assert_eq!(totals.to_vec().unwrap(), [GROUPS as u32 * (63 * 64 / 2), n, n - 1]);
}

fn pointers_are_captured_passed_and_kept(env: &Env) {
    let queue = env.queue();
    let mut numbers = queue.malloc_device::<u32>(4).unwrap();
    numbers.copy_from_slice(&queue, &[10, 20, 30, 40]).unwrap();
    let captured = numbers.device_multi_ptr().unwrap();
    let passed: MultiPtr<u32, space::Global> = captured.into();
    let kept = Buffer::from_vec(vec![(7u8, captured); 4]).unwrap();
    let sums = Buffer::from_vec(vec![0u32; 4]).unwrap();
    let event =
        queue.parallel_for_with(4, (passed, [kept.read()], sums.write()), move |item, (passed, [kept], sums)| {
            let (seven, from_memory) = kept.get(item);
            let i = item.index();
            // SAFETY: elements of the allocation, which nothing writes.
            let [one, two, three] =
                unsafe { [captured.add(i).read(), passed.add(3 - i).read(), from_memory.wrapping_add(i ^ 1).read()] };
            sums.set(item, one + 100 * two + 10_000 * three + u32::from(seven));
        });
    event.unwrap().wait().unwrap();
    assert_eq!(sums.to_vec().unwrap(), [204_017, 103_027, 402_037, 301_047]);
    // They come back as they were.
    assert!(kept.to_vec().unwrap().iter().all(|(_, pointer)| *pointer == captured));
}

#[derive(Clone, Copy, DeviceCopyable)]
struct Node {
    value: u64,
    next: MultiPtr<Node, space::Global>,
    /// The node by an address of any memory.
    any: MultiPtr<Node>,
}

fn a_list_is_walked_through_the_pointers_in_it(env: &Env) {
    const NODES: usize = 1000;
    const STEP: usize = 387;
    let queue = env.queue();
    let node = |value| Node { value, next: MultiPtr::null(), any: MultiPtr::null() };
    let nodes = Buffer::from_vec((0..NODES as u64).map(node).collect()).unwrap();
    queue
        .parallel_for_with(NODES, nodes.update(), |item, nodes| {
            let next = nodes.multi_ptr(item).wrapping_add((item.index() + STEP) % NODES);
            nodes.update(item, |node| Node { next, any: next.into(), ..node });
        })
        .unwrap();
    let sums = Buffer::from_vec(vec![[0u64; 2]; 4]).unwrap();
    let event = queue.parallel_for_with(4, (nodes.read(), sums.write()), |item, (nodes, sums)| {
        let mut at = nodes.multi_ptr(item).wrapping_add(item.index());
        let mut any: MultiPtr<Node> = at.into();
        let mut sum = [0; 2];
        for step in 0..NODES as u64 {
            // SAFETY: nodes of the buffer, which nothing writes.
            let (by_global, by_any) = unsafe { (at.read(), any.read()) };
            sum[0] += by_global.value * step;
            sum[1] += by_any.value * step;
            (at, any) = (by_global.next, by_any.any);
        }
        sums.set(item, sum);
    });
    event.unwrap();
    let sum = |from: usize| (0..NODES).map(|step| ((from + step * STEP) % NODES * step) as u64).sum();
    let expected: Vec<[u64; 2]> = (0..4).map(|from| [sum(from); 2]).collect();
    assert_eq!(sums.to_vec().unwrap(), expected);
}

fn allocations_give_pointers_of_their_kind(env: &Env) {
    let queue = env.queue();
    for kind in [UsmKind::Device, UsmKind::Host, UsmKind::Shared] {
        let Ok(mut numbers) = queue.malloc::<u32>(kind, 8) else {
            assert_ne!(kind, UsmKind::Device);
            continue;
        };
        numbers.copy_from_slice(&queue, &[3; 8]).unwrap();
        let (of_device, of_host) = (numbers.device_multi_ptr(), numbers.host_multi_ptr());
        assert_eq!((of_device.is_some(), of_host.is_some()), (kind == UsmKind::Device, kind == UsmKind::Host));
        let global = numbers.pointer().multi_ptr();
        assert!(of_device.is_none_or(|pointer| pointer == global) && of_host.is_none_or(|pointer| pointer == global));
        // SAFETY: each work-item changes an element of its own, and nothing else accesses the allocation.
        let kernel = move |item: Item<1>| unsafe {
            let own = global.add(item.index());
            own.write(own.read() + item.index() as u32);
        };
        queue.parallel_for(8, kernel).unwrap().wait().unwrap();
        assert_eq!(numbers.to_vec(&queue).unwrap(), [3, 4, 5, 6, 7, 8, 9, 10], "{kind:?}");
    }
}

fn a_prefetch_changes_nothing(env: &Env) {
    let numbers = Buffer::from_vec((0..1000u32).collect()).unwrap();
    let kernel = |item: Item<1>, numbers: Accessor<u32, 1, ReadWrite>| {
        let own = numbers.multi_ptr(item).wrapping_add(item.index());
        // SAFETY: elements of the buffer.
        unsafe {
            own.prefetch((1000 - item.index()).min(100));
            MultiPtr::<u32>::from(own).prefetch(0);
        }
        numbers.update(item, |x| x + 1);
    };
    env.queue().parallel_for_with(1000, numbers.update(), kernel).unwrap();
    assert_eq!(numbers.to_vec().unwrap(), (1..1001).collect::<Vec<_>>());
}
