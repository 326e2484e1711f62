//! Cells, drops, raw memory, statics, and functions of another crate.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::rc::Weak;

use bytemuck::{Pod, TransparentWrapper, Zeroable};
use oxisycl_kernel_suite::{Cubic, POWERS_OF_TEN, digits, greatest_common_divisor, longest_run};

use crate::harness::{Env, fraction, kernels, scramble};
use crate::outcome::Tolerance::Contracted;

kernels![
    cells_are_shared,
    values_are_swapped_replaced_and_taken,
    drops_run_in_order,
    memory_is_initialised_in_pieces,
    bytes_are_cast_to_structs,
    unions_and_transmutes,
    pointers_walk_through_memory,
    tables_and_texts_are_static,
    functions_of_another_crate_are_called,
    types_are_measured,
    memory_is_allocated_and_freed,
    objects_are_boxed,
    strings_grow,
];

fn cells_are_shared(env: &Env) {
    env.compare(|i| {
        let (counter, log) = (Cell::new(i as u32), RefCell::new([0_u8; 6]));
        let bump = |by: u32| {
            counter.set(counter.get().wrapping_mul(3).wrapping_add(by));
            if let Ok(mut log) = log.try_borrow_mut() {
                log[(counter.get() % 6) as usize] += 1;
            }
        };
        (0..10).for_each(|step| bump(scramble(step)));
        {
            let _held = log.borrow();
            bump(1);
        }
        let slice: &[Cell<u8>] = &[Cell::new(1), Cell::new(2)];
        slice[0].swap(&slice[1]);
        (counter.replace(0), log.into_inner(), slice[0].get())
    });
}

fn values_are_swapped_replaced_and_taken(env: &Env) {
    env.compare(|i| {
        let (mut a, mut b) = ([scramble(i); 3], [i as u32, 1, 2]);
        mem::swap(&mut a, &mut b);
        let old = mem::replace(&mut a[1], 99);
        let mut text = "kernel";
        let taken = mem::take(&mut text).len() as u32 + text.len() as u32;
        let mut option = Some(old);
        let first = option.take_if(|value| *value == 1);
        (a, b, old, taken, first.is_some() && option.is_none())
    });
}

struct Guard<'a> {
    log: &'a Cell<u64>,
    number: u64,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.log.set(self.log.get() * 10 + self.number);
    }
}

fn drops_run_in_order(env: &Env) {
    env.compare(|i| {
        let log = Cell::new(0);
        let guard = |number: u64| Guard { log: &log, number };
        let early = || {
            let _a = guard(1);
            let b = guard(2);
            if scramble(i).is_multiple_of(3) {
                return 7;
            }
            drop(b);
            let _forgotten = ManuallyDrop::new(guard(9));
            let _array = [guard(3), guard(4)];
            mem::forget(guard(8));
            let mut kept = ManuallyDrop::new(guard(5));
            if scramble(i).is_multiple_of(2) {
                // SAFETY: it is not used again.
                unsafe { ManuallyDrop::drop(&mut kept) };
            }
            0
        };
        let result = early();
        let _ = guard(6);
        (log.get(), result)
    });
}

