//! Constants in constant memory.

use oxisycl::multi_ptr::{Constant, MultiPtr, space};
use oxisycl::prelude::*;

use crate::harness::{Env, tests};

tests![
    a_constant_has_its_values_at_any_index,
    constants_beyond_constant_memory_have_their_values,
    a_constant_is_read_through_references_and_pointers,
    constants_that_are_no_statics_have_their_values,
    an_index_beyond_a_constant_panics,
];

const fn squares<const N: usize>() -> [u32; N] {
    let mut squares = [0; N];
    let mut n = 0;
    while n < N {
        squares[n] = (n * n) as u32;
        n += 1;
    }
    squares
}

static SQUARES: Constant<[u32; 100]> = Constant::new(squares());

fn a_constant_has_its_values_at_any_index(env: &Env) {
    let found = Buffer::from_vec(vec![0u32; 1000]).unwrap();
    let kernel = |item: Item<1>, found: Accessor<u32, 1, Write>| found.set(item, SQUARES[item.index() * 7 % 100]);
    env.queue().parallel_for_with(1000, found.write(), kernel).unwrap();
    let expected: Vec<u32> = (0..1000).map(|i| (i * 7 % 100) * (i * 7 % 100)).collect();
    assert_eq!(found.to_vec().unwrap(), expected);
}

/// Each is 40 KiB.
static FIRST: Constant<[u32; 10240]> = Constant::new(squares());
static SECOND: Constant<[u32; 10240]> = Constant::new({
    let mut numbers = squares();
    numbers[0] = 5;
    numbers
});

fn constants_beyond_constant_memory_have_their_values(env: &Env) {
    let found = Buffer::from_vec(vec![0u32; 10240]).unwrap();
    let kernel = |item: Item<1>, found: Accessor<u32, 1, Write>| {
        let i = item.index() * 3 % 10240;
        found.set(item, FIRST[i].wrapping_sub(SECOND[10239 - i]));
    };
    env.queue().parallel_for_with(10240, found.write(), kernel).unwrap();
    let expected = (0..10240).map(|i| FIRST[i * 3 % 10240].wrapping_sub(SECOND[10239 - i * 3 % 10240]));
    assert_eq!(found.to_vec().unwrap(), expected.collect::<Vec<_>>());
}

/// Takes references to any memory.
#[inline(never)]
fn sum(numbers: &[u32]) -> u32 {
    numbers.iter().sum()
}

fn a_constant_is_read_through_references_and_pointers(env: &Env) {
    let found = Buffer::from_vec(vec![[0u32; 3]; 8]).unwrap();
    let kernel = |item: Item<1>, found: Accessor<[u32; 3], 1, Write>| {
        let i = item.index();
        let pointer: MultiPtr<u32, space::Constant> = SQUARES.multi_ptr().cast();
        // SAFETY: the constant has so many elements.
        let (read, referred) = unsafe { (pointer.add(i).read(), *pointer.wrapping_add(i + 1).as_ref()) };
        found.set(item, [read, referred, sum(&SQUARES[i..2 * i])]);
    };
    env.queue().parallel_for_with(8, found.write(), kernel).unwrap();
    let expected: Vec<_> = (0..8u32).map(|i| [i * i, (i + 1) * (i + 1), (i..2 * i).map(|n| n * n).sum()]).collect();
    assert_eq!(found.to_vec().unwrap(), expected);
}

fn constants_that_are_no_statics_have_their_values(env: &Env) {
    let found = Buffer::from_vec(vec![0u32; 8]).unwrap();
    let kernel = |item: Item<1>, found: Accessor<u32, 1, Write>| {
        let i = item.index();
        let own = Constant::new([i as u32, 1, 2, 3]);
        found.set(item, own[i % 4]);
    };
    env.queue().parallel_for_with(8, found.write(), kernel).unwrap();
    assert_eq!(found.to_vec().unwrap(), [0, 1, 2, 3, 4, 1, 2, 3]);
}

fn an_index_beyond_a_constant_panics(env: &Env) {
    let found = Buffer::from_vec(vec![0u32; 8]).unwrap();
    let kernel = |item: Item<1>, found: Accessor<u32, 1, Write>| found.set(item, SQUARES[93 + item.index()]);
    let event = env.queue().parallel_for_with(8, found.write(), kernel).unwrap();
    let error = event.wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Kernel, "{error}");
    assert!(error.to_string().contains("100"), "{error}");
}
