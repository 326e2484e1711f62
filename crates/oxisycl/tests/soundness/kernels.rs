//! Kernels reach their own elements only, and only while they run.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use oxisycl::SingleKernel;
use oxisycl::prelude::*;

use super::{devices, filled, host, refused};

#[test]
fn a_command_group_is_not_recorded_inside_a_kernel() {
    // Its closure would have the item of the kernel, and an accessor whose command has not started.
    static INSIDE: OnceLock<(Queue, Buffer<u32, 1>)> = OnceLock::new();
    static RECORDED: AtomicBool = AtomicBool::new(false);
    static REFUSED: AtomicUsize = AtomicUsize::new(0);
    INSIDE.set((Queue::new(&host()).unwrap(), filled(4))).unwrap();
    let reading = INSIDE.get().unwrap().1.host_access(Read).unwrap();
    for device in devices() {
        let event = Queue::new(&device).unwrap().parallel_for(4, |item| {
            let (queue, buffer) = INSIDE.get().unwrap();
            let submitted = queue.submit(|cg| {
                RECORDED.store(true, Ordering::SeqCst);
                let data = cg.access(buffer, ReadWrite);
                data.set(item, 99);
                Ok(())
            });
            let submitted_with = queue.submit_with(|cg| {
                RECORDED.store(true, Ordering::SeqCst);
                let data = cg.access_chunks(buffer, ReadWrite, 1);
                data.block(item).fill(99);
                Ok(())
            });
            REFUSED.fetch_add(usize::from(submitted.is_err() && submitted_with.is_err()), Ordering::SeqCst);
        });
        event.unwrap().wait().unwrap();
    }
    assert_eq!((RECORDED.load(Ordering::SeqCst), REFUSED.load(Ordering::SeqCst)), (false, 8));
    assert!(reading.iter().all(|&x| x == 7), "changed under a host accessor");
}

#[test]
fn a_launch_beyond_the_accessors_range_is_a_failure_and_touches_nothing() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        for is_offset in [false, true] {
            let buffer = filled(16);
            let part = buffer.sub_buffer(0, 16).unwrap();
            let event = queue.submit(|cg| {
                let data = cg.access_range(&part, ReadWrite, 2, 4);
                match is_offset {
                    true => cg.parallel_for_offset(4, 1, move |item| data.set(item, 99)),
                    false => cg.parallel_for(5, move |item| data.set(item, 99)),
                }
            });
            refused(event.unwrap().wait(), ErrorCode::Kernel, "beyond the accessor's range [4]");
            refused(buffer.to_vec(), ErrorCode::Kernel, "beyond the accessor's range");
        }
        let event = queue.submit(|cg| {
            let data = cg.access_range(&Buffer::from_vec_nd(vec![0u32; 20], [4, 5]).unwrap(), Read, [1, 1], [2, 2]);
            cg.parallel_for([2, 2], move |item| _ = data.at(item, [item.get(0), 2]))
        });
        refused(event.unwrap().wait(), ErrorCode::Kernel, "index [");
        _ = queue.take_errors();
    }
}

#[test]
fn each_element_is_reached_once_over_the_whole_pool() {
    let shapes: &[[usize; 3]] = if cfg!(miri) { &[[3, 5, 7]] } else { &[[1, 1, 9999], [31, 1, 77], [17, 23, 29]] };
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        for &shape in shapes {
            let n = shape.iter().product::<usize>();
            let buffer = Buffer::from_vec_nd(vec![0u32; n], shape).unwrap();
            let visits = Buffer::from_vec(vec![0u32; n]).unwrap();
            let event = queue.submit(|cg| {
                let (data, visits) = (cg.access(&buffer, ReadWrite), cg.access(&visits, Atomic));
                cg.parallel_for(shape, move |item| {
                    data.update(item, |x| x + 1);
                    visits.fetch_add(item, item.linear_id(), 1);
                })
            });
            event.unwrap();
            let blocks = shape.map(|n| n.div_ceil(4));
            let event = queue.submit(|cg| {
                let chunks = cg.access_chunks(&buffer, ReadWrite, [4, 4, 4]);
                cg.parallel_for(blocks, move |item| {
                    let own = chunks.block(item);
                    own.fill_with(|index| own.get(index) + 1);
                })
            });
            event.unwrap();
            assert!(buffer.into_vec().unwrap().iter().all(|&x| x == 2), "{shape:?}");
            assert!(visits.into_vec().unwrap().iter().all(|&x| x == 1), "{shape:?}");
        }
    }
}