fn memory_is_initialised_in_pieces(env: &Env) {
    env.compare(|i| {
        let mut slots = [const { MaybeUninit::<u32>::uninit() }; 10];
        let length = i % 11;
        for (k, slot) in slots[..length].iter_mut().enumerate() {
            slot.write(scramble(i + k));
        }
        // SAFETY: the first `length` slots were just written.
        let written = unsafe { &*(&raw const slots[..length] as *const [u32]) };
        let cell = UnsafeCell::new(written.len() as u32);
        // SAFETY: there is no other reference to the cell's content.
        unsafe { *cell.get() += 1 };
        (written.iter().fold(0, |sum: u32, value| sum ^ value.rotate_left(3)), cell.into_inner())
    });
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Packet {
    kind: u16,
    length: u16,
    payload: [u32; 3],
}

#[derive(TransparentWrapper)]
#[repr(transparent)]
struct Meters(f32);

fn bytes_are_cast_to_structs(env: &Env) {
    env.compare(|i| {
        let words: [u32; 8] = std::array::from_fn(|k| scramble(i + k));
        let packets: &[Packet] = bytemuck::cast_slice(&words);
        let kinds = packets.iter().map(|packet| u32::from(packet.kind ^ packet.length) + packet.payload[i % 3] % 7);
        let bytes = bytemuck::bytes_of(&packets[1]);
        let mut zeroed = Packet::zeroed();
        zeroed.kind = 7;
        let back: [u8; 16] = bytemuck::cast(zeroed);
        let meters = Meters::peel(Meters(1.5));
        let fits = bytemuck::try_cast_slice::<u8, u32>(&bytes[..13]).is_err();
        (kinds.fold(0_u32, u32::wrapping_add), bytes[i % 16], back, meters, fits)
    });
}

#[repr(C)]
union Number {
    float: f32,
    bits: u32,
    bytes: [u8; 4],
}

fn unions_and_transmutes(env: &Env) {
    env.compare(|i| {
        let mut number = Number { bits: scramble(i) & 0x7F7F_FFFF };
        // SAFETY: any bits are valid for all three fields.
        let (bytes, exponent) = unsafe { (number.bytes, (number.bits >> 23) as u8) };
        number.float = f32::from(bytes[0]) + 0.5;
        // SAFETY: as above; the arrays have the same size.
        let (bits, pairs) = unsafe { (number.bits, mem::transmute::<[u8; 4], [u16; 2]>(bytes)) };
        (bytes, exponent, bits, pairs)
    });
}

fn pointers_walk_through_memory(env: &Env) {
    env.compare(|i| {
        let mut data: [u32; 16] = std::array::from_fn(|k| scramble(i + k));
        let start = data.as_mut_ptr();
        // SAFETY: all offsets are below 16, the array's length, and the bytes of numbers may be read one by one.
        unsafe {
            start.add(3).write(7);
            start.copy_to(start.add(8), 4);
            start.add(1).swap(start.add(15));
            let distance = start.add(9).offset_from(start) as u32;
            let byte = start.cast::<u8>().add(i % 64).read();
            let unaligned = start.cast::<u8>().add(1 + i % 32).cast::<u64>().read_unaligned();
            let volatile = start.add(2).read_volatile();
            (data, distance, byte, unaligned, volatile)
        }
    });
}

static PRIMES: [u16; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
static MONTHS: [(&str, u8); 4] = [("January", 31), ("February", 28), ("March", 31), ("April", 30)];
const SQUARES: [u64; 64] = {
    let mut squares = [0; 64];
    let mut n = 0;
    while n < 64 {
        squares[n] = (n * n) as u64;
        n += 1;
    }
    squares
};
static NESTED: &[&[u8]] = &[b"one", b"", b"three", &[1, 2, 3, 4]];

fn tables_and_texts_are_static(env: &Env) {
    env.compare(|i| {
        let (name, days) = MONTHS[i % 4];
        let letter = name.as_bytes()[i % name.len()];
        let row = NESTED[i / 4 % 4];
        let place = row.iter().position(|byte| *byte == b'e').map(|place| place as u8);
        (PRIMES[scramble(i) as usize % 12], SQUARES[i % 64], days, letter, place)
    });
}

fn functions_of_another_crate_are_called(env: &Env) {
    env.compare_within(Contracted(1e-12), |i| {
        let (a, b) = (u64::from(scramble(i)) * 6, u64::from(scramble(i + 1)) * 9);
        let runs: [u8; 20] = std::array::from_fn(|k| (scramble(i + k) % 2) as u8);
        let cubic = Cubic { coefficients: std::array::from_fn(|k| f64::from(fraction(i + k)) - 0.5) };
        let at = cubic.at(1.25) + cubic.derivative().at(-0.5);
        (
            digits(scramble(i) >> (i % 32)),
            greatest_common_divisor(a, b),
            longest_run(&runs) as u32,
            at,
            POWERS_OF_TEN[i % 10],
        )
    });
}

fn types_are_measured(env: &Env) {
    struct Marker<T>(PhantomData<T>);
    env.compare(|i| {
        let sizes = [size_of::<Option<char>>(), size_of::<Marker<u64>>(), align_of::<u128>(), size_of::<(u8, u32)>()];
        let value: &dyn std::any::Any = if i % 2 == 0 { &7_u8 } else { &8_i64 };
        let dangling = Weak::<u32>::new().upgrade().is_none();
        let kind = value.downcast_ref::<u8>().map_or(2, |value| *value) + u8::from(value.is::<i64>());
        (
            sizes.map(|size| size as u32),
            kind,
            mem::size_of_val(value) as u32,
            mem::needs_drop::<Guard<'_>>() && dangling,
        )
    });
}

fn memory_is_allocated_and_freed(env: &Env) {
    env.compare(|i| {
        let mut values = Vec::new();
        (0..i % 20).for_each(|k| values.push(scramble(i + k) % 100));
        let sum: u32 =
            (0..50).map(|k| std::iter::repeat_n(k as u32, 30).collect::<Vec<u32>>().iter().sum::<u32>()).sum();
        values.retain(|value| value % 3 != 0);
        // Stable, and in order of what was there.
        let mut pairs: Vec<(u32, usize)> = (0..16).map(|k| (scramble(i + k) % 4, k)).collect();
        pairs.sort_by_key(|pair| pair.0);
        let order = pairs.iter().fold(0_u64, |order, pair| order << 4 | pair.1 as u64);
        (values.iter().sum::<u32>() + *Box::new(i as u32), sum, order)
    });
}

fn objects_are_boxed(env: &Env) {
    env.compare(|i| {
        let mut steps: Vec<Box<dyn Fn(u64) -> u64>> = Vec::new();
        for k in 0..(i % 7) as u64 {
            steps.push(if k % 2 == 0 { Box::new(move |x| x * 3 + k) } else { Box::new(|x| x ^ 0x55) });
        }
        steps.iter().fold(i as u64, |value, step| step(value))
    });
}

fn strings_grow(env: &Env) {
    env.compare(|i| {
        let mut text = String::from("a");
        (0..i % 40).for_each(|k| text.push(char::from(b'a' + (k % 26) as u8)));
        text.insert_str(1, "\u{e9}\u{4e2d}");
        let upper = text.to_uppercase();
        (text.len() as u32, upper.bytes().map(u32::from).sum::<u32>(), text.find('z').is_some())
    });
}
