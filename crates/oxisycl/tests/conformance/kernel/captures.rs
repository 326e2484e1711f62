//! What kernels are and capture: closures, named types, functions, small, large and over-aligned values.

use oxisycl::prelude::*;
use oxisycl::usm::UsmPointer;
use oxisycl::{Loads, ModeFor, Result, SingleKernel, Stores};

use crate::harness::{Env, tests};
use crate::support::{code, counted, iota, update};

tests![
    plain_values_are_captured,
    structs_with_the_derive_are_captured,
    captures_of_more_than_128_bytes_arrive_whole,
    captures_of_the_largest_size_arrive_whole,
    captures_beyond_the_limit_are_refused,
    over_aligned_captures_keep_their_alignment,
    a_kernel_may_capture_nothing,
    captures_are_taken_at_submission,
    kernels_are_named_types,
    kernels_are_generic_named_types,
    single_tasks_are_named_types,
    kernels_are_generic_functions,
    kernels_are_function_items,
    kernels_call_functions_and_closures,
    kernels_come_from_functions_that_return_closures,
    kernels_return_early,
    kernels_use_the_language,
    kernels_use_pointers_to_usm,
    one_closure_is_launched_many_times,
    shortcuts_of_the_queue_run_kernels,
];

fn plain_values_are_captured(env: &Env) {
    let buffer = Buffer::<f64, 1>::uninit(3).unwrap();
    let (a, b, c, d, e) = (3u8, -7i64, 0.5f32, true, 'x');
    let (array, tuple, option) = ([1u16, 2, 3], (4i8, 5u32), Some(6usize));
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, Write);
        cg.parallel_for(3, move |item| {
            let sum = f64::from(a) + b as f64 + f64::from(c) + f64::from(u8::from(d)) + f64::from(u32::from(e));
            let rest = f64::from(array[item.index()]) + f64::from(tuple.0) + f64::from(tuple.1);
            data.set(item, sum + rest + option.unwrap_or(0) as f64);
        })
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [1.0, 2.0, 3.0].map(|x| 3.0 - 7.0 + 0.5 + 1.0 + 120.0 + x + 9.0 + 6.0));
}

#[derive(Clone, Copy, DeviceCopyable)]
struct Weights {
    rows: [[f32; 3]; 2],
    shape: Shape,
    bias: Option<f32>,
}

#[derive(Clone, Copy, DeviceCopyable)]
enum Shape {
    Linear,
    Power { exponent: i32 },
}

fn structs_with_the_derive_are_captured(env: &Env) {
    let buffer = Buffer::<f32, 2>::uninit([2, 3]).unwrap();
    for (shape, bias, expected) in [
        (Shape::Linear, None, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        (Shape::Power { exponent: 2 }, Some(0.5), [1.5, 4.5, 9.5, 16.5, 25.5, 36.5]),
    ] {
        let weights = Weights { rows: [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], shape, bias };
        let kernel = env.queue().submit(|cg| {
            let data = cg.access(&buffer, Write);
            cg.parallel_for([2, 3], move |item| {
                let value = weights.rows[item.get(0)][item.get(1)];
                let value = match weights.shape {
                    Shape::Linear => value,
                    Shape::Power { exponent } => (0..exponent - 1).fold(value, |power, _| power * value),
                };
                data.set(item, value + weights.bias.unwrap_or(0.0));
            })
        });
        kernel.unwrap();
        assert_eq!(buffer.to_vec().unwrap(), expected);
    }
}

/// Captures an array of `N` bytes and reads all of it.
fn check_capture<const N: usize>(env: &Env) -> Result {
    let bytes: [u8; N] = std::array::from_fn(|i| (i * 7 + i / 256) as u8);
    let buffer = Buffer::<u8, 1>::uninit(N)?;
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, Write);
        cg.parallel_for(N, move |item| data.set(item, bytes[item.index()]))
    });
    kernel?;
    assert_eq!(buffer.to_vec()?, bytes);
    Ok(())
}

fn captures_of_more_than_128_bytes_arrive_whole(env: &Env) {
    check_capture::<64>(env).unwrap();
    check_capture::<96>(env).unwrap();
    check_capture::<128>(env).unwrap();
    check_capture::<129>(env).unwrap();
    check_capture::<1000>(env).unwrap();
}

