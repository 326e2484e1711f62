//! The worked example of the document on kernel parameters (S-D32): an `int`, a special type and an aggregate of an array of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use oxisycl::argument::{Decompose, Keep, Launch, list};
use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::counted;

tests![
    the_example_arrives_and_is_dropped_once,
    the_example_fails_as_a_whole;
    once: the_example_has_its_sequence_of_arguments,
];

/// The plain type of the example.
#[derive(Clone, Copy, DeviceCopyable)]
struct X {
    dm: i32,
}

/// Counts the destructors that run on the host.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// The type that is taken apart into an `int` and an `X`.
#[derive(KernelArg)]
#[oxisycl(by_hand)]
struct Special {
    a: i32,
    x: X,
    drops: Counted,
}

impl Decompose for Special {
    type Parts = (i32, X, Keep<Counted>);
    type Device<'k> = (i32, X);
    type Error = std::num::TryFromIntError;
    fn deconstruct(self) -> Result<Self::Parts, Self::Error> {
        u8::try_from(self.a)?;
        Ok((self.a, self.x, Keep(self.drops)))
    }
    fn reconstruct<'k>(_: Launch<'k>, (a, x, ()): (i32, X, ())) -> (i32, X) {
        (a, x)
    }
}

#[derive(KernelArg)]
struct Aggregate {
    sta: [Special; 2],
}

fn the_example_has_its_sequence_of_arguments() {
    let list = list::<(i32, Special, Aggregate)>();
    let paths: Vec<&str> = list.iter().map(|argument| argument.path.as_str()).collect();
    assert_eq!(paths, ["0", "1.0", "1.1", "2.sta[0].0", "2.sta[0].1", "2.sta[1].0", "2.sta[1].1"]);
    let types: Vec<&str> = list.iter().filter_map(|argument| argument.type_name.rsplit("::").next()).collect();
    assert_eq!(types, ["i32", "i32", "X", "i32", "X", "i32", "X"]);
    // All have the size of an `int`, and a place of their own.
    let mut offsets: Vec<usize> = list.iter().map(|argument| argument.offset).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, [0, 4, 8, 12, 16, 20, 24]);
    assert!(list.iter().all(|argument| argument.size == 4));
}

/// The arguments of the example; `a` is that of the last special value.
fn example(a: i32, drops: &Arc<AtomicUsize>) -> (i32, Special, Aggregate) {
    let special = |a, dm| Special { a, x: X { dm }, drops: Counted(drops.clone()) };
    (1, special(2, 3), Aggregate { sta: [special(4, 5), special(a, 7)] })
}

fn the_example_arrives_and_is_dropped_once(env: &Env) {
    let drops = Arc::default();
    let seen = Buffer::<[i32; 7], 1>::uninit(3).unwrap();
    // On a device, the first launch also compares the list of the image with that of the program.
    let arguments = (example(6, &drops), seen.with(Write.no_init()));
    let event = env.queue().parallel_for_with(3, arguments, |item, ((i, st, a), seen)| {
        let [first, second] = a.sta;
        seen.set(item, [i, st.0, st.1.dm, first.0, first.1.dm, second.0, second.1.dm]);
    });
    event.unwrap().wait().unwrap();
    assert_eq!(seen.to_vec().unwrap(), [[1, 2, 3, 4, 5, 6, 7]; 3]);
    assert_eq!(drops.load(Ordering::SeqCst), 3);
}

fn the_example_fails_as_a_whole(env: &Env) {
    let (queue, drops) = (env.queue(), Arc::default());
    let (changed, error) = counted(|| queue.parallel_for_with(1, example(300, &drops), |_, _| {}));
    let error = error.unwrap_err();
    assert_eq!((error.code(), changed.nodes), (ErrorCode::KernelArgument, 0));
    assert!(error.to_string().starts_with("argument \"2.sta[1]\" of kernel \""), "{error}");
    assert_eq!(drops.load(Ordering::SeqCst), 3);
}
