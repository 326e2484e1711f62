//! Generic code, traits with static and dynamic dispatch, function pointers, recursion, operators.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Index, IndexMut, Mul, Neg, Not, Shl, Sub};

use crate::harness::{Env, N, kernels, scramble};

kernels![
    generic_functions_with_bounds,
    closures_are_arguments_and_results,
    traits_are_dispatched_statically,
    traits_are_dispatched_dynamically,
    default_methods_and_super_traits,
    function_pointers_are_chosen_at_run_time,
    functions_call_themselves,
    constants_are_generic_parameters,
    operators_are_overloaded,
    associated_types_and_constants,
    one_generic_kernel_for_several_types,
];

fn largest_of<T: PartialOrd + Copy, const LENGTH: usize>(values: [T; LENGTH]) -> T {
    values.iter().copied().fold(values[0], |largest, value| if value > largest { value } else { largest })
}

fn generic_functions_with_bounds(env: &Env) {
    env.compare(|i| {
        let bits = scramble(i);
        let bytes = largest_of(bits.to_le_bytes());
        let words = largest_of([bits as u16, (bits >> 16) as u16]);
        let signed = largest_of([bits as i32, -(i as i32), 17]);
        (bytes, words, signed, largest_of([f64::from(bits), 1e9]) as u64)
    });
}

fn twice<T>(f: impl Fn(T) -> T) -> impl Fn(T) -> T {
    move |value| f(f(value))
}

fn apply_each(values: &mut [u32], mut f: impl FnMut(usize, &mut u32)) {
    for (index, value) in values.iter_mut().enumerate() {
        f(index, value);
    }
}

fn closures_are_arguments_and_results(env: &Env) {
    env.compare(|i| {
        let step = scramble(i) & 0xFF;
        let add = twice(twice(move |value: u32| value.wrapping_mul(3).wrapping_add(step)));
        let mut values = [1, 2, 3, 4, 5];
        let mut total = 0_u32;
        apply_each(&mut values, |index, value| {
            *value = add(*value + index as u32);
            total = total.wrapping_add(*value);
        });
        let consume = move |offset: u32| values.map(|value| value ^ offset);
        (total, consume(step))
    });
}

trait Shape {
    const SIDES: u32;

    fn area(&self) -> u64;

    fn describe(&self) -> u64 {
        self.area() * 10 + u64::from(Self::SIDES)
    }
}

struct Square(u32);
struct Rectangle {
    width: u32,
    height: u32,
}

impl Shape for Square {
    const SIDES: u32 = 4;

    fn area(&self) -> u64 {
        u64::from(self.0) * u64::from(self.0)
    }
}

impl Shape for Rectangle {
    const SIDES: u32 = 4;

    fn area(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    fn describe(&self) -> u64 {
        !self.area()
    }
}

fn traits_are_dispatched_statically(env: &Env) {
    fn sum<A: Shape, B: Shape>(a: &A, b: &B) -> u64 {
        a.describe().wrapping_add(b.describe()).wrapping_add(u64::from(A::SIDES + B::SIDES))
    }
    env.compare(|i| {
        let (width, height) = (scramble(i) & 0xFFF, scramble(i + N) & 0xFFF);
        sum(&Square(width), &Rectangle { width, height })
    });
}

trait Animal {
    fn legs(&self) -> u32;
    fn grow(&mut self, by: u32);
}

struct Bird(u32);
struct Spider {
    size: u32,
    age: u8,
}

impl Animal for Bird {
    fn legs(&self) -> u32 {
        2 + self.0
    }

    fn grow(&mut self, by: u32) {
        self.0 = self.0.wrapping_add(by);
    }
}

impl Animal for Spider {
    fn legs(&self) -> u32 {
        8_u32.wrapping_mul(self.size).wrapping_add(u32::from(self.age))
    }

