//! Values stay values: elements for which most bit patterns are invalid survive any sequence of commands, transfers and failures.
//! `OXISYCL_TEST_CASES` sets the number of programs.

use oxisycl::prelude::*;
use oxisycl::simulated::{Operation, SimulatedConfig, Simulator};

use super::host;

/// A small generator of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

/// Letters, none of whose neighbours in memory (poison, zeros, halves of others) is one.
const LETTERS: [char; 4] = ['\u{10101}', '\u{0FEDC}', '\u{0ABCD}', '\u{10F0F}'];

#[track_caller]
fn check<'a>(letters: impl IntoIterator<Item = &'a char>, seed: u64) {
    for letter in letters {
        // Compared as a number, which a letter that is none has as well.
        let number = std::hint::black_box(*letter) as u32;
        assert!(
            LETTERS.iter().any(|&known| known as u32 == number),
            "{number:#x} is no letter of this program (seed {seed})"
        );
    }
}

fn program(seed: u64) {
    let simulator = Simulator::new(SimulatedConfig::new(3).shuffled(seed)).unwrap();
    let control = simulator.control();
    let mut devices = simulator.devices();
    devices.push(host());
    let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let queues: Vec<Queue> = devices.iter().map(|device| Queue::new(device).unwrap()).collect();
    let new_buffer = |numbers: &mut Numbers| {
        let letters = vec![LETTERS[numbers.below(4)]; 64];
        if numbers.below(2) == 0 {
            Buffer::from_vec_nd(letters, [8, 8]).unwrap()
        } else {
            BufferOptions::new().page_size([3, 3]).from_vec_nd(letters, [8, 8]).unwrap()
        }
    };
    let mut buffers: Vec<Buffer<char, 2>> = (0..3).map(|_| new_buffer(&mut numbers)).collect();
    for _ in 0..if cfg!(miri) { 12 } else { 60 } {
        if numbers.below(6) == 0 {
            let operation =
                [Operation::Launch, Operation::Copy, Operation::Fill, Operation::Allocate][numbers.below(4)];
            control.fail_next(numbers.below(3), operation, 1 + numbers.below(3) as u64);
        }
        let queue = &queues[numbers.below(queues.len())];
        let (index, letter) = (numbers.below(3), LETTERS[numbers.below(4)]);
        let buffer = buffers[index].clone();
        let offset = [numbers.below(8), numbers.below(8)];
        let range = [1 + numbers.below(8 - offset[0]), 1 + numbers.below(8 - offset[1])];
        // Errors are expected: a command may fail, or depend on one that did.
        match numbers.below(10) {
            0..=2 => {
                let skip = numbers.below(3);
                _ = queue.submit(|cg| {
                    let data = cg.access_range(&buffer, Write, offset, range);
                    cg.parallel_for(range, move |item| {
                        if item.linear_id() % 3 != skip {
                            data.set(item, letter);
                        }
                    })
                });
            }
            3 => {
                let stop = numbers.below(64);
                _ = queue.submit(|cg| {
                    let data = cg.access_range(&buffer, ReadWrite, offset, range);
                    cg.parallel_for(range, move |item| {
                        if item.linear_id() == stop {
                            std::panic::resume_unwind(Box::new("on purpose"));
                        }
                        data.update(item, |old| if LETTERS.contains(&old) { letter } else { '\0' });
                    })
                });
            }
            4 => {
                let is_all = numbers.below(2) == 0;
                let (range, offset) = if is_all { ([8, 8], [0, 0]) } else { (range, offset) };
                _ = queue.submit(|cg| {
                    let data = cg.access_range(&buffer, Write, offset, range);
                    cg.fill(data, letter)
                });
            }
            5 => {
                let other = buffers[(index + 1) % 3].clone();
                _ = queue.submit(|cg| {
                    let source = cg.access_range(&buffer, Read, offset, range);
                    let target = cg.access_range(&other, Write, [0, 0], [8, 8]);
                    cg.copy(source, target)
                });
            }
            6 => {
                if let Ok(host) = buffer.host_access_range(Read, offset, range) {
                    check(host.iter(), seed);
                }
            }
            7 => {
                if let Ok(mut host) = buffer.host_access_range(Write, offset, range) {
                    check(host.iter(), seed);
                    host.for_each_mut(|_, element| *element = letter);
                }
            }
            8 => {
                if let Ok(copied) = queue.copy_to_host(&buffer, vec![letter; 64]).and_then(|copy| copy.wait()) {
                    check(&copied, seed);
                }
                _ = buffer.release(&devices[numbers.below(devices.len())]);
            }
            _ => {
                drop(buffer);
                let fresh = new_buffer(&mut numbers);
                let old = std::mem::replace(&mut buffers[index], fresh);
                if let Ok(letters) = old.into_vec() {
                    check(&letters, seed);
                }
            }
        }
    }
    for buffer in buffers {
        if let Ok(letters) = buffer.into_vec() {
            check(&letters, seed);
        }
    }
    for queue in queues {
        _ = queue.wait();
        _ = queue.take_errors();
    }
}

#[test]
fn no_program_ever_reads_a_value_that_nobody_wrote() {
    let cases = std::env::var("OXISYCL_TEST_CASES").ok().and_then(|text| text.parse().ok());
    (1..=cases.unwrap_or(if cfg!(miri) { 2 } else { 400 })).for_each(program);
}