fn captures_of_the_largest_size_arrive_whole(env: &Env) {
    // The least limit that SYCL allows, less the accessor; and what this device offers, if it is more than that.
    check_capture::<900>(env).unwrap();
    if env.device().info().max_parameter_size >= 4096 {
        check_capture::<4000>(env).unwrap();
    }
}

fn captures_beyond_the_limit_are_refused(env: &Env) {
    const SIZE: usize = 100_000;
    if env.device().info().max_parameter_size >= SIZE {
        env.skip("the device's limit is higher");
    }
    let bytes = [1u8; SIZE];
    let buffer = Buffer::from_vec(iota(1)).unwrap();
    let (since, result) = counted(|| {
        env.queue().submit(|cg| {
            let data = cg.access(&buffer, Write);
            cg.parallel_for(1, move |item| data.set(item, i32::from(bytes[item.index()])))
        })
    });
    let error = result.unwrap_err();
    assert_eq!((error.code(), since.nodes), (ErrorCode::KernelArgument, 0));
    assert!(error.to_string().contains("captures_beyond_the_limit_are_refused"), "{error}");
}

#[derive(Clone, Copy, DeviceCopyable)]
#[repr(align(256))]
struct Wide([u8; 16]);

fn over_aligned_captures_keep_their_alignment(env: &Env) {
    let wide = Wide(std::array::from_fn(|i| i as u8));
    let small = 3u8;
    let seen = Buffer::<[u64; 2], 1>::uninit(100).unwrap();
    let kernel = env.queue().submit(|cg| {
        let seen = cg.access(&seen, Write);
        cg.parallel_for(100, move |item| {
            let address = std::hint::black_box(&wide) as *const Wide as u64;
            let sum = wide.0.iter().map(|&byte| u64::from(byte)).sum::<u64>() + u64::from(small);
            seen.set(item, [address % 256, sum]);
        })
    });
    kernel.unwrap();
    assert_eq!(seen.to_vec().unwrap(), [[0, 123]; 100]);
}

/// Such kernels panicked in a work-item that there is not: the quirk `signed-bounds` of the book's table.
fn a_kernel_may_capture_nothing(env: &Env) {
    let (since, ()) = counted(|| {
        env.queue().parallel_for(100, |_| {}).unwrap().wait().unwrap();
        env.queue().single_task(|_| {}).unwrap().wait().unwrap();
    });
    assert_eq!(since.kernels, 2);
}

fn captures_are_taken_at_submission(env: &Env) {
    let queue = env.queue();
    let buffers: Vec<Buffer<i32, 1>> = (0..10).map(|_| Buffer::uninit(4).unwrap()).collect();
    let gate = crate::support::Gate::new(&queue, |_| {});
    let mut value = 0;
    for buffer in &buffers {
        value += 10;
        let kernel = queue.submit(|cg| {
            cg.depends_on(gate.event());
            let data = cg.access(buffer, Write);
            cg.parallel_for(4, move |item| data.set(item, value))
        });
        kernel.unwrap();
    }
    gate.open();
    for (i, buffer) in buffers.iter().enumerate() {
        assert_eq!(buffer.to_vec().unwrap(), [10 * (i as i32 + 1); 4]);
    }
}

#[derive(Clone, Copy)]
struct AddTo<'cg> {
    data: Accessor<'cg, i32, 2, ReadWrite>,
    amount: i32,
}

impl<'cg, 'wi> Kernel<Item<'wi, 2>> for AddTo<'cg> {
    fn run(&self, item: Item<'wi, 2>) {
        self.data.update(item, |x| x + self.amount);
    }
}

fn kernels_are_named_types(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(6), [2, 3]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.launch([2, 3], AddTo { data, amount: 40 })
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [40, 41, 42, 43, 44, 45]);
}

#[derive(Clone, Copy)]
struct Axpy<'cg, T: DeviceCopyable, M> {
    factor: T,
    x: Accessor<'cg, T, 1, Read>,
    y: Accessor<'cg, T, 1, M>,
}

impl<'cg, 'wi, T, M> Kernel<Item<'wi, 1>> for Axpy<'cg, T, M>
where
    T: DeviceCopyable + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
    M: Loads + Stores,
{
    fn run(&self, item: Item<'wi, 1>) {
        self.y.update(item, |y| self.factor * self.x.get(item) + y);
    }
}