    fn grow(&mut self, by: u32) {
        self.size ^= by;
        self.age = self.age.wrapping_add(1);
    }
}

fn traits_are_dispatched_dynamically(env: &Env) {
    env.compare(|i| {
        let (mut bird, mut spider) = (Bird(i as u32), Spider { size: scramble(i), age: 250 });
        let mut legs = 0_u32;
        for step in 0..10 {
            // Which one it is, is not known before the work-item runs.
            let animal: &mut dyn Animal = if scramble(i + step) & 1 == 0 { &mut bird } else { &mut spider };
            animal.grow(step as u32);
            legs = legs.rotate_left(5) ^ animal.legs();
        }
        let zoo: [&dyn Animal; 3] = [&bird, &spider, &bird];
        zoo.iter().fold(legs, |sum, animal| sum.wrapping_add(animal.legs()))
    });
}

trait Named {
    fn name(&self) -> &'static str;
}

trait Greeting: Named {
    fn greeting_length(&self) -> usize {
        "hello, ".len() + self.name().len()
    }
}

struct Short;
struct Long;

impl Named for Short {
    fn name(&self) -> &'static str {
        "Al"
    }
}
impl Named for Long {
    fn name(&self) -> &'static str {
        "Bartholomew"
    }
}
impl Greeting for Short {}
impl Greeting for Long {
    fn greeting_length(&self) -> usize {
        100 + self.name().bytes().filter(|byte| *byte == b'o').count()
    }
}

fn default_methods_and_super_traits(env: &Env) {
    env.compare(|i| {
        let greeting: &dyn Greeting = if scramble(i).is_multiple_of(3) { &Short } else { &Long };
        greeting.greeting_length() as u32 + u32::from(greeting.name().as_bytes()[i % 2])
    });
}

fn function_pointers_are_chosen_at_run_time(env: &Env) {
    fn plus(a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }
    fn minus(a: u32, b: u32) -> u32 {
        a.wrapping_sub(b)
    }
    fn times(a: u32, b: u32) -> u32 {
        a.wrapping_mul(b | 1)
    }
    env.compare(|i| {
        let operations: [fn(u32, u32) -> u32; 4] = [plus, minus, times, |a, b| a ^ b.rotate_right(7)];
        (0..16).fold(i as u32, |value, step| operations[(scramble(i + step) % 4) as usize](value, scramble(step)))
    });
}

fn functions_call_themselves(env: &Env) {
    fn ackermann(m: u32, n: u32) -> u32 {
        match (m, n) {
            (0, n) => n + 1,
            (m, 0) => ackermann(m - 1, 1),
            (m, n) => ackermann(m - 1, ackermann(m, n - 1)),
        }
    }
    fn is_even(n: u32) -> bool {
        n == 0 || is_odd(n - 1)
    }
    fn is_odd(n: u32) -> bool {
        n != 0 && is_even(n - 1)
    }
    fn hanoi(n: u32, from: u8, to: u8, moves: &mut u64) {
        if n > 0 {
            let other = 6 - from - to;
            hanoi(n - 1, from, other, moves);
            *moves = moves.wrapping_mul(31).wrapping_add(u64::from(from * 4 + to));
            hanoi(n - 1, other, to, moves);
        }
    }
    env.compare(|i| {
        let mut moves = 0;
        hanoi((i % 6) as u32, 1, 3, &mut moves);
        (ackermann((i % 3) as u32, (i % 4) as u32), is_even((i % 50) as u32), moves)
    });
}

struct Ring<const SIZE: usize> {
    slots: [u16; SIZE],
    next: usize,
}

impl<const SIZE: usize> Ring<SIZE> {
    const EMPTY: Self = Self { slots: [0; SIZE], next: 0 };

    fn push(&mut self, value: u16) -> u16 {
        let old = std::mem::replace(&mut self.slots[self.next], value);
        self.next = (self.next + 1) % SIZE;
        old
    }
}

