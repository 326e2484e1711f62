//! What algorithms over groups refuse, and what a work-item that panics means for them.

use std::time::Instant;

use oxisycl::group::{Fixed1, Local, LocalSlice, Private, Shares};
use oxisycl::operator::Sum;
use oxisycl::prelude::*;

use super::panics::LIMIT;
use crate::harness::{Env, tests};

tests![
    memory_of_algorithms_counts_as_local_memory,
    an_operator_that_panics_names_its_place,
    operators_of_scans_joint_forms_and_sub_groups_may_panic,
    a_work_item_that_panicked_decides_nothing,
    a_group_has_no_such_work_item,
];

fn memory_of_algorithms_counts_as_local_memory(env: &Env) {
    let all = env.device().info().local_mem_size as usize / 64 * 64;
    let launch = |bytes: usize| {
        env.queue().submit(|cg| {
            cg.name("full");
            let memory = (LocalSlice::<u8>::new(bytes), Private::new(1u64));
            cg.parallel_for_work_group(1, Fixed1::<64>, memory, move |mut group, (mut slice, own)| {
                let n = group.reduce(&own, Sum);
                group.for_each(Shares(&mut slice), move |_, share| share.for_each(|(_, b)| *b = n as u8));
            })
        })
    };
    launch(all / 2).unwrap().wait().unwrap();
    if env.device().image_targets().is_empty() {
        // Native code has the values in one place already.
        launch(all).unwrap().wait().unwrap();
        return;
    }
    let error = launch(all).unwrap_err();
    assert_eq!(error.code(), ErrorCode::MemoryAllocation);
    let text = error.to_string();
    // 64 values, and two for each of two blocks of 32 work-items.
    let bytes = ((64usize + 4) * 8).next_multiple_of(64);
    let expected =
        format!("local memory of {all} bytes for each work-group and {bytes} for its algorithms, the limit is ");
    assert!(text.contains("kernel \"full\"") && text.contains(&expected), "{text}");
}

fn an_operator_that_panics_names_its_place(env: &Env) {
    let event = env.queue().submit(|cg| {
        cg.parallel_for_work_group(2, Fixed1::<70>, Private::new(200u8), move |mut group, own| {
            let total = group.reduce(&own, too_much);
            group.for_each((), move |_, ()| assert!(total > 0));
        })
    });
    let error = event.unwrap().wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Kernel);
    let text = error.to_string();
    assert!(text.ends_with("200 and 200 are too much") && text.contains("group/deaths.rs:"), "{text}");
}

fn too_much(a: u8, b: u8) -> u8 {
    match a.checked_add(b) {
        Some(sum) => sum,
        None => panic!("{a} and {b} are too much"),
    }
}

fn operators_of_scans_joint_forms_and_sub_groups_may_panic(env: &Env) {
    const ITEMS: usize = 64;
    let scan = env.queue().submit(|cg| {
        cg.parallel_for_work_group(2, Fixed1::<ITEMS>, Private::new(200u8), move |mut group, mut own| {
            group.inclusive_scan(&mut own, too_much);
            group.for_each(&mut own, |_, own| *own = 0);
        })
    });
    let joint = env.queue().submit(|cg| {
        cg.parallel_for_work_group(2, Fixed1::<ITEMS>, Local::<u8, 100>::new(), move |mut group, mut tile| {
            group.for_each(Shares(&mut tile), |_, share| share.for_each(|(_, place)| *place = 200));
            let total = group.joint_reduce(&tile, 200, too_much);
            group.for_each((), move |_, ()| assert!(total > 0));
        })
    });
    let joint_scan = env.queue().submit(|cg| {
        let memory = (Local::<u8, 100>::new(), Local::<u8, 100>::new());
        cg.parallel_for_work_group(2, Fixed1::<ITEMS>, memory, move |mut group, (mut tile, mut sums)| {
            group.for_each(Shares(&mut tile), |_, share| share.for_each(|(_, place)| *place = 200));
            group.joint_inclusive_scan(&tile, &mut sums, too_much);
            group.for_each(&sums, |_, sums| assert!(sums[0] > 0));
        })
    });
    let sub_groups = env.queue().submit(|cg| {
        cg.parallel_for_work_group(2, Fixed1::<ITEMS>, Private::new(200u8), move |mut group, mut own| {
            group.sub_groups::<32>().reduce(&mut own, too_much);
            group.for_each(&mut own, |_, own| *own = 0);
        })
    });
    for (form, event) in [("scan", scan), ("joint", joint), ("joint scan", joint_scan), ("sub-groups", sub_groups)] {
        let error = event.unwrap().wait().unwrap_err();
        assert_eq!(error.code(), ErrorCode::Kernel, "{form}");
        let text = error.to_string();
        assert!(text.ends_with("200 and 200 are too much") && text.contains("group/deaths.rs:"), "{form}: {text}");
    }
}

fn a_work_item_that_panicked_decides_nothing(env: &Env) {
    let launch = |victim: usize, round: u32| {
        env.queue().submit(|cg| {
            let memory = (Private::new(10u32), Local::<u32, 96>::new());
            cg.parallel_for_work_group(2, Fixed1::<96>, memory, move |mut group, (mut left, mut tile)| {
                group.for_each(&mut tile, |_, slot| *slot = 1);
                let mut n = 0;
                while group.read(&tile, victim) != 0 {
                    group.for_each((&mut left, &mut tile), move |item, (left, slot)| {
                        assert!(item.local_linear_id() != victim || n != round, "round {n}");
                        *left -= 1;
                        *slot = *left;
                    });
                    n += 1;
                    // Without the value of the one that ended it goes down to zero, and must not be seen.
                    assert!(group.reduce(&left, Sum) > 0 || n == 10);
                }
            })
        })
    };
    // The driver compiles the kernel.
    launch(0, u32::MAX).unwrap().wait().unwrap();
    // Without the work-item's share the loop would never end: it is the one that counts down.
    for victim in [0usize, 17, 63, 64, 95] {
        for round in [0u32, 1, 5] {
            let start = Instant::now();
            let error = launch(victim, round).unwrap().wait().unwrap_err();
            let elapsed = start.elapsed();
            assert_eq!(error.code(), ErrorCode::Kernel);
            let text = error.to_string();
            assert!(text.ends_with(&format!("round {round}")), "{text}");
            assert!(elapsed < LIMIT, "{elapsed:?} until the panic of work-item {victim} in round {round} was known");
        }
    }
}

fn a_group_has_no_such_work_item(env: &Env) {
    let of_item = env.queue().submit(|cg| {
        cg.parallel_for_work_group(1, Fixed1::<8>, Private::new(1u32), |mut group, own| {
            group.broadcast(&own, 8);
        })
    });
    let text = of_item.unwrap().wait().unwrap_err().to_string();
    assert!(text.ends_with("work-item 8 of a group of 8") && text.contains("group/deaths.rs:"), "{text}");
    let of_element = env.queue().submit(|cg| {
        cg.parallel_for_work_group(1, Fixed1::<8>, Local::<u32, 9>::new(), |mut group, tile| {
            group.read(&tile, 9);
        })
    });
    let text = of_element.unwrap().wait().unwrap_err().to_string();
    assert!(text.ends_with("element 9 of local memory of 9 elements") && text.contains("group/deaths.rs:"), "{text}");
}
