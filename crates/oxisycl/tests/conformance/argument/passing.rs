//! Arguments beside closures: what may be passed, what the kernel gets, and what happens when one cannot be passed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use oxisycl::argument::{Bits, Copied, Decompose, Keep, KernelArg, Launch};
use oxisycl::group::{Fixed1, Local};
use oxisycl::operator::{Max, Sum};
use oxisycl::prelude::*;
use oxisycl::reduction::reduction;
use oxisycl::usm::UsmPointer;
use oxisycl::vector::Vector;

use crate::harness::{Env, tests};
use crate::support::{Gate, assert_held_back, code, counted};

tests![
    plain_data_crosses_bit_by_bit,
    buffers_are_passed_by_mode_and_range,
    saxpy_is_one_expression,
    memory_of_the_host_is_passed_by_value,
    texts_are_passed_by_value,
    usm_allocations_are_passed_by_reference,
    types_that_vouch_for_themselves_are_wrapped,
    values_live_until_the_command_has_ended,
    types_say_how_they_are_taken_apart,
    reconstructed_values_are_dropped_by_each_work_item,
    a_failing_argument_drops_all_and_enqueues_nothing,
    accesses_are_checked_as_those_of_the_group,
    groups_get_arguments,
    reductions_get_arguments,
    reductions_without_a_group_get_arguments,
    named_kernels_are_arguments,
    captures_come_before_arguments,
];

#[derive(Clone, Copy, DeviceCopyable, PartialEq, Debug)]
struct Weights {
    row: [f32; 3],
    bias: Option<f32>,
}

fn plain_data_crosses_bit_by_bit(env: &Env) {
    let result = Buffer::<f64, 1>::uninit(2).unwrap();
    let weights = Weights { row: [1.0, 2.0, 4.0], bias: Some(0.5) };
    let nest = ((1u8, -2i64), [3.0f32, 4.0], Some('x'), Id([5, 6]), Range([7]), (), true);
    let arguments = (nest, weights, Vector::from([8i32, 9]), result.with(Write.no_init()));
    let event = env.queue().parallel_for_with(2, arguments, |item, (nest, weights, vector, result)| {
        let ((a, b), c, d, e, f, (), g) = nest;
        let sum = f64::from(a) + b as f64 + f64::from(c[item.index()]) + f64::from(u32::from(d.unwrap_or('a')));
        let sum = sum + (e[0] * e[1] + f[0] + usize::from(g)) as f64 + f64::from(weights.row.iter().sum::<f32>());
        result.set(item, sum + f64::from(weights.bias.unwrap_or(0.0)) + f64::from(vector[1]));
    });
    event.unwrap();
    let expected = |c: f64| 1.0 - 2.0 + c + 120.0 + 30.0 + 7.0 + 1.0 + 7.0 + 0.5 + 9.0;
    assert_eq!(result.to_vec().unwrap(), [expected(3.0), expected(4.0)]);
}

fn buffers_are_passed_by_mode_and_range(env: &Env) {
    let queue = env.queue();
    let (a, b) = (Buffer::from_vec((0..8).collect()).unwrap(), Buffer::from_vec(vec![-1; 8]).unwrap());
    // From 2 of `a` to 4 of `b`.
    let arguments = (a.read().range(2, 3), b.write().range(4, 3));
    queue.parallel_for_with(3, arguments, |item, (a, b)| b.set(item, 10 * a.get(item))).unwrap();
    assert_eq!(b.to_vec().unwrap(), [-1, -1, -1, -1, 20, 30, 40, -1]);
    queue.parallel_for_with(4, b.update().chunks(2), |item, b| b.block(item).fill(item.index() as i32)).unwrap();
    assert_eq!(b.to_vec().unwrap(), [0, 0, 1, 1, 2, 2, 3, 3]);
    let bins = Buffer::from_vec(vec![0u32; 2]).unwrap();
    queue
        .parallel_for_with(100, bins.atomic(), |item, bins| {
            bins.fetch_add(item, item.index() % 2, 1);
        })
        .unwrap();
    assert_eq!(bins.to_vec().unwrap(), [50, 50]);
    // An accessor and a placeholder of the group.
    let placeholder = a.placeholder(Read);
    let event = queue.submit(|cg| {
        let b = cg.access(&b, ReadWrite);
        cg.parallel_for_with(8, (&placeholder, b), |item, (a, b)| b.update(item, |b| b + a.get(item)))
    });
    event.unwrap();
    assert_eq!(b.to_vec().unwrap(), [0, 1, 3, 4, 6, 7, 9, 10]);
}

