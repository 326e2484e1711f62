use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec;
use std::vec::Vec;

use oxisycl_types::{GroupSize, HostChunk, LaunchRange};

use super::Memory;
use crate::group::reduction::{ITEMS, Partials, TILE, TILES, groups, reduce_partials, reduce_range, reduction};
use crate::group::{
    Atomically, ByGroup, Columns, Fixed1, Fixed2, Group, GroupArguments, GroupForm, GroupLaunch, Local, LocalSlice,
    Private, Rows, Shape, Shares,
};
use crate::operator::{Identity, Max, Operator, Sum};
use crate::{DescribeKernel, Range, ReadWrite, Write};

/// A unit of a group's memory.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "only its address is used")] [u8; GroupSize::ALIGNMENT]);

/// Runs a kernel over groups, two groups in each chunk. Gives the id at which it unwound.
fn run<const D: usize, S: Shape<D>, A: GroupArguments, K>(
    groups: [usize; D],
    shape: S,
    arguments: A,
    kernel: K,
) -> Option<[usize; 3]>
where
    K: for<'wg> Fn(Group<'wg, 'static, D, S>, A::Bound<'wg>) + Copy,
{
    let launch = LaunchRange { dimensions: D as u8, extent: Range(groups).embed(), offset: [0; 3] };
    let items = Range(shape.extent()).size();
    let bytes = arguments.host_bytes(items).expect("few bytes");
    let mut memory = vec![Line([0; GroupSize::ALIGNMENT]); bytes / GroupSize::ALIGNMENT + 1];
    let captured = GroupLaunch { shape, arguments, kernel };
    let entry = GroupForm::<ByGroup<'static, S, A, K>, D>::NEW.entry();
    let mut begin = 0;
    while begin < launch.size() {
        let end = (begin + 2).min(launch.size());
        let mut chunk = HostChunk::new(begin, end);
        chunk.group_memory = memory.as_mut_ptr().cast();
        // SAFETY: the arguments are a live launch of this type, chunks are disjoint, and the memory has the bytes that were asked for.
        let ended = catch_unwind(AssertUnwindSafe(|| unsafe { entry((&raw const captured).cast(), &launch, &chunk) }));
        if ended.is_err() {
            return Some(chunk.item.get());
        }
        begin = end;
    }
    None
}

#[test]
fn phases_see_what_the_ones_before_wrote() {
    let mut memory = Memory::<2>::new([6, 8]);
    let numbers = memory.all::<ReadWrite>();
    let tiles = (Local::<u32, 8>::new(), Private::new(5u32));
    let unwound = run([3, 2], Fixed2::<2, 4>, tiles, move |mut group, (mut tile, mut own)| {
        group.for_each((&mut tile, &mut own), move |item, (slot, own)| {
            *slot = numbers.get(item.global());
            *own += *slot;
        });
        group.for_each((&tile, &mut own), move |item, (tile, own)| *own += tile[7 - item.local_linear_id()]);
        group.for_each(&own, move |item, own| numbers.set(item.global(), *own));
    });
    assert_eq!(unwound, None);
    let position = |y: usize, x: usize| (8 * y + x) as u32;
    for (index, number) in memory.elements.iter().enumerate() {
        let (y, x) = (index / 8, index % 8);
        let other = position(y ^ 1, x / 4 * 4 + 3 - x % 4);
        assert_eq!(*number, 5 + position(y, x) + other, "[{y}, {x}]");
    }
}

