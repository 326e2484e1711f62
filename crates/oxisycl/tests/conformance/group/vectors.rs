//! Algorithms over groups and sub-groups whose values are vectors and arrays of numbers.

use oxisycl::group::Private;
use oxisycl::prelude::*;
use oxisycl::vector::{Float3, Float4, MArray};

use crate::harness::{Env, tests};
use crate::model::{Several, check_several};

tests![vectors_are_combined_and_move, vectors_with_padding_are_combined_and_move, arrays_are_combined_and_move];

/// Runs four algorithms. What comes before all of them is no result of any.
#[track_caller]
fn algorithms<T: Several>(env: &Env) {
    for size in [1, 33, 256] {
        let values: Vec<T> = (0..3 * size).map(T::at).collect();
        let input = Buffer::from_vec(values.clone()).unwrap();
        let none = T::at(usize::from(u16::MAX));
        let output = Buffer::from_vec(vec![[none; 4]; 3 * size]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            let memory = (Private::new(none), Private::new(none));
            cg.parallel_for_work_group(3, Range::new([size]), memory, move |mut group, (mut scanned, mut shifted)| {
                group.for_each((&mut scanned, &mut shifted), move |item, (scanned, shifted)| {
                    *scanned = input.get(item.global());
                    *shifted = *scanned;
                });
                let of_all = [group.broadcast(&scanned, size - 1), group.reduce(&scanned, T::ordered)];
                group.inclusive_scan(&mut scanned, T::ordered);
                group.sub_groups::<16>().shift_left(&mut shifted, 3);
                group.for_each((&scanned, &shifted), move |item, (scanned, shifted)| {
                    output.set(item.global(), [of_all[0], of_all[1], *scanned, *shifted]);
                });
            })
        });
        submitted.unwrap().wait().unwrap();
        check_several(&values, size, &output.to_vec().unwrap());
    }
}

fn vectors_are_combined_and_move(env: &Env) {
    algorithms::<Float4>(env);
}

fn vectors_with_padding_are_combined_and_move(env: &Env) {
    algorithms::<Float3>(env);
}

fn arrays_are_combined_and_move(env: &Env) {
    algorithms::<MArray<i32, 5>>(env);
}