fn saxpy_is_one_expression(env: &Env) {
    let x = Buffer::from_vec((0..100).map(|i| i as f32).collect()).unwrap();
    let y = Buffer::from_vec(vec![1.0f32; 100]).unwrap();
    let queue = env.queue();
    queue
        .parallel_for_with(100, (2.0f32, x.read(), y.update()), |item, (a, x, y)| {
            y.update(item, |y| a * x.get(item) + y)
        })
        .unwrap();
    assert_eq!(y.to_vec().unwrap(), (0..100).map(|i| 2.0 * i as f32 + 1.0).collect::<Vec<_>>());
}

fn memory_of_the_host_is_passed_by_value(env: &Env) {
    let (queue, result) = (env.queue(), Buffer::<u64, 1>::uninit(4).unwrap());
    let shared: Arc<[u64]> = Arc::from(vec![100, 200, 300, 400]);
    let one = Arc::new(7u64);
    let slices = (vec![1u64, 2, 3, 4], vec![10u64, 20, 30, 40].into_boxed_slice(), shared.clone(), Copied(&[5u64; 4]));
    let others = (Box::new([1000u64; 2]), one.clone(), Vec::<u64>::new());
    let arguments = (slices, others, result.with(Write.no_init()));
    let event = queue.parallel_for_with(4, arguments, |item, ((a, b, c, d), (e, f, none), result)| {
        let i = item.index();
        result.set(item, a[i] + b[i] + c[i] + d[i] + e[1] + *f + none.len() as u64);
    });
    event.unwrap().wait().unwrap();
    assert_eq!(result.to_vec().unwrap(), [1, 2, 3, 4].map(|i| 111 * i + 5 + 1000 + 7));
    // The command has given its shares back.
    assert_eq!((Arc::strong_count(&shared), Arc::strong_count(&one)), (1, 1));
}

fn texts_are_passed_by_value(env: &Env) {
    let counts = Buffer::from_vec(vec![0usize; 3]).unwrap();
    let texts = (String::from("häuser"), "am See".into(), Arc::<str>::from(""));
    let arguments: ((String, Box<str>, Arc<str>), _) = (texts, counts.write());
    let event = env.queue().single_task_with(arguments, |task, ((a, b, c), counts)| {
        counts.set_at(task, 0, a.chars().count());
        counts.set_at(task, 1, b.find(' ').unwrap_or(0));
        counts.set_at(task, 2, c.len());
    });
    event.unwrap();
    assert_eq!(counts.to_vec().unwrap(), [6, 2, 0]);
}

fn usm_allocations_are_passed_by_reference(env: &Env) {
    let queue = env.in_order_queue();
    let mut numbers = queue.malloc_device::<u32>(4).unwrap();
    numbers.copy_from_slice(&queue, &[1, 2, 3, 4]).unwrap();
    let event = queue.parallel_for_with(4, (&numbers, numbers.pointer(), 10u32), |item, (a, b, factor)| {
        let i = item.index();
        // SAFETY: each work-item uses its own element, of an allocation of the device.
        unsafe { a.write(i, factor * b.read(i)) };
    });
    event.unwrap().wait().unwrap();
    assert_eq!(numbers.to_vec(&queue).unwrap(), [10, 20, 30, 40]);
}

/// A type that implements the trait by hand.
#[derive(Clone, Copy)]
union Word {
    float: f32,
    bits: u32,
}
// SAFETY: both are plain data of the same size, without addresses.
unsafe impl DeviceCopyable for Word {}

fn types_that_vouch_for_themselves_are_wrapped(env: &Env) {
    let bits = Buffer::from_vec(vec![0u32; 2]).unwrap();
    let one = Bits(Word { float: 1.0 });
    let event =
        env.queue().parallel_for_with(2, (Bits(Word { float: -1.0 }), bits.write()), move |item, (word, bits)| {
            // SAFETY: any bits are a `u32`.
            bits.set(item, unsafe { if item.index() == 0 { one.0.bits } else { word.bits } });
        });
    event.unwrap();
    assert_eq!(bits.to_vec().unwrap(), [0x3f80_0000, 0xbf80_0000]);
}

