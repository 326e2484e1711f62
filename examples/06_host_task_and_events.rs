//! Host code inside the graph, and events as futures: a kernel, a host task that uses its result, and an `await` for both.
//!
//! Any executor will do. The one here is as small as they come.
//!
//! `cargo run --example 06_host_task_and_events`

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use oxisycl::prelude::{Buffer, Event, Item, Queue, Read, ReadWrite, Write};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread, which sleeps while there is nothing to do.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// The text of the first prime numbers, made on the device and put together on the host.
async fn primes(queue: &Queue, limit: usize) -> oxisycl::Result<String> {
    let is_prime = Buffer::<u8, 1>::uninit(limit)?;
    let length = Buffer::<u64, 1>::from_vec(vec![0])?;
    let (sender, receiver) = std::sync::mpsc::channel();

    let sieve: Event = queue.submit(|cg| {
        let is_prime = cg.access(&is_prime, Write.no_init());
        cg.parallel_for(limit, move |item: Item<1>| {
            let n = item.index();
            let divisible = (2..n).take_while(|d| d * d <= n).any(|d| n.is_multiple_of(d));
            is_prime.set(item, u8::from(n >= 2 && !divisible));
        })
    })?;
    // The accessors order the task after the kernel; it may print, allocate, and block.
    let text = queue.submit(|cg| {
        let is_prime = cg.access_host(&is_prime, Read);
        let mut length = cg.access_host(&length, Write);
        cg.host_task(move |scope| {
            let found = is_prime.slice(scope).iter().enumerate().filter(|(_, flag)| **flag != 0);
            let text = found.map(|(n, _)| n.to_string()).collect::<Vec<_>>().join(" ");
            *length.at_mut(scope, 0) = text.len() as u64;
            let _ = sender.send(text);
        })
    })?;
    // A kernel can go on with what the task wrote.
    let doubled = queue.submit(|cg| {
        let length = cg.access(&length, ReadWrite);
        cg.parallel_for(1, move |item| length.update(item, |length| 2 * length))
    })?;

    sieve.await?;
    text.await?;
    doubled.await?;
    let text = receiver.recv().unwrap_or_default();
    assert_eq!(length.to_vec()?, [2 * text.len() as u64]);
    Ok(text)
}

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let text = block_on(primes(&queue, 50))?;
    assert_eq!(text, "2 3 5 7 11 13 17 19 23 29 31 37 41 43 47");
    println!("primes below 50: {text}");
    Ok(())
}
