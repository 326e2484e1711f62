//! What a kernel gets for derived arguments ends with the call, and an accessor in one belongs to its command group.
#![forbid(unsafe_code)]

use std::sync::Mutex;

use oxisycl::prelude::*;

#[derive(KernelArg)]
struct Table {
    names: Vec<u32>,
}

#[derive(KernelArg)]
#[oxisycl(device = Self)]
struct Input<'a> {
    numbers: Accessor<'a, u32, 1, Read>,
}

static ESCAPED: Mutex<Option<TableOnDevice<'static>>> = Mutex::new(None);

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    // What a kernel gets, beyond the call.
    queue.parallel_for_with(1, Table { names: vec![1] }, |_, table| *ESCAPED.lock().unwrap() = Some(table))?;
    // An accessor of another group.
    let numbers = Buffer::from_vec(vec![1])?;
    queue.submit(|outer| {
        let numbers = outer.access(&numbers, Read);
        queue.submit(|inner| {
            inner.parallel_for_with(1, Input { numbers }, |item, input| drop(input.numbers.get(item)))
        })?;
        outer.parallel_for(1, |_| ())
    })?;
    Ok(())
}
