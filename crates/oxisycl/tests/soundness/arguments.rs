//! Memory of the host that kernels read as their arguments. It lives until the last command has ended, whatever is dropped before.

use std::sync::{Arc, Weak};

use oxisycl::prelude::*;

use super::{Gate, devices, eventually, filled, host, slow};

/// What kernels get here, all of it memory of the host.
struct Owners {
    vector: Vec<u32>,
    slice: Box<[u16]>,
    one: Box<[u64; 2]>,
    shared: Arc<[u32]>,
    shared_one: Arc<u64>,
    text: String,
    boxed_text: Box<str>,
    shared_text: Arc<str>,
}

impl Owners {
    fn new() -> Self {
        Self {
            vector: vec![1, 2, 3],
            slice: Box::new([10, 20]),
            one: Box::new([100, 200]),
            shared: Arc::from([1000, 2000, 3000]),
            shared_one: Arc::new(10_000),
            text: String::from("seven"),
            boxed_text: Box::from("four"),
            shared_text: Arc::from("shared"),
        }
    }

    fn sum(&self) -> u64 {
        let letters = |text: &str| text.bytes().map(u64::from).sum::<u64>();
        let numbers = self.vector.iter().chain(&self.shared[..]).map(|&n| u64::from(n)).sum::<u64>();
        let halves = self.slice.iter().map(|&n| u64::from(n)).sum::<u64>();
        let texts = letters(&self.text) + letters(&self.boxed_text) + letters(&self.shared_text);
        numbers + halves + self.one.iter().sum::<u64>() + *self.shared_one + texts
    }

    /// Adds up all that there is, by a kernel that starts after the event. The owners are gone when this returns.
    fn submit(self, queue: &Queue, after: Option<&Event>, sums: &Buffer<u64, 1>) -> oxisycl::Result<Event> {
        let Self { vector, slice, one, shared, shared_one, text, boxed_text, shared_text } = self;
        let numbers = (vector, slice, one, shared, shared_one);
        queue.submit(|cg| {
            if let Some(event) = after {
                cg.depends_on(event);
            }
            let arguments = (numbers, (text, boxed_text, shared_text), sums.write());
            cg.parallel_for_with(sums.range(), arguments, |item, (numbers, texts, sums)| {
                let (vector, slice, one, shared, shared_one) = numbers;
                let mut sum = *shared_one + one[0] + one[1];
                vector.iter().chain(shared).for_each(|&n| sum += u64::from(n));
                slice.iter().for_each(|&n| sum += u64::from(n));
                for text in [texts.0, texts.1, texts.2] {
                    text.bytes().for_each(|letter| sum += u64::from(letter));
                }
                sums.set(item, sum);
            })
        })
    }
}

/// An `Arc` whose memory a test sees the end of.
fn watched(value: u64) -> (Arc<u64>, Weak<u64>) {
    let value = Arc::new(value);
    let watch = Arc::downgrade(&value);
    (value, watch)
}

#[test]
fn kernels_in_flight_read_memory_of_the_host_by_value() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let all_sums = [(); 2].map(|()| Buffer::from_vec(vec![0u64; 2]).unwrap());
        for sums in &all_sums {
            Owners::new().submit(&queue, None, sums).unwrap();
        }
        for sums in &all_sums {
            assert_eq!(sums.to_vec().unwrap(), [Owners::new().sum(); 2]);
        }
    }
}

#[test]
fn memory_of_the_host_may_be_empty() {
    for device in devices() {
        let found = Buffer::from_vec(vec![1usize; 2]).unwrap();
        let arguments =
            (Vec::<u64>::new(), Box::<[u8]>::default(), Arc::<[u16]>::from([]), String::new(), found.write());
        let event = Queue::new(&device).unwrap().parallel_for_with(
            2,
            arguments,
            |item, (vector, slice, shared, text, found)| {
                assert!(vector.as_ptr().is_aligned() && shared.as_ptr().is_aligned());
                found.set(item, vector.len() + slice.len() + shared.len() + text.len());
            },
        );
        event.unwrap().wait().unwrap();
        assert_eq!(found.to_vec().unwrap(), [0; 2]);
    }
}

/// What is dropped while the kernel waits.
#[derive(Clone, Copy, PartialEq)]
enum Dropped {
    Queue,
    Event,
    Buffer,
    Owner,
}