fn axpy<T, M>(queue: &Queue, factor: T, x: &Buffer<T, 1>, y: &Buffer<T, 1>, mode: M) -> Result<Event>
where
    T: DeviceCopyable + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
    M: ModeFor<T> + Loads + Stores,
{
    queue.submit(|cg| {
        let (x, y) = (cg.access(x, Read), cg.access(y, mode));
        cg.launch(x.range(), Axpy { factor, x, y })
    })
}

fn kernels_are_generic_named_types(env: &Env) {
    let [x, y] = [1.0f32, 100.0].map(|start| Buffer::from_vec(vec![start; 5]).unwrap());
    axpy(&env.queue(), 2.5, &x, &y, ReadWrite).unwrap();
    assert_eq!(y.to_vec().unwrap(), [102.5; 5]);
    let [x, y] = [7i64, -1].map(|start| Buffer::from_vec(vec![start; 5]).unwrap());
    axpy(&env.queue(), 3, &x, &y, ReadWrite).unwrap();
    assert_eq!(y.to_vec().unwrap(), [20; 5]);
}

#[derive(Clone, Copy)]
struct Sum<'cg> {
    from: Accessor<'cg, i32, 1, Read>,
    to: Accessor<'cg, i32, 1, Write>,
}

impl SingleKernel for Sum<'_> {
    fn run(&self, task: Single<'_>) {
        self.to.set_at(task, 0, self.from.view(task).iter().sum());
    }
}

fn single_tasks_are_named_types(env: &Env) {
    let buffer = Buffer::from_vec(iota(101)).unwrap();
    let sum = Buffer::<i32, 1>::uninit(1).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (from, to) = (cg.access(&buffer, Read), cg.access(&sum, Write));
        cg.launch_single(Sum { from, to })
    });
    kernel.unwrap();
    assert_eq!(sum.to_vec().unwrap(), [5050]);
}

fn convert<T: DeviceCopyable, U: DeviceCopyable + From<T>, const D: usize>(
    queue: &Queue,
    from: &Buffer<T, D>,
    to: &Buffer<U, D>,
) -> Result<Event> {
    queue.submit(|cg| {
        let (from, to) = (cg.access(from, Read), cg.access(to, Write));
        cg.parallel_for(from.range(), move |item| to.set(item, U::from(from.get(item))))
    })
}

fn kernels_are_generic_functions(env: &Env) {
    let bytes = Buffer::from_vec_nd((0..6u8).collect::<Vec<_>>(), [2, 3]).unwrap();
    let floats = Buffer::<f32, 2>::uninit([2, 3]).unwrap();
    let doubles = Buffer::<f64, 2>::uninit([2, 3]).unwrap();
    convert(&env.queue(), &bytes, &floats).unwrap();
    convert(&env.queue(), &floats, &doubles).unwrap();
    assert_eq!(doubles.to_vec().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
}

fn triple(x: i32) -> i32 {
    x * 3
}

fn nothing_to_do(_: Item<'_, 1>) {}

fn nothing_alone(_: oxisycl::Single<'_>) {}

/// A function by its name, as the kernel and as its capture.
fn kernels_are_function_items(env: &Env) {
    let queue = env.queue();
    queue.parallel_for(4, nothing_to_do).unwrap().wait().unwrap();
    queue.single_task(nothing_alone).unwrap().wait().unwrap();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    update(&queue, &buffer, i32::wrapping_neg);
    assert_eq!(buffer.to_vec().unwrap(), [0, -1, -2, -3]);
}

fn kernels_call_functions_and_closures(env: &Env) {
    let buffer = Buffer::from_vec(iota(5)).unwrap();
    let offset = 100;
    let shift = move |x: i32| x + offset;
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(5, move |item| {
            data.update(item, triple);
            data.update(item, shift);
        })
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [100, 103, 106, 109, 112]);
}

fn make_kernel<'cg>(
    data: Accessor<'cg, i32, 1, ReadWrite>,
    amount: i32,
) -> impl for<'wi> Fn(Item<'wi, 1>) + Copy + Send + Sync + 'cg {
    move |item: Item<'_, 1>| data.update(item, |x| x - amount)
}

