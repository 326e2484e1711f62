//! Rows 8.25 to 8.29: USM, and looking at what happens inside.

use std::alloc::Layout;

use oxisycl::usm::{free, malloc_raw};
use oxisycl::{UsmKind, observe};

use super::hold::{Hold, eight, ways};
use crate::harness::{Env, tests};
use crate::support::{Gate, iota, plus_one, update};

tests![
    row_8_25_allocating_and_freeing_never_blocks,
    row_8_26_safe_copies_of_a_slice_block_until_they_have_ended,
    row_8_27_looking_at_a_slice_never_blocks,
    row_8_28_dropping_a_slice_never_blocks,
    row_8_29_observing_never_blocks,
];

fn row_8_25_allocating_and_freeing_never_blocks(env: &Env) {
    for &way in ways(env) {
        let queue = env.in_order_queue();
        let hold = Hold::new(env, way, &queue);
        let last = queue.single_task(|_| {}).unwrap();
        let slices = (
            queue.malloc_device::<i32>(8).unwrap(),
            queue.malloc_host::<i32>(8).unwrap(),
            queue.malloc_shared::<i32>(8).unwrap(),
            queue.malloc::<i32>(UsmKind::Device, 8).unwrap(),
            queue.aligned_alloc::<i32>(UsmKind::Device, 8, 128).unwrap(),
        );
        let layout = Layout::new::<[i32; 8]>();
        let raw = malloc_raw(UsmKind::Device, layout, env.device(), queue.context()).unwrap();
        // SAFETY: nothing uses the memory.
        unsafe { free(raw) }.unwrap();
        assert!(!last.is_complete(), "{way:?}");
        hold.open();
        last.wait().unwrap();
        drop(slices);
    }
}

fn row_8_26_safe_copies_of_a_slice_block_until_they_have_ended(env: &Env) {
    for &way in ways(env) {
        let queue = env.in_order_queue();
        let mut slice = queue.malloc_shared::<i32>(8).unwrap();
        let beside = Gate::new(&env.queue(), |_| {});
        let hold = Hold::new(env, way, &queue);
        let before = hold.event().clone();
        hold.open_later();
        slice.copy_from_slice(&queue, &iota(8)).unwrap();
        assert!(before.is_complete(), "{way:?}");
        // SAFETY: nothing writes the memory now.
        assert_eq!(unsafe { slice.as_slice() }.unwrap(), iota(8));
        let hold = Hold::new(env, way, &queue);
        let before = hold.event().clone();
        hold.open_later();
        assert_eq!(slice.to_vec(&queue).unwrap(), iota(8));
        assert!(before.is_complete() && !beside.event().is_complete(), "{way:?}");
    }
}

fn row_8_27_looking_at_a_slice_never_blocks(env: &Env) {
    for &way in ways(env) {
        let queue = env.in_order_queue();
        let mut slice = queue.malloc_shared::<i32>(8).unwrap();
        let hold = Hold::new(env, way, &queue);
        // SAFETY: no command uses the memory yet.
        unsafe { slice.as_mut_slice() }.unwrap().copy_from_slice(&iota(8));
        let pointer = slice.pointer();
        // SAFETY: the allocation is freed after this command, which only reads.
        let reader = queue.single_task(move |_| assert_eq!(unsafe { pointer.read(7) }, 7)).unwrap();
        // SAFETY: the pending command only reads.
        assert_eq!(unsafe { slice.as_slice() }.unwrap()[7], 7);
        assert!(!reader.is_complete(), "{way:?}");
        hold.open();
        reader.wait().unwrap();
    }
}

fn row_8_28_dropping_a_slice_never_blocks(env: &Env) {
    for &way in ways(env) {
        let queue = env.in_order_queue();
        let hold = Hold::new(env, way, &queue);
        let slice = queue.malloc_device::<i32>(8).unwrap();
        let pointer = slice.pointer();
        // SAFETY: the allocation is freed after this command.
        let user = queue.parallel_for(8, move |item| unsafe { pointer.write(item.index(), 1) }).unwrap();
        drop(slice);
        assert!(!user.is_complete(), "{way:?}");
        hold.open();
        user.wait().unwrap();
    }
}

fn row_8_29_observing_never_blocks(env: &Env) {
    // A run that is observed from outside goes on being observed.
    let is_free = |variable| std::env::var_os(variable).is_none();
    for &way in ways(env) {
        let queue = env.queue();
        let buffer = eight();
        let before = observe::counters();
        let hold = Hold::writing(env, way, &queue, &buffer);
        let path = std::env::temp_dir().join(format!("oxisycl-conformance-{}.json", std::process::id()));
        if is_free("OXISYCL_TRACE") {
            observe::start_trace(&path).unwrap();
        }
        if is_free("OXISYCL_GRAPH") {
            observe::start_graph().unwrap();
        }
        let last = update(&queue, &buffer, plus_one);
        assert!((observe::counters() - before).live_nodes() >= 2, "{way:?}");
        if is_free("OXISYCL_GRAPH") {
            assert!(observe::graph_dot().contains("digraph"));
            assert!(observe::stop_graph().contains("digraph"));
        }
        if is_free("OXISYCL_TRACE") {
            observe::stop_trace().unwrap();
            std::fs::remove_file(&path).unwrap();
        }
        assert!(!last.is_complete(), "{way:?}");
        hold.open();
        last.wait().unwrap();
    }
}
