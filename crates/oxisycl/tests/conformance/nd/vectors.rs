//! Algorithms over groups and sub-groups on work-items of nd-ranges whose values are vectors and arrays of numbers.

use oxisycl::prelude::*;
use oxisycl::vector::{Float3, Float4, MArray};

use crate::harness::{Env, tests};
use crate::model::{Several, check_several};

tests![
    vectors_of_work_items_are_combined_and_move,
    vectors_of_work_items_with_padding_are_combined_and_move,
    arrays_of_work_items_are_combined_and_move,
];

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
            let range = NdRange::new(Range::new([3 * size]), Range::new([size]));
            cg.parallel_for_nd_range(range, (), move |mut item, ()| {
                let own = input.get(item.global());
                let mut group = item.group();
                let results = [
                    group.broadcast(own, size - 1),
                    group.reduce(own, T::ordered),
                    group.inclusive_scan(own, T::ordered),
                    group.sub_group::<16>().shift_left(own, 3),
                ];
                output.set(item.global(), results);
            })
        });
        submitted.unwrap().wait().unwrap();
        check_several(&values, size, &output.to_vec().unwrap());
    }
}

fn vectors_of_work_items_are_combined_and_move(env: &Env) {
    algorithms::<Float4>(env);
}

fn vectors_of_work_items_with_padding_are_combined_and_move(env: &Env) {
    algorithms::<Float3>(env);
}

fn arrays_of_work_items_are_combined_and_move(env: &Env) {
    algorithms::<MArray<i32, 5>>(env);
}