/// Counts how often values are dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn values_live_until_the_command_has_ended(env: &Env) {
    let (queue, numbers) = (env.queue(), Buffer::from_vec(vec![0; 4]).unwrap());
    let drops = Arc::new(AtomicUsize::new(0));
    let gate = Gate::writing(&queue, &numbers);
    let arguments = (Keep(Counted(drops.clone())), [(); 2].map(|()| Keep(Counted(drops.clone()))), numbers.update());
    let event = queue.parallel_for_with(4, arguments, |item, ((), [(), ()], numbers)| numbers.update(item, |x| x + 1));
    let event = event.unwrap();
    assert_held_back(&event);
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    gate.open();
    event.wait().unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 3);
    assert_eq!(numbers.to_vec().unwrap(), [1; 4]);
}

/// A special type of the worked example (requirement S-D32): it is taken apart into two values, unless the first is too large.
#[derive(KernelArg)]
#[oxisycl(by_hand)]
struct Special {
    small: i32,
    other: i64,
    drops: Option<Counted>,
}

#[derive(Debug)]
struct TooLarge(i32);

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is more than 255", self.0)
    }
}
impl std::error::Error for TooLarge {}

impl Decompose for Special {
    type Parts = (i32, i64, Keep<Option<Counted>>);
    type Device<'k> = (i32, i64);
    type Error = TooLarge;
    fn deconstruct(self) -> Result<Self::Parts, TooLarge> {
        if self.small > 255 { Err(TooLarge(self.small)) } else { Ok((self.small, self.other, Keep(self.drops))) }
    }
    fn reconstruct<'k>(_: Launch<'k>, (small, other, ()): (i32, i64, ())) -> (i32, i64) {
        (small, other)
    }
}

fn types_say_how_they_are_taken_apart(env: &Env) {
    let numbers = Buffer::from_vec(vec![0; 3]).unwrap();
    let special = |small| Special { small, other: -1, drops: None };
    let arguments = (special(7), [special(1), special(2)], numbers.write());
    let event = env.queue().parallel_for_with(3, arguments, |item, ((a, b), [c, d], numbers)| {
        numbers.set(item, i64::from(a) + b + i64::from(c.0) + 10 * d.1)
    });
    event.unwrap();
    assert_eq!(numbers.to_vec().unwrap(), [7 - 1 + 1 - 10; 3]);
}

/// What a kernel gets for a counter: its destructor counts, through the atomic number at an address.
struct OnDevice(UsmPointer<u32>);

impl Drop for OnDevice {
    fn drop(&mut self) {
        // SAFETY: the allocation lives until the command has ended, and is accessed atomically until then. Its memory is that of `u32`.
        unsafe { AtomicU32::from_ptr(self.0.as_ptr()) }.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(KernelArg)]
#[oxisycl(by_hand)]
struct Counter(UsmPointer<u32>);

impl Decompose for Counter {
    type Parts = UsmPointer<u32>;
    type Device<'k> = OnDevice;
    type Error = std::convert::Infallible;
    fn deconstruct(self) -> Result<UsmPointer<u32>, Self::Error> {
        Ok(self.0)
    }
    fn reconstruct<'k>(_: Launch<'k>, pointer: UsmPointer<u32>) -> OnDevice {
        OnDevice(pointer)
    }
}

fn reconstructed_values_are_dropped_by_each_work_item(env: &Env) {
    let queue = env.in_order_queue();
    let mut count = queue.malloc_device::<u32>(1).unwrap();
    count.copy_from_slice(&queue, &[0]).unwrap();
    let counter = || Counter(count.pointer());
    let arguments = (counter(), [counter(), counter()]);
    let event = queue.parallel_for_with(100, arguments, |item, (first, rest)| {
        if item.index() % 2 == 0 {
            drop(rest);
            return;
        }
        // Kept to the end.
        let _first = first;
    });
    event.unwrap().wait().unwrap();
    assert_eq!(count.to_vec(&queue).unwrap(), [300]);
}

/// The arguments of a failing launch: six values, of which the one at `bad` cannot be passed.
type Nest = ((Special, [Special; 2]), Option<Special>, (Special, (Special,)));

fn nest(bad: usize, drops: &Arc<AtomicUsize>) -> Nest {
    let special = |position: usize| Special {
        small: if position == bad { 300 } else { 1 },
        other: 0,
        drops: Some(Counted(drops.clone())),
    };
    ((special(0), [special(1), special(2)]), Some(special(3)), (special(4), (special(5),)))
}