#[test]
fn each_way_to_lend_reaches_its_elements() {
    let mut memory = Memory::<1>::new([20]);
    let numbers = memory.all::<ReadWrite>();
    // The first is a variable, the others are not.
    let tiles = (
        Local::<u32, 23>::new(),
        LocalSlice::<u64>::new(15),
        Local::<[u8; 1024], 17>::new(),
        Private::new([7u64; 400]),
    );
    let unwound = run([4], Fixed1::<5>, tiles, move |mut group, (mut a, mut b, mut c, mut own)| {
        group.for_each(
            (Shares(&mut a), Rows(&mut b, 3), Columns(&mut c), &mut own),
            move |item, (share, row, mut column, own)| {
                share.for_each(|(index, slot)| *slot = index as u32);
                row.fill(item.local_linear_id() as u64);
                for position in 0..column.len() {
                    column[position] = [position as u8; 1024];
                }
                own[399] += 1;
            },
        );
        group.for_each((Atomically(&mut a), &b, &c, &own), move |item, (a, b, c, own)| {
            let id = item.local_linear_id();
            a.fetch_add(0, 1);
            a.fetch_max(1, 100 + id as u32);
            assert_eq!((b[3 * id + 2], c[id + 5][9], own[399], own[0]), (id as u64, 1, 8, 7));
            numbers.set(item.global(), a.load(22));
        });
        group.for_each_of([2, 11], &mut a, move |item, slot| *slot += item.linear_id() as u32);
        group.for_each(&a, move |item, a| {
            let all: u32 = a.iter().sum();
            numbers.update(item.global(), |n| n + all);
        });
    });
    assert_eq!(unwound, None);
    // 0 to 22, with five in place of 0, 104 in place of 1, and 0 to 21 once more.
    let all = (0..23).sum::<u32>() + 5 + 103 + (0..22).sum::<u32>();
    assert_eq!(memory.elements, vec![22 + all; 20]);
}

#[test]
fn a_work_item_that_unwinds_leaves_its_id() {
    let unwound = run([3, 2], Range::new([2, 3]), Local::<u32, 6>::new(), |mut group, mut tile| {
        group.for_each(&mut tile, |_, slot| *slot = 1);
        group.for_each(&mut tile, |item, slot| {
            *slot += 1;
            assert!(item.global().id().0 != [3, 4], "on purpose");
        });
    });
    assert_eq!(unwound, Some([0, 3, 4]));
    // A panic at group scope names the group's first work-item.
    let unwound = run([3, 2], Fixed2::<2, 3>, (), |group, ()| assert!(group.linear_id() != 3, "on purpose"));
    assert_eq!(unwound, Some([0, 2, 3]));
    // Position 7 of a group of six is its second work-item.
    let unwound = run([2], Fixed1::<6>, (), |mut group, ()| {
        let id = group.linear_id();
        group.for_each_of(10, (), move |item, ()| assert!(id != 1 || item.linear_id() != 7, "on purpose"));
    });
    assert_eq!(unwound, Some([0, 0, 7]));
}

#[test]
fn too_little_memory_for_a_phase_is_a_panic() {
    let kernels: Vec<fn() -> Option<[usize; 3]>> = vec![
        || {
            run([1], Range::new([4]), Local::<u32, 3>::new(), |mut group, mut tile| {
                group.for_each(&mut tile, |_, _| {})
            })
        },
        || run([1], Fixed1::<4>, LocalSlice::<u32>::new(3), |mut group, mut tile| group.for_each(&mut tile, |_, _| {})),
        || {
            run([1], Fixed1::<4>, Local::<u32, 8>::new(), |mut group, mut tile| {
                group.for_each(Rows(&mut tile, 3), |_, _| {})
            })
        },
        || {
            run([1], Fixed1::<4>, Local::<u32, 8>::new(), |mut group, mut tile| {
                group.for_each(Rows(&mut tile, usize::MAX), |_, _| {})
            })
        },
        || run([1], Fixed1::<4>, Private::new(1), |mut group, mut own| group.for_each_of(5, &mut own, |_, _| {})),
    ];
    for kernel in kernels {
        assert!(kernel().is_some());
    }
}

