//! Kernels that call what only the host has, one subject each, with the warning that the build gives in `host_only.stderr`.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::TcpStream;
use std::process;
use std::sync::{Barrier, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use oxisycl::prelude::*;

unsafe extern "C" {
    safe fn getpid() -> i32;
}

fn file(x: u32) -> u32 {
    fs::read_to_string("limit.txt").map_or(x, |text| text.len() as u32)
}

fn network(x: u32) -> u32 {
    TcpStream::connect("localhost:80").map_or(x, |_| 0)
}

fn input(x: u32) -> u32 {
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_or(x, |length| length as u32)
}

fn output(x: u32) -> u32 {
    println!("x is {x}");
    x
}

fn threads(x: u32) -> u32 {
    thread::spawn(move || x + 1).join().unwrap_or(0)
}

fn sleep(x: u32) -> u32 {
    thread::sleep(Duration::from_millis(1));
    x
}

fn condition(x: u32) -> u32 {
    let (sum, changed) = (Mutex::new(x), Condvar::new());
    *changed.wait(sum.lock().unwrap()).unwrap()
}

fn barrier(x: u32) -> u32 {
    Barrier::new(2).wait();
    x
}

fn map(x: u32) -> u32 {
    let mut map = HashMap::new();
    map.insert(x, x);
    map[&x]
}

fn clock(x: u32) -> u32 {
    Instant::now().elapsed().as_micros() as u32 + x
}

fn variable(x: u32) -> u32 {
    std::env::var("LIMIT").map_or(x, |text| text.len() as u32)
}

fn exit(x: u32) -> u32 {
    if x == 0 {
        process::exit(1);
    }
    x
}

fn foreign(x: u32) -> u32 {
    getpid() as u32 + x
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

fn main() -> oxisycl::Result {
    let buffer = Buffer::from_vec(vec![1; 64])?;
    update(&buffer, file)?;
    update(&buffer, network)?;
    update(&buffer, input)?;
    update(&buffer, output)?;
    update(&buffer, threads)?;
    update(&buffer, sleep)?;
    update(&buffer, condition)?;
    update(&buffer, barrier)?;
    update(&buffer, map)?;
    update(&buffer, clock)?;
    update(&buffer, variable)?;
    update(&buffer, exit)?;
    update(&buffer, foreign)?;
    // Every device can run this one.
    update(&buffer, |x| x + 1)
}