fn a_failing_argument_drops_all_and_enqueues_nothing(env: &Env) {
    let (queue, numbers) = (env.queue(), Buffer::from_vec(vec![5; 2]).unwrap());
    let paths = ["0.0", "0.1[0]", "0.1[1]", "1", "2.0", "2.1.0"];
    for (bad, path) in paths.into_iter().enumerate() {
        let drops = Arc::new(AtomicUsize::new(0));
        let line = line!() + 3;
        let (changed, error) = counted(|| {
            queue.submit(|cg| {
                cg.parallel_for_with(2, (numbers.write(), nest(bad, &drops)), |item, (numbers, _)| numbers.set(item, 0))
            })
        });
        let error = error.unwrap_err();
        assert_eq!((drops.load(Ordering::SeqCst), changed.nodes), (6, 0), "{path}");
        assert_eq!(error.code(), ErrorCode::KernelArgument);
        let message = error.to_string();
        let begin = format!("argument \"1.{path}\" of kernel \"");
        assert!(message.starts_with(&begin), "{message}");
        assert!(message.contains(&format!("(launched at {}:{line}:", file!())), "{message}");
        assert!(message.ends_with("300 is more than 255"), "{message}");
        let source = std::error::Error::source(&error).unwrap();
        assert_eq!(source.downcast_ref::<TooLarge>().unwrap().0, 300);
    }
    // The group fails even if its closure ignores the error.
    let drops = Arc::new(AtomicUsize::new(0));
    let submitted = queue.submit(|cg| {
        let _ = cg.parallel_for_with(2, nest(3, &drops), |_, _| {});
        Ok(())
    });
    assert_eq!(code(submitted), ErrorCode::KernelArgument);
    assert_eq!(numbers.to_vec().unwrap(), [5; 2]);
    // None of them fails.
    let drops = Arc::new(AtomicUsize::new(0));
    queue.parallel_for_with(2, nest(6, &drops), |_, _| {}).unwrap().wait().unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 6);
}

fn accesses_are_checked_as_those_of_the_group(env: &Env) {
    let (queue, numbers) = (env.queue(), Buffer::from_vec(vec![5; 4]).unwrap());
    let error = queue.parallel_for_with(2, (1, numbers.read().range(3, 2)), |_, _| {}).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
    assert!(error.to_string().contains("argument \"1\" of kernel"), "{error}");
    let error = queue.parallel_for_with(4, (numbers.read(), numbers.write()), |_, _| {}).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Accessor);
    assert!(error.to_string().contains("argument \"1\" of kernel"), "{error}");
    let error = queue.parallel_for_with(4, numbers.write().chunks(0), |_, _| {}).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
    assert!(error.to_string().contains("the argument of kernel"), "{error}");
    // Parts that do not overlap.
    let halves = (numbers.read().range(0, 2), numbers.write().range(2, 2));
    queue.parallel_for_with(2, halves, |item, (a, b)| b.set(item, a.get(item) + 1)).unwrap();
    assert_eq!(numbers.to_vec().unwrap(), [5, 5, 6, 6]);
    // A second command.
    let submitted = queue.submit(|cg| {
        cg.parallel_for_with(2, 1, |_, _| {})?;
        cg.parallel_for_with(2, 1, |_, _| {})
    });
    assert_eq!(code(submitted), ErrorCode::Invalid);
}

fn groups_get_arguments(env: &Env) {
    let (queue, numbers) = (env.queue(), Buffer::from_vec((0..64).collect::<Vec<u32>>()).unwrap());
    let sums = Buffer::from_vec(vec![0u32; 8]).unwrap();
    let event = queue.submit(|cg| {
        let (shape, tile) = (Fixed1::<16>, Local::<u32, 16>::new());
        let arguments = (numbers.update(), vec![100u32, 200, 300, 400]);
        cg.parallel_for_work_group_with(4, shape, tile, arguments, |mut group, mut tile, (numbers, bases)| {
            let base = bases[group.id()[0]];
            group.for_each(&mut tile, move |item, slot| *slot = numbers.get(item.global()));
            group.for_each(&tile, move |item, tile| {
                numbers.set(item.global(), base + tile[15 - item.local_linear_id()]);
            });
        })
    });
    event.unwrap();
    let expected: Vec<u32> = (0..64).map(|i| 100 * (i / 16 + 1) + 16 * (i / 16) + 15 - i % 16).collect();
    assert_eq!(numbers.to_vec().unwrap(), expected);
    let event = queue.submit(|cg| {
        let range = NdRange::new(Range::new([64]), Range::new([8]));
        let arguments = (numbers.read(), sums.atomic(), 2u32);
        cg.parallel_for_nd_range_with(range, (), arguments, |mut item, (), (numbers, sums, factor)| {
            let own = factor * numbers.get(item.global());
            let sum = item.group().reduce(own, Sum);
            if item.is_leader() {
                sums.store(item.global(), item.group_id(), sum);
            }
        })
    });
    event.unwrap();
    let expected: Vec<u32> = expected.chunks(8).map(|group| 2 * group.iter().sum::<u32>()).collect();
    assert_eq!(sums.to_vec().unwrap(), expected);
}

