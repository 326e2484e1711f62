//! Kernels that access each memory, for what the code says about it.

use oxisycl::group::nd::LocalAccessor;
use oxisycl::group::{Fixed1, Local};
use oxisycl::multi_ptr::{Constant, MultiPtr, space};
use oxisycl::prelude::*;

const ITEMS: usize = 64;

/// A number at a random place is never computed when the program is compiled.
const TABLE: [f32; 16] = [1., 2., 4., 8., 3., 5., 9., 7., 0., 6., 2., 1., 5., 3., 8., 4.];
static PLAIN: [f32; 16] = TABLE;
static IN_CONSTANT_MEMORY: Constant<[f32; 16]> = Constant::new(TABLE);

type Numbers = Buffer<f32, 1>;

fn main() -> oxisycl::Result {
    let queue = Queue::default()?;
    let numbers = Buffer::from_vec(vec![1.0f32; 256])?;
    let pointers = Buffer::from_vec(vec![MultiPtr::<f32>::null(); 256])?;
    arguments(&queue, &numbers)?;
    list_of_global_memory(&queue, &numbers)?;
    list_of_any_memory(&queue, &numbers)?;
    local_memory(&queue, &numbers)?;
    any_memory(&queue, &numbers, &pointers)?;
    plain_table(&queue, &numbers)?;
    constant_table(&queue, &numbers)?;
    prefetched(&queue, &numbers)?;
    large_block(&queue, &numbers)?;
    numbers.to_vec()?;
    Ok(())
}

/// By way of a pointer, which is among what the kernel captures.
fn arguments(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.parallel_for_with(256, (numbers.read(), numbers.update()), |item, (from, to)| {
        // SAFETY: an element of the buffer; nothing writes it.
        let value = unsafe { from.multi_ptr(item).add(item.index()).read() };
        to.update(item, |x| x + value)
    })
}

/// A kernel that walks through a list whose elements know addresses of a space.
macro_rules! list {
    ($name:ident, $space:ident) => {
        fn $name(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
            #[derive(Clone, Copy, DeviceCopyable)]
            struct Node {
                value: f32,
                next: MultiPtr<Node, space::$space>,
            }
            let nodes = Buffer::from_vec(vec![Node { value: 1., next: MultiPtr::null() }; 8])?;
            queue.parallel_for_with(8, (nodes.update(), numbers.update()), |item, (nodes, numbers)| {
                let mut next = nodes.cell(item).get().next;
                let mut sum = 0.;
                while !next.is_null() {
                    // SAFETY: there is no node.
                    let node = unsafe { next.as_cell() };
                    sum += node.get().value;
                    node.set(Node { value: sum, ..node.get() });
                    next = node.get().next;
                }
                numbers.update(item, |x| x + sum)
            })
        }
    };
}

list! { list_of_global_memory, Global }
list! { list_of_any_memory, Generic }

/// Through a pointer to local memory.
fn local_memory(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = Local::<f32, ITEMS>::new();
        cg.parallel_for_nd_range((256, Fixed1::<ITEMS>), memory, move |mut item, tile: LocalAccessor<'_, f32>| {
            let (own, tile) = (item.local_linear_id(), tile.multi_ptr());
            // SAFETY: each work-item writes its own element before the barrier, and reads one behind it.
            unsafe {
                tile.add(own).write(numbers.get(item.global()));
                item.group().barrier();
                numbers.set(item.global(), tile.add(ITEMS - 1 - own).read());
            }
        })
    })
}

/// What a pointer from memory leads to is asked.
fn any_memory(queue: &Queue, numbers: &Numbers, pointers: &Buffer<MultiPtr<f32>, 1>) -> oxisycl::Result<Event> {
    queue.parallel_for_with(256, (numbers.update(), pointers.read()), |item, (numbers, pointers)| {
        let pointer = pointers.get(item);
        let (global, local, private) = (
            pointer.dynamic_cast::<space::Global>().is_some(),
            pointer.dynamic_cast::<space::Local>().is_some(),
            pointer.dynamic_cast::<space::Private>().is_some(),
        );
        let code = u8::from(global) + 2 * u8::from(local) + 4 * u8::from(private);
        numbers.update(item, |x| x + f32::from(code))
    })
}

fn plain_table(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.parallel_for_with(256, numbers.update(), |item, numbers| numbers.update(item, |x| x + PLAIN[x as usize % 16]))
}

fn constant_table(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.parallel_for_with(256, numbers.update(), |item, numbers| {
        numbers.update(item, |x| x + IN_CONSTANT_MEMORY[x as usize % 16])
    })
}

fn prefetched(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.parallel_for_with(256, numbers.update(), |item, numbers| {
        // SAFETY: an element of the buffer.
        unsafe { numbers.multi_ptr(item).wrapping_add(item.index()).prefetch(1) };
        numbers.update(item, |x| x + 1.)
    })
}

/// A triad of what is in a block of 5000 bytes and more, which no parameter holds on all drivers.
fn large_block(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    let factors: [f32; 1250] = std::array::from_fn(|i| i as f32);
    let other = Buffer::from_vec(vec![2.0f32; 256])?;
    queue.submit(|cg| {
        let (other, numbers) = (cg.access(&other, Read), cg.access(numbers, ReadWrite));
        cg.parallel_for(256, move |item| numbers.update(item, |x| factors[item.index()] * other.get(item) + x))
    })
}
