//! Argument blocks of all sizes: what a launch passes by value, and what it passes by the address of a copy.

use oxisycl::prelude::*;
use oxisycl::usm::UsmPointer;

use crate::harness::{Env, tests};
use crate::support::counted;

tests![
    blocks_arrive_whole_at_each_size,
    blocks_of_odd_sizes_arrive_whole_either_side_of_each_limit,
    a_block_of_one_byte_more_than_the_limit_is_refused,
    a_block_beyond_the_limit_names_its_largest_argument,
    large_blocks_keep_their_alignment,
    accessors_in_a_large_block_reach_their_buffers,
    launches_in_flight_have_blocks_of_their_own,
    large_blocks_serve_groups_and_single_tasks,
];

/// What an accessor of a kernel takes of the block.
const ACCESSOR: usize = 32;

/// Captures as many bytes as make a block of `SIZE`, with the accessor, and reads all of them.
fn check<const N: usize>(env: &Env, size: usize) {
    assert_eq!((N + ACCESSOR).next_multiple_of(8), size);
    let bytes: [u8; N] = std::array::from_fn(|i| (i * 7 + i / 256) as u8);
    let found = Buffer::<u8, 1>::uninit(N).unwrap();
    let submitted = env.queue().submit(|cg| {
        let found = cg.access(&found, Write);
        cg.parallel_for(N, move |item| found.set(item, bytes[item.index()]))
    });
    submitted.unwrap();
    assert!(found.to_vec().unwrap() == bytes, "{size}");
}

fn blocks_arrive_whole_at_each_size(env: &Env) {
    env.queue().single_task(|_| ()).unwrap().wait().unwrap();
    check::<1>(env, 40);
    // Either side of what all OpenCL drivers take by value.
    check::<888>(env, 920);
    check::<889>(env, 928);
    // Either side of what all of NVIDIA's take.
    check::<3960>(env, 3992);
    check::<3961>(env, 4000);
    check::<{ (32 << 10) - ACCESSOR }>(env, 32 << 10);
    check::<{ (64 << 10) - ACCESSOR }>(env, 64 << 10);
}

/// Bytes and an address with no room between them, so that a block of them has any size. One with an accessor is a multiple of eight.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Packed<const N: usize> {
    bytes: [u8; N],
    result: UsmPointer<u8>,
}

/// A kernel whose block has `N` bytes and those of an address. Each work-item writes one of the bytes.
fn writes<const N: usize>(bytes: [u8; N], result: UsmPointer<u8>) -> impl Fn(Item<'_, 1>) + Copy + Send + Sync {
    let packed = Packed { bytes, result };
    move |item| {
        let (index, result) = (item.index(), packed.result);
        // SAFETY: the allocation has a byte for each work-item, and outlives the launch.
        unsafe { result.write(index, packed.bytes[index]) }
    }
}

/// Size and alignment of a kernel's block.
fn block_of<K>(kernel: &K) -> [usize; 2] {
    [size_of_val(kernel), align_of_val(kernel)]
}

/// Passes a block of exactly `size` bytes, and reads all but its address.
fn check_exactly<const N: usize>(env: &Env, size: usize) {
    let queue = env.queue();
    let bytes: [u8; N] = std::array::from_fn(|i| (i * 11 + i / 256 + 1) as u8);
    let found = queue.malloc_device::<u8>(N).unwrap();
    let kernel = writes(bytes, found.pointer());
    assert_eq!(block_of(&kernel), [size, 1]);
    queue.parallel_for(N, kernel).unwrap().wait().unwrap();
    assert!(found.to_vec(&queue).unwrap() == bytes, "{size}");
}

/// What the address of a packed block takes.
const ADDRESS: usize = size_of::<UsmPointer<u8>>();