fn kernels_come_from_functions_that_return_closures(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(4, make_kernel(data, 10))
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [-10, -9, -8, -7]);
}

fn kernels_return_early(env: &Env) {
    let buffer = Buffer::from_vec(iota(1000)).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(1000, move |item| {
            if item.index() % 3 == 0 {
                return;
            }
            if data.get(item) > 500 {
                data.set(item, -1);
                return;
            }
            data.update(item, |x| x * 2);
        })
    });
    kernel.unwrap();
    let expected = (0..1000).map(|i| match i {
        i if i % 3 == 0 => i,
        501.. => -1,
        i => i * 2,
    });
    assert_eq!(buffer.to_vec().unwrap(), expected.collect::<Vec<i32>>());
}

fn kernels_use_the_language(env: &Env) {
    let text = Buffer::from_vec_nd(b"12 -7 x 5 +40  9".to_vec(), 16).unwrap();
    let results = Buffer::<i32, 1>::uninit(4).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (text, results) = (cg.access(&text, Read), cg.access(&results, Write));
        cg.parallel_for(4, move |item| {
            let text = text.view(item).as_slice();
            let numbers = text
                .split(u8::is_ascii_whitespace)
                .filter(|word| !word.is_empty())
                .filter_map(|word| std::str::from_utf8(word).ok()?.parse::<i32>().ok());
            let result = match item.index() {
                0 => numbers.sum(),
                1 => numbers.max().unwrap_or(i32::MIN),
                2 => numbers.clone().zip(numbers.skip(1)).map(|(a, b)| (a - b).abs()).fold(0, i32::max),
                _ => {
                    let mut sorted = [i32::MAX; 8];
                    for (slot, number) in sorted.iter_mut().zip(numbers) {
                        *slot = number;
                    }
                    sorted.sort_unstable();
                    sorted.binary_search(&9).map_or(-1, |at| at as i32)
                }
            };
            results.set(item, result);
        })
    });
    kernel.unwrap();
    assert_eq!(results.to_vec().unwrap(), [59, 40, 35, 2]);
}

fn kernels_use_pointers_to_usm(env: &Env) {
    let queue = env.queue();
    let slice = queue.malloc_device::<i32>(10).unwrap();
    let pointers: [UsmPointer<i32>; 2] = [slice.pointer(), UsmPointer::new(slice.as_ptr().wrapping_add(5))];
    let kernel = queue.parallel_for([2, 5], move |item| {
        let [y, x] = item.id().0;
        // SAFETY: each work-item writes its own element of the allocation, which lives to the end of the test.
        unsafe { pointers[y].write(x, item.linear_id() as i32 * 11) }
    });
    kernel.unwrap().wait().unwrap();
    assert_eq!(slice.to_vec(&queue).unwrap(), iota(10).iter().map(|x| x * 11).collect::<Vec<_>>());
}

fn one_closure_is_launched_many_times(env: &Env) {
    let queue = env.queue();
    let buffers: [Buffer<i32, 1>; 3] = std::array::from_fn(|i| Buffer::from_vec(vec![i as i32; 4]).unwrap());
    for round in 0..20 {
        for buffer in &buffers {
            crate::support::update(&queue, buffer, move |x| x + round);
        }
    }
    for (i, buffer) in buffers.iter().enumerate() {
        assert_eq!(buffer.to_vec().unwrap(), [190 + i as i32; 4]);
    }
}

fn shortcuts_of_the_queue_run_kernels(env: &Env) {
    let queue = env.queue();
    let slice = queue.malloc_device::<i32>(6).unwrap();
    let pointer = slice.pointer();
    // SAFETY: each work-item writes its own element, and the second kernel is submitted after the first has ended.
    let first = queue.parallel_for([2, 3], move |item| unsafe { pointer.write(item.linear_id(), 5) });
    first.unwrap().wait().unwrap();
    // SAFETY: as above.
    queue.single_task(move |_| unsafe { pointer.write(3, pointer.read(2) + 1) }).unwrap().wait().unwrap();
    assert_eq!(slice.to_vec(&queue).unwrap(), [5, 5, 5, 6, 5, 5]);
    assert_eq!(code(queue.parallel_for([usize::MAX, 2], |_| {})), ErrorCode::NdRange);
}