#[test]
fn owners_queues_events_and_buffers_go_in_any_order() {
    use Dropped::{Buffer as Sums, Event as End, Owner, Queue as Line};
    let orders = [
        [Line, End, Sums, Owner],
        [Owner, Sums, End, Line],
        [Sums, Owner, Line, End],
        [End, Line, Owner, Sums],
        [Owner, Line, Sums, End],
    ];
    for (number, device) in devices().iter().enumerate() {
        for order in if cfg!(miri) { &orders[number..=number] } else { &orders[..] } {
            static GATE: Gate = Gate::new();
            GATE.close();
            let other = Queue::new(&host()).unwrap();
            let gate = other.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
            let (shared_one, watch) = watched(10_000);
            let mut owners = Owners::new();
            owners.shared_one = shared_one.clone();
            let expected = owners.sum();
            let mut owner = Some(shared_one);
            let mut queue = Some(Queue::new(device).unwrap());
            let mut sums = Some(Buffer::from_vec(vec![0u64; 2]).unwrap());
            let mut event = Some(owners.submit(queue.as_ref().unwrap(), Some(&gate), sums.as_ref().unwrap()).unwrap());
            // A reader that ends after the owners' kernel: it tells what was read, also once the first buffer is gone.
            let found = Buffer::from_vec(vec![0u64; 2]).unwrap();
            let reader = queue.as_ref().unwrap().copy(sums.as_ref().unwrap(), &found).unwrap();
            for (position, what) in order.iter().enumerate() {
                if position == 2 {
                    GATE.open();
                }
                match what {
                    Line => drop(queue.take()),
                    End => drop(event.take()),
                    Sums => drop(sums.take()),
                    Owner => {
                        // Host and kernel read it at the same time.
                        assert_eq!(owner.as_deref(), Some(&10_000));
                        drop(owner.take());
                    }
                }
            }
            reader.wait().unwrap();
            assert_eq!(found.to_vec().unwrap(), [expected; 2]);
            eventually(|| watch.upgrade().is_none());
        }
    }
}

#[test]
fn memory_of_a_kernel_that_fails_or_never_runs_is_freed_once() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let (value, watch) = watched(3);
        let vector = vec![5u32; 8];
        let failing = queue.parallel_for_with(4, (value, vector, Box::new(2u64)), |item, (value, vector, one)| {
            assert!(u64::from(vector[item.index()]) + *value == *one, "on purpose");
        });
        let failing = failing.unwrap();
        let (behind, watch_behind) = watched(4);
        let never = queue.submit(|cg| {
            cg.depends_on(&failing);
            cg.parallel_for_with(4, (behind, String::from("unread")), |_, (_, text)| assert!(text.is_empty()))
        });
        // If the failure is known by then, the group is refused: for the event, and not for its own new buffers.
        let error = match never {
            Ok(event) => event.wait().unwrap_err(),
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::Event, "{error}");
                error
            }
        };
        assert!(failing.wait().is_err() && !error.to_string().contains("is lost"), "{error}");
        eventually(|| watch.upgrade().is_none() && watch_behind.upgrade().is_none());
        // A group that is given up passes nothing on.
        let (given_up, watch) = watched(5);
        let submitted = queue.submit(|cg| {
            cg.parallel_for_with(4, (given_up, Box::new(1u8)), |_, _| {})?;
            Err::<(), _>(Error::invalid("given up"))
        });
        assert!(submitted.is_err() && watch.upgrade().is_none());
        _ = queue.take_errors();
    }
}

#[test]
fn one_owner_serves_kernels_in_flight_on_several_devices() {
    let queues = [host(), slow(5)].map(|device| Queue::new(&device).unwrap());
    let mut table: Arc<[u32]> = (0..16).collect();
    let sums: Vec<_> = queues.iter().map(|_| filled(16)).collect();
    for _ in 0..3 {
        for (queue, sums) in queues.iter().zip(&sums) {
            let arguments = (table.clone(), sums.update());
            let kernel = |item: Item<1>, (table, sums): (&[u32], Accessor<u32, 1, ReadWrite>)| {
                sums.update(item, |sum| sum + table[item.index()]);
            };
            queue.parallel_for_with(16, arguments, kernel).unwrap();
            assert_eq!(table.iter().sum::<u32>(), 120, "read by the host meanwhile");
        }
    }
    for sums in sums {
        let expected: Vec<_> = (0..16).map(|n| 7 + 3 * n).collect();
        assert_eq!(sums.into_vec().unwrap(), expected);
    }
    drop(queues);
    // Its memory is the test's alone again.
    eventually(|| Arc::strong_count(&table) == 1);
    Arc::get_mut(&mut table).unwrap()[0] = 1;
    assert_eq!(table[0], 1);
}
