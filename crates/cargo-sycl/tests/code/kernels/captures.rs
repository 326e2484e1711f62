//! Kernels that capture addresses of the host, one each, with the error that the build gives in `captures.stderr`. A comment `A -> B` says
//! which token makes the kernel one that devices can run.
#![allow(dead_code, non_snake_case, non_upper_case_globals)]

use oxisycl::prelude::*;

static LIMIT: u32 = 7;

trait Scale: Sync {
    fn scale(&self, x: u32) -> u32;
}

struct Twice;

impl Scale for Twice {
    fn scale(&self, x: u32) -> u32 {
        2 * x
    }
}

/// What kernels compute with a captured value.
trait Measure {
    fn measure(self) -> u32;
}

impl Measure for u32 {
    fn measure(self) -> u32 {
        self
    }
}

impl Measure for &u32 {
    fn measure(self) -> u32 {
        *self
    }
}

impl Measure for &str {
    fn measure(self) -> u32 {
        self.len() as u32
    }
}

#[derive(Clone, Copy)]
struct Names {
    first: u32,
    second: Option<&'static str>,
}

#[derive(Clone, Copy)]
struct Numbers {
    first: u32,
    second: Option<u32>,
}

impl Names {
    const NEW: Self = Self { first: 1, second: Some("second") };

    fn sum(self) -> u32 {
        self.first + self.second.map_or(0, Measure::measure)
    }
}

impl Numbers {
    const NEW: Self = Self { first: 1, second: Some(2) };

    fn sum(self) -> u32 {
        self.first + self.second.map_or(0, Measure::measure)
    }
}

/// An address that safe code can send to kernels, since somebody promised that it may.
#[derive(Clone, Copy)]
struct Handle(*const u32);

// SAFETY: it points to a static that is never written.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    const NEW: Self = Self(&raw const LIMIT);

    fn get(self) -> u32 {
        // SAFETY: it was made of a reference.
        unsafe { *self.0 }
    }
}

#[derive(Clone, Copy)]
struct Named<'a, T> {
    data: Accessor<'a, u32, 1, ReadWrite>,
    limit: T,
}

impl<T: Measure + Copy + Send + Sync> Kernel<Item<'_, 1>> for Named<'_, T> {
    fn run(&self, item: Item<'_, 1>) {
        self.data.update(item, |x| x.min(self.limit.measure()));
    }
}

macro_rules! bounded {
    ($buffer:expr, $limit:ident, $value:expr) => {{
        let $limit = $value;
        update($buffer, move |x| x.min($limit.measure()))
    }};
}

fn update(buffer: &Buffer<u32, 1>, f: impl Fn(u32) -> u32 + Copy + Send + Sync + 'static) -> oxisycl::Result {
    let queue = Queue::builder().build()?;
    queue
        .submit(|cg| {
            let data = cg.access(buffer, ReadWrite);
            cg.parallel_for(64, move |item| data.update(item, f))
        })?
        .wait()
}

/// A launch of its own for each type.
fn bounded<T: Measure + Copy + Send + Sync + 'static>(buffer: &Buffer<u32, 1>, limit: T) -> oxisycl::Result {
    update(buffer, move |x| x.min(limit.measure()))
}

fn in_one_group(buffer: &Buffer<u32, 1>) -> oxisycl::Result {
    let queue = Queue::builder().build()?;
    queue.submit(|cg| {
        let data = cg.access(buffer, ReadWrite);
        let text: &str = "captured by the kernel itself"; // let -> const
        cg.parallel_for(64, move |item| data.update(item, |x| x + text.measure()))
    })?;
    queue.submit(|cg| {
        let data = cg.access(buffer, ReadWrite);
        let task_text: &str = "in a single task"; // let -> const
        cg.single_task(move |task| data.set_at(task, 0, task_text.measure()))
    })?;
    queue.submit(|cg| {
        let numbers = cg.access(buffer, ReadWrite);
        let named = Named { data: numbers, limit: &LIMIT }; // &LIMIT -> LIMIT
        cg.launch(64, named)
    })?;
    queue.parallel_for_with(64, buffer.update(), {
        let beside: &str = "captured beside an argument"; // let -> const
        move |item, data| data.update(item, |x| x + beside.measure())
    })?;
    queue.wait()
}

fn main() -> oxisycl::Result {
    let buffer = Buffer::from_vec(vec![1; 64])?;
    in_one_group(&buffer)?;

    let limit = &LIMIT; // &LIMIT -> LIMIT
    update(&buffer, move |x| x.min(limit.measure()))?;
    let function: fn(u32) -> u32 = u32::swap_bytes; // let -> const
    update(&buffer, move |x| function(x))?;
    let object: &'static dyn Scale = &Twice; // let -> const
    update(&buffer, move |x| object.scale(x))?;
    let slice: &'static [u32] = &[1, 2]; // let -> const
    update(&buffer, move |x| x + slice.len() as u32)?;
    let borrowed: &'static [u32] = &[1, 2, 3]; // let -> const
    update(&buffer, |x| x + borrowed.len() as u32)?;
    let maybe = Some(&LIMIT); // &LIMIT -> LIMIT
    update(&buffer, move |x| x + maybe.map_or(0, Measure::measure))?;
    let array = [&LIMIT; 3]; // &LIMIT -> LIMIT
    update(&buffer, move |x| x + array.map(Measure::measure)[1])?;
    let handle: Handle = Handle::NEW; // let -> const
    update(&buffer, move |x| x + handle.get())?;

    // A part of a variable is captured alone, or all of it.
    let pair = (1u32, "one");
    update(&buffer, move |x| x + pair.1.measure())?; // 1 -> 0
    let my__pair = ((2u32, "two"), 2);
    update(&buffer, move |x| x + my__pair.0.1.measure())?; // 1 -> 0
    let names = Names::NEW; // Names -> Numbers
    update(&buffer, move |x| x + names.sum())?;

    // Two of one type.
    let left: &str = "left"; // let -> const
    let right: &str = "right"; // let -> const
    update(&buffer, move |x| x + left.measure() + right.measure())?;

    // In a closure that the kernel captures, and in one that it only holds.
    let inner_text: &str = "inner"; // let -> const
    let inner = move |x: u32| x + inner_text.measure();
    update(&buffer, move |x| inner(inner(x)))?;
    let held_text: &str = "held"; // let -> const
    let held = move || held_text.measure();
    update(&buffer, move |x| x + size_of_val(&held) as u32)?;

    // In generic code, and by a macro.
    bounded(&buffer, &LIMIT)?; // &LIMIT -> LIMIT
    bounded!(&buffer, by_macro, &LIMIT)?; // &LIMIT -> LIMIT
    let größe = &LIMIT; /* ä */ update(&buffer, move |x| x + größe.measure())?; // &LIMIT -> LIMIT

    // Every device can run this one.
    update(&buffer, move |x| x.min(LIMIT))
}