fn named_kernels_are_arguments(env: &Env) {
    /// What a kernel is made of.
    #[derive(Clone, Copy, DeviceCopyable)]
    struct Line {
        slope: f32,
        base: f32,
    }
    impl Line {
        fn run(self, item: Item<'_, 1>, x: Accessor<'_, f32, 1, ReadWrite>) {
            x.update(item, |x| self.slope * x + self.base);
        }
    }
    let x = Buffer::from_vec(vec![1.0f32, 2.0]).unwrap();
    let arguments = (Line { slope: 2.0, base: 1.0 }, x.update());
    env.queue().parallel_for_with(2, arguments, |item, (line, x)| line.run(item, x)).unwrap();
    assert_eq!(x.to_vec().unwrap(), [3.0, 5.0]);
}

fn captures_come_before_arguments(env: &Env) {
    let x = Buffer::from_vec(vec![1.0f64; 3]).unwrap();
    let (a, b) = (2u8, 0.5f64);
    let arguments = (x.update(), 3u16, [4u8; 3]);
    let event = env.queue().parallel_for_with(3, arguments, move |item, (x, c, d)| {
        x.update(item, |x| x + f64::from(a) + b + f64::from(c) + f64::from(d[item.index()]))
    });
    event.unwrap();
    assert_eq!(x.to_vec().unwrap(), [10.5; 3]);
}

fn reductions_get_arguments(env: &Env) {
    let n = 10_000;
    let x = Buffer::from_vec((0..n as u64).collect()).unwrap();
    let (sum, largest) = (Buffer::from_vec(vec![0u64]).unwrap(), Buffer::from_vec(vec![0u64]).unwrap());
    let event = env.queue().submit(|cg| {
        let into = (reduction(cg.access(&sum, Write), Sum), reduction(cg.access(&largest, Write), Max));
        let arguments = (x.read(), vec![1u64, 10], 3u64);
        cg.parallel_reduce_with(n, into, arguments, |item, (sum, largest), (x, weights, base)| {
            let value = base + x.get(item) * weights[item.index() % 2];
            *sum += value;
            largest.combine(value);
        })
    });
    event.unwrap();
    let value = |i: u64| 3 + i * if i.is_multiple_of(2) { 1 } else { 10 };
    assert_eq!(sum.to_vec().unwrap(), [(0..n as u64).map(value).sum::<u64>()]);
    assert_eq!(largest.to_vec().unwrap(), [(0..n as u64).map(value).max().unwrap()]);
}

fn reductions_without_a_group_get_arguments(env: &Env) {
    let queue = env.queue();
    let (n, m) = (200, 50);
    let (x, y) =
        (Buffer::from_vec_nd((0..(n * m) as u64).collect(), [n, m]).unwrap(), Buffer::from_vec(vec![0u32; m]).unwrap());
    let arguments = (x.read(), vec![1u64, 10], 3u64, y.write());
    let sum = queue.parallel_reduce_with([n, m], Sum, arguments, |item, sum, (x, weights, base, _)| {
        *sum += base + x.get(item) * weights[item.id()[1] % 2];
    });
    let value = |i: u64| 3 + i * if i.is_multiple_of(2) { 1 } else { 10 };
    let sum = sum.unwrap();
    assert_eq!(sum.get().unwrap(), (0..(n * m) as u64).map(value).sum::<u64>());
    // What it gives is a buffer for others, and of no ids the identity.
    let both = queue.parallel_reduce_with(1, Max, (sum.buffer().read(), 7u64), |item, most, (sum, other)| {
        most.combine(sum.get(item));
        most.combine(other);
    });
    assert_eq!(both.unwrap().get().unwrap(), sum.get().unwrap());
    let none = queue.parallel_reduce_with(0, Sum, x.read(), |_, sum, _| *sum += 1u64);
    assert_eq!(none.unwrap().get().unwrap(), 0);
    // Two uses of a buffer that do not go together: nothing runs.
    let refused = queue.parallel_reduce_with(1, Sum, (y.write(), y.read()), |_, sum, _| *sum += 1u64);
    assert_eq!(code(refused.map(drop)), ErrorCode::Accessor);
}