#[test]
fn algorithms_combine_the_values_of_a_group() {
    let mut memory = Memory::<1>::new([2 * 35]);
    let numbers = memory.all::<ReadWrite>();
    let private = (Private::new(0u32), Private::new(0u32), Private::new(false), Private::new(0u64));
    let arguments = (Local::<u32, 36>::new(), private.0, private.1, private.2, private.3);
    let unwound = run([2], Fixed1::<35>, arguments, move |mut group, (mut tile, mut a, mut b, mut holds, mut bits)| {
        group.for_each((Shares(&mut tile), &mut a, &mut b), move |item, (share, a, b)| {
            share.for_each(|(index, slot)| *slot = index as u32);
            (*a, *b) = (numbers.get(item.global()), item.local_linear_id() as u32);
        });
        let sums =
            [group.reduce(&a, Sum), group.inclusive_scan(&mut a, |a, b| a + b), group.exclusive_scan(&mut b, Max)];
        assert_eq!(sums[0], sums[1]);
        assert_eq!((sums[2], group.broadcast(&b, 34), group.read(&tile, 35)), (34, 33, 35));
        assert_eq!(group.joint_reduce(&tile, 1, Sum), 1 + 35 * 18);
        group.for_each((&mut holds, &mut b), |item, (holds, b)| {
            *holds = item.local_linear_id() != 2;
            *b = item.local_linear_id() as u32;
        });
        assert!(group.any(&holds) && !group.all(&holds) && !group.none(&holds));
        let mut sub_groups = group.sub_groups::<16>();
        sub_groups.ballot(&holds, &mut bits);
        sub_groups.shift_left(&mut b, 15);
        sub_groups.reduce(&mut b, Max);
        sub_groups.all(&mut holds);
        group.for_each((&a, &b, &holds, &bits), move |item, (a, b, holds, bits)| {
            let (id, all) = (item.local_linear_id(), if item.local_linear_id() < 32 { 0xffff } else { 7 });
            assert_eq!(
                (*b, *holds),
                (
                    if id < 16 {
                        15
                    } else if id < 32 {
                        31
                    } else {
                        34
                    },
                    id >= 16
                )
            );
            assert_eq!(*bits, if id < 16 { all & !4 } else { all });
            numbers.set(item.global(), *a);
        });
    });
    assert_eq!(unwound, None);
    let expected = |n: u32| (n / 35 * 35..=n).sum::<u32>();
    assert_eq!(memory.elements, (0..70).map(expected).collect::<Vec<_>>());
}

#[test]
fn a_reduction_writes_to_its_target_alone() {
    for n in [0, 1, 130, TILE + 5] {
        let mut target = Memory::<1>::new([1]);
        let into = reduction(target.all::<ReadWrite>(), Sum);
        let mut sums = Memory::<1>::new([n.div_ceil(TILE).max(1)]);
        let partials = Partials { memory: sums.all(), first: 0 };
        let unwound = run([groups(n, TILES)], Fixed1::<ITEMS>, (), move |group, ()| {
            // SAFETY: the launch has as many groups, and the memory a place for each tile.
            unsafe { reduce_range(group, [n], |item, sum| *sum += item.index() as u32, &into, partials) };
        });
        assert_eq!(unwound, None);
        assert_eq!(target.elements, [(0..n as u32).sum::<u32>()], "{n}");
    }
    // What one launch leaves is the next one's.
    let mut target = Memory::<1>::new([1]);
    let into = reduction(target.all::<Write>(), Max);
    let mut source = Memory::<1>::new([20]);
    let mut sums = Memory::<1>::new([1]);
    let [source, sums] = [&mut source, &mut sums].map(|memory| Partials { memory: memory.all(), first: 0 });
    let unwound = run([1], Fixed1::<ITEMS>, (), move |group, ()| {
        // SAFETY: as above; there are as many values.
        unsafe { reduce_partials(group, 20, source, &into, sums) };
    });
    assert_eq!(unwound, None);
    assert_eq!(target.elements, [19]);
}

/// An operator that tells in which order it combines.
#[derive(Clone, Copy)]
struct Order;

impl Operator<u32> for Order {
    fn combine(&self, a: u32, b: u32) -> u32 {
        a.rotate_left(5).wrapping_mul(31) ^ b
    }
}
impl Identity<u32> for Order {
    fn identity(&self) -> u32 {
        0
    }
}

#[test]
fn rows_of_a_range_are_reduced_as_one_line() {
    fn reduced<const D: usize>(range: [usize; D]) -> u32 {
        let n = Range(range).size();
        let mut target = Memory::<1>::new([1]);
        let into = reduction(target.all::<Write>(), Order);
        let mut sums = Memory::<1>::new([n.div_ceil(TILE)]);
        let partials = Partials { memory: sums.all(), first: 0 };
        let unwound = run([groups(n, TILES)], Fixed1::<ITEMS>, (), move |group, ()| {
            // SAFETY: the launch has as many groups, and the memory a place for each tile.
            unsafe {
                reduce_range(group, range, |item, all| all.combine(item.linear_id() as u32 + 7), &into, partials)
            };
        });
        assert_eq!(unwound, None);
        target.elements[0]
    }
    for [height, width] in [[1, 1], [3, 1], [70, 3], [5, 63], [5, 64], [9, 65], [2, 200], [41, 100]] {
        let n = height * width;
        assert_eq!(reduced([height, width]), reduced([n]), "{height} x {width}");
        assert_eq!(reduced([2, height, width]), reduced([2 * n]), "2 x {height} x {width}");
    }
}