#[test]
fn function_pointers_of_one_type_are_different_kernels() {
    static RAN: AtomicUsize = AtomicUsize::new(0);
    fn one(_: Item<'_, 1>) {
        RAN.fetch_add(1, Ordering::SeqCst);
    }
    fn hundred(_: Item<'_, 1>) {
        RAN.fetch_add(100, Ordering::SeqCst);
    }
    let queue = Queue::new(&host()).unwrap();
    let kernels: [fn(Item<'_, 1>); 2] = [one, hundred];
    for kernel in kernels {
        queue.parallel_for(2, kernel).unwrap().wait().unwrap();
    }
    let dynamic: [&'static (dyn for<'wi> Fn(Item<'wi, 1>) + Send + Sync); 2] = [&one, &hundred];
    for kernel in dynamic {
        queue.parallel_for(2, kernel).unwrap().wait().unwrap();
    }
    let leaked: &'static _ = Box::leak(Box::new(|_: Item<'_, 1>| _ = RAN.fetch_add(10_000, Ordering::SeqCst)));
    queue.parallel_for(1, leaked).unwrap().wait().unwrap();
    assert_eq!(RAN.load(Ordering::SeqCst), 10_404);
}

#[test]
fn one_type_may_be_a_kernel_in_several_forms() {
    #[derive(Clone, Copy)]
    struct Both<'cg>(Accessor<'cg, u32, 1, ReadWrite>, u32);
    impl Kernel<Item<'_, 1>> for Both<'_> {
        fn run(&self, item: Item<'_, 1>) {
            self.0.update(item, |x| x + self.1);
        }
    }
    impl Kernel<Item<'_, 2>> for Both<'_> {
        fn run(&self, _: Item<'_, 2>) {}
    }
    impl SingleKernel for Both<'_> {
        fn run(&self, task: Single<'_>) {
            self.0.set_at(task, 3, self.0.get_at(task, 0) * self.1);
        }
    }
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let buffer = filled(4);
        for form in 0..3 {
            let event = queue.submit(|cg| {
                let kernel = Both(cg.access(&buffer, ReadWrite), 10);
                match form {
                    0 => cg.launch(4, kernel),
                    1 => cg.launch([2, 2], kernel),
                    _ => cg.launch_single(kernel),
                }
            });
            event.unwrap();
        }
        assert_eq!(buffer.into_vec().unwrap(), [17, 17, 17, 170]);
    }
}

#[test]
fn elements_with_padding_are_filled_and_copied() {
    #[derive(Clone, Copy, PartialEq, Debug, DeviceCopyable)]
    #[repr(C)]
    struct Padded {
        tag: u8,
        value: Option<u64>,
        letter: char,
    }
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let value = |i: u32| Padded {
            tag: i as u8,
            value: (!i.is_multiple_of(3)).then_some(u64::from(i)),
            letter: char::from_u32('a' as u32 + i % 26).unwrap(),
        };
        let source = Buffer::from_vec_nd((0..100).map(value).collect(), [10, 10]).unwrap();
        let target = Buffer::from_vec_nd(vec![value(0); 100], [10, 10]).unwrap();
        for (part, fill) in [(value(1), value(9)), (value(2), value(12))] {
            queue.fill(&target, fill).unwrap();
            let event = queue.submit(|cg| {
                let inner = cg.access_range(&target, Write, [2, 5], [3, 4]);
                cg.fill(inner, part)
            });
            event.unwrap();
            let host = target.host_access(Read).unwrap();
            assert!(host.iter().enumerate().all(|(i, &element)| {
                let is_inside = (2..5).contains(&(i / 10)) && (5..9).contains(&(i % 10));
                element == if is_inside { part } else { fill }
            }));
        }
        queue.copy(&source, &target).unwrap();
        let copied = queue.copy_to_host(&target, vec![value(0); 100]).unwrap().wait().unwrap();
        assert_eq!(copied, (0..100).map(value).collect::<Vec<_>>());
        queue.copy_from_host(vec![None::<u32>; 4], &Buffer::from_vec(vec![Some(1u32); 4]).unwrap()).unwrap();
    }
}

#[test]
fn memory_that_nobody_wrote_has_values() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let buffer = Buffer::<u32, 1>::uninit(64).unwrap();
        let event = queue.submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            cg.parallel_for(32, move |item| data.update(item, |x| if x % 2 == 0 { 2 } else { 1 }))
        });
        event.unwrap();
        let host = buffer.host_access(Read).unwrap();
        assert!(host.iter().take(32).all(|&x| x == 1 || x == 2));
        let sum = host.iter().fold(0u32, |sum, &x| sum.wrapping_add(x));
        drop(host);
        let event = queue.submit(|cg| {
            let data = cg.access_range(&buffer, Write.no_init(), 16, 16);
            cg.parallel_for(8, move |item| data.set(item, sum | 1))
        });
        event.unwrap();
        assert!(buffer.into_vec().unwrap()[16..24].iter().all(|&x| x % 2 == 1));
        assert_eq!(queue.malloc_device::<u32>(8).unwrap().to_vec(&queue).unwrap(), [0; 8]);
    }
}

#[test]
fn kernels_use_statics_and_threads_of_the_host() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let queue = Queue::new(&host()).unwrap();
    let (input, output) = (filled(64), filled(64));
    let event = queue.submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
        cg.parallel_for(4, move |item| {
            let view = input.view(item);
            let sum = std::thread::scope(|scope| {
                let half = |begin: usize| move || view.iter().skip(begin).take(32).sum::<u32>();
                let threads = [scope.spawn(half(0)), scope.spawn(half(32))];
                threads.map(|thread| thread.join().unwrap()).iter().sum()
            });
            COUNT.fetch_add(1, Ordering::Relaxed);
            output.set(item, sum);
        })
    });
    event.unwrap();
    assert_eq!(output.to_vec().unwrap()[..5], [448, 448, 448, 448, 7]);
    assert_eq!(COUNT.load(Ordering::Relaxed), 4);
}