fn blocks_of_odd_sizes_arrive_whole_either_side_of_each_limit(env: &Env) {
    // An empty block: the only trace of the kernel is its panic.
    let kernel = |item: Item<'_, 1>| assert!(item.index() < 4, "the fifth of them");
    assert_eq!(block_of(&kernel), [0, 1]);
    env.queue().parallel_for(4, kernel).unwrap().wait().unwrap();
    let error = env.queue().parallel_for(5, kernel).unwrap().wait().unwrap_err();
    assert!(error.to_string().contains("the fifth of them"), "{error}");
    // A block of one byte.
    let limit = 4u8;
    let kernel = move |item: Item<'_, 1>| assert!(item.index() < usize::from(limit), "beyond {limit}");
    assert_eq!(block_of(&kernel), [1, 1]);
    env.queue().parallel_for(4, kernel).unwrap().wait().unwrap();
    let error = env.queue().parallel_for(5, kernel).unwrap().wait().unwrap_err();
    assert!(error.to_string().contains("beyond 4"), "{error}");
    // The launch takes 104 of the 1024 bytes of OpenCL, and of the 4096 of NVIDIA.
    check_exactly::<{ 919 - ADDRESS }>(env, 919);
    check_exactly::<{ 920 - ADDRESS }>(env, 920);
    check_exactly::<{ 921 - ADDRESS }>(env, 921);
    check_exactly::<{ 922 - ADDRESS }>(env, 922);
    check_exactly::<{ 3991 - ADDRESS }>(env, 3991);
    check_exactly::<{ 3992 - ADDRESS }>(env, 3992);
    check_exactly::<{ 3993 - ADDRESS }>(env, 3993);
    check_exactly::<{ 3994 - ADDRESS }>(env, 3994);
    check_exactly::<{ 4000 - ADDRESS }>(env, 4000);
    check_exactly::<{ (64 << 10) - ADDRESS }>(env, 64 << 10);
}