fn constants_are_generic_parameters(env: &Env) {
    fn checksum<const SIZE: usize, const FACTOR: u32>(i: usize) -> u32 {
        let mut ring = Ring::<SIZE>::EMPTY;
        let pushed = (0..20).map(|step| u32::from(ring.push(scramble(i * 20 + step) as u16)));
        pushed.fold(0, |sum, old| sum.wrapping_mul(FACTOR).wrapping_add(old))
    }
    env.compare(|i| [checksum::<3, 31>(i), checksum::<7, 33>(i), checksum::<16, 101>(i)]);
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Fraction {
    numerator: i64,
    denominator: i64,
}

impl Fraction {
    fn new(numerator: i64, denominator: i64) -> Self {
        let (mut a, mut b) = (numerator.abs(), denominator.abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let sign = denominator.signum();
        Self { numerator: sign * numerator / a.max(1), denominator: sign * denominator / a.max(1) }
    }
}

impl Add for Fraction {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let numerator = self.numerator * other.denominator + other.numerator * self.denominator;
        Self::new(numerator, self.denominator * other.denominator)
    }
}
impl Neg for Fraction {
    type Output = Self;

    fn neg(self) -> Self {
        Self { numerator: -self.numerator, ..self }
    }
}
impl Sub for Fraction {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}
impl Mul for Fraction {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self::new(self.numerator * other.numerator, self.denominator * other.denominator)
    }
}
impl AddAssign<i64> for Fraction {
    fn add_assign(&mut self, other: i64) {
        *self = *self + Self::new(other, 1);
    }
}

struct Bits([u8; 4]);

impl Index<usize> for Bits {
    type Output = u8;

    fn index(&self, index: usize) -> &u8 {
        &self.0[index % 4]
    }
}
impl IndexMut<usize> for Bits {
    fn index_mut(&mut self, index: usize) -> &mut u8 {
        &mut self.0[index % 4]
    }
}
impl Not for Bits {
    type Output = Self;

    fn not(self) -> Self {
        Self(self.0.map(|byte| !byte))
    }
}
impl Shl<u32> for Bits {
    type Output = Self;

    fn shl(self, count: u32) -> Self {
        Self((u32::from_le_bytes(self.0) << (count % 32)).to_le_bytes())
    }
}

fn operators_are_overloaded(env: &Env) {
    env.compare(|i| {
        let a = Fraction::new(i as i64 - 500, 1 + (scramble(i) % 30) as i64);
        let b = Fraction::new((scramble(i) % 100) as i64, 7);
        let mut c = a * b - a + b;
        c += 3;
        let mut bits = !Bits(scramble(i).to_be_bytes()) << (i as u32);
        bits[i] ^= 0x5A;
        let chosen = bits[i + 1];
        (c.numerator, c.denominator, u32::from_le_bytes(bits.0), chosen, a == b)
    });
}

trait Code {
    type Word: Copy + Into<u64> + Debug;
    const WIDTH: u32;

    fn encode(value: u32) -> Self::Word;
}

struct Gray;
struct Parity;

impl Code for Gray {
    type Word = u32;
    const WIDTH: u32 = 32;

    fn encode(value: u32) -> u32 {
        value ^ (value >> 1)
    }
}
impl Code for Parity {
    type Word = u64;
    const WIDTH: u32 = 33;

    fn encode(value: u32) -> u64 {
        u64::from(value) << 1 | u64::from(value.count_ones() & 1)
    }
}

fn associated_types_and_constants(env: &Env) {
    fn total<C: Code>(i: usize) -> u64 {
        (0..5).map(|step| -> u64 { C::encode(scramble(i + step)).into() }).sum::<u64>() << (C::WIDTH % 8)
    }
    env.compare(|i| (total::<Gray>(i), total::<Parity>(i)));
}

/// One kernel for each type that it is called with.
fn compare_sums<T>(env: &Env, convert: fn(u32) -> T)
where
    T: crate::outcome::Outcome + From<u8> + Add<Output = T> + Mul<Output = T>,
{
    // A function pointer is a host address: what the kernel needs of it is in the table that it captures.
    let table: [T; 4] = [1, 20, 3, 40].map(convert);
    env.compare(move |i| table[i % 4] * T::from((i % 5) as u8) + table[(i + 1) % 4]);
}

fn one_generic_kernel_for_several_types(env: &Env) {
    compare_sums::<u8>(env, |x| x as u8);
    compare_sums::<u64>(env, u64::from);
    compare_sums::<i16>(env, |x| x as i16);
    compare_sums::<f32>(env, |x| x as f32);
}