fn a_block_of_one_byte_more_than_the_limit_is_refused(env: &Env) {
    const N: usize = (64 << 10) + 1 - ADDRESS;
    let queue = env.queue();
    let found = queue.malloc_device::<u8>(N).unwrap();
    let kernel = writes([1; N], found.pointer());
    assert_eq!(block_of(&kernel), [env.device().info().max_parameter_size + 1, 1]);
    let (since, result) = counted(|| queue.parallel_for(N, kernel));
    let error = result.unwrap_err();
    assert_eq!((error.code(), since.nodes), (ErrorCode::KernelArgument, 0));
    let text = error.to_string();
    let sizes = "its captures are 65537 bytes, the limit is 65536; pass large data in a buffer, or as an `Arc`";
    for part in ["writes", env.device().name(), sizes] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

fn a_block_beyond_the_limit_names_its_largest_argument(env: &Env) {
    const SIZE: usize = 64 << 10;
    assert_eq!(env.device().info().max_parameter_size, SIZE);
    let table = [[1u64; 128]; 64];
    let found = Buffer::from_vec(vec![0u64]).unwrap();
    let (since, result) = counted(|| {
        env.queue().parallel_for_with(1, (7u8, table, found.write()), |item, (number, table, found)| {
            found.set(item, u64::from(number) + table[item.index()][0])
        })
    });
    let error = result.unwrap_err();
    assert_eq!((error.code(), since.nodes), (ErrorCode::KernelArgument, 0));
    let text = error.to_string();
    let parts = ["the limit is 65536", "its largest argument is \"1\"", "pass large data in a buffer, or as an `Arc`"];
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[derive(Clone, Copy, DeviceCopyable)]
#[repr(align(64))]
struct Wide([u32; 1600]);

fn large_blocks_keep_their_alignment(env: &Env) {
    let wide = Wide(std::array::from_fn(|i| i as u32));
    let found = Buffer::<[u64; 2], 1>::uninit(1600).unwrap();
    let submitted = env.queue().submit(|cg| {
        let found = cg.access(&found, Write);
        cg.parallel_for(1600, move |item| {
            let address = std::hint::black_box(&wide) as *const Wide as u64;
            found.set(item, [address % 64, u64::from(wide.0[item.index()])]);
        })
    });
    submitted.unwrap();
    let expected: Vec<_> = (0..1600).map(|i| [0, i]).collect();
    assert_eq!(found.to_vec().unwrap(), expected);
}

fn accessors_in_a_large_block_reach_their_buffers(env: &Env) {
    let inputs: Vec<_> = (0..4u32).map(|i| Buffer::from_vec(vec![i + 1; 300]).unwrap()).collect();
    let output = Buffer::from_vec(vec![0u32; 300]).unwrap();
    let weights: [u32; 1250] = std::array::from_fn(|i| i as u32);
    let arguments =
        (weights, [inputs[0].read(), inputs[1].read(), inputs[2].read(), inputs[3].read()], output.update());
    let event = env.queue().parallel_for_with(300, arguments, |item, (weights, inputs, output)| {
        for (i, input) in inputs.into_iter().enumerate() {
            output.update(item, |sum| sum + input.get(item) * weights[item.index() * 4 + i]);
        }
    });
    event.unwrap();
    let expected: Vec<u32> = (0..300).map(|i| (0..4).map(|k| (k + 1) * (4 * i + k)).sum()).collect();
    assert_eq!(output.to_vec().unwrap(), expected);
}

fn launches_in_flight_have_blocks_of_their_own(env: &Env) {
    const LAUNCHES: usize = 250;
    let queues: Vec<_> = (0..4).map(|_| env.queue()).collect();
    let sums: Vec<_> = (0..4).map(|_| Buffer::from_vec(vec![0u64; 1500]).unwrap()).collect();
    for launch in 0..LAUNCHES {
        for (number, (queue, sums)) in queues.iter().zip(&sums).enumerate() {
            let block: [u32; 1500] = std::array::from_fn(|i| (launch * 4 + number + i) as u32);
            let kernel = move |item: Item<1>, (block, sums): ([u32; 1500], Accessor<u64, 1, ReadWrite>)| {
                sums.update(item, |sum| sum.wrapping_mul(3).wrapping_add(u64::from(block[item.index()])));
            };
            queue.parallel_for_with(1500, (block, sums.update()), kernel).unwrap();
        }
    }
    for (number, sums) in sums.iter().enumerate() {
        let sum = |i: usize| {
            (0..LAUNCHES).fold(0u64, |sum, launch| sum.wrapping_mul(3).wrapping_add((launch * 4 + number + i) as u64))
        };
        assert_eq!(sums.to_vec().unwrap(), (0..1500).map(sum).collect::<Vec<_>>(), "{number}");
    }
}

fn large_blocks_serve_groups_and_single_tasks(env: &Env) {
    let table: [u32; 1100] = std::array::from_fn(|i| (i * i) as u32);
    let found = Buffer::from_vec(vec![0u32; 256]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let found = cg.access(&found, ReadWrite);
        let (shape, tile) = (oxisycl::group::Fixed1::<64>, oxisycl::group::Local::<u32, 64>::new());
        cg.parallel_for_work_group(4, shape, tile, move |mut group, mut tile| {
            group.for_each(&mut tile, move |item, own| *own = table[4 * item.global().index()]);
            group.for_each(&tile, move |item, tile| found.set(item.global(), tile[63 - item.local_linear_id()]));
        })
    });
    submitted.unwrap();
    let expected: Vec<u32> = (0..256u32).map(|i| (4 * (i / 64 * 64 + 63 - i % 64)).pow(2)).collect();
    assert_eq!(found.to_vec().unwrap(), expected);
    let sum = Buffer::from_vec(vec![0u64]).unwrap();
    let event = env.queue().single_task_with((table, sum.write()), |task, (table, sum)| {
        sum.set_at(task, 0, table.iter().map(|&n| u64::from(n)).sum());
    });
    event.unwrap();
    assert_eq!(sum.to_vec().unwrap(), [table.iter().map(|&n| u64::from(n)).sum::<u64>()]);
}
