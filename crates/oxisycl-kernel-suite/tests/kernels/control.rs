//! Options, results and `?`, enums with data, patterns, loops, state machines.

use std::num::{NonZeroU8, NonZeroU32};
use std::ops::ControlFlow;

use crate::harness::{Env, kernels, scramble};

kernels![
    options_are_combined,
    errors_are_passed_on,
    enums_carry_data,
    slices_are_matched,
    guards_ranges_and_bindings,
    let_else_and_if_let,
    loops_have_labels_and_values,
    a_state_machine_reads_a_text,
    an_expression_is_evaluated_on_a_stack,
    control_flow_as_a_value,
    arguments_that_are_passed_by_value_are_copies,
];

fn options_are_combined(env: &Env) {
    env.compare(|i| {
        let number = scramble(i) % 100;
        let some = (number > 30).then_some(number);
        let chained =
            some.and_then(|value| value.checked_sub(40)).map(|value| value * 2).filter(|value| value % 3 != 0);
        let either = chained.or(some).xor((number % 2 == 0).then_some(1)).unwrap_or_default();
        let zipped = some.zip(chained).map_or(0, |(a, b)| a + b);
        let mut slot = chained;
        let taken = slot.take().is_some();
        let inserted = *slot.get_or_insert(number + 1);
        let niche = NonZeroU8::new(number as u8).map_or(255, |value| value.get().leading_zeros());
        ((either, zipped, taken), inserted, slot.replace(3), niche, some.is_some_and(|value| value > 90))
    });
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failure {
    Negative(i32),
    TooLarge { limit: u32, found: u32 },
    Empty,
}

impl From<NonZeroU32> for Failure {
    fn from(found: NonZeroU32) -> Self {
        Self::TooLarge { limit: 0, found: found.get() }
    }
}

fn root(value: i32) -> Result<u32, Failure> {
    let value = u32::try_from(value).map_err(|_| Failure::Negative(value))?;
    let limit = 2_000_000_000;
    if value > limit { Err(Failure::TooLarge { limit, found: value }) } else { Ok(value.isqrt()) }
}

fn remainder(value: u32) -> Result<(), NonZeroU32> {
    NonZeroU32::new(value % 5).map_or(Ok(()), Err)
}

fn steps(i: usize) -> Result<u32, Failure> {
    let first = root(scramble(i) as i32)?;
    let second = root(scramble(i + 1) as i32).or_else(|_| root(i as i32 - 100))?;
    remainder(first + second)?;
    first.checked_sub(second).ok_or(Failure::Empty)
}

fn errors_are_passed_on(env: &Env) {
    env.compare(|i| match steps(i) {
        Ok(value) => (0_u8, value, 0_u32),
        Err(Failure::Negative(value)) => (1, value.unsigned_abs(), 0),
        Err(Failure::TooLarge { limit, found }) => (2, limit, found),
        Err(failure @ Failure::Empty) => (3, u32::from(failure == Failure::Empty), 0),
    });
}

#[derive(Clone, Copy)]
enum Shape {
    Point,
    Circle(u16),
    Polygon { sides: [u16; 5], n_sides: u8 },
    Scaled(&'static str, u64),
}

fn shape(i: usize) -> Shape {
    let bits = scramble(i);
    match bits % 4 {
        0 => Shape::Point,
        1 => Shape::Circle(bits as u16),
        2 => Shape::Polygon { sides: std::array::from_fn(|k| (bits >> (k * 5)) as u16 & 31), n_sides: (i % 6) as u8 },
        _ => Shape::Scaled(if bits & 64 == 0 { "twice" } else { "three times" }, u64::from(bits)),
    }
}

fn enums_carry_data(env: &Env) {
    env.compare(|i| {
        let shapes: [Shape; 3] = std::array::from_fn(|k| shape(i + 31 * k));
        shapes.iter().fold(0_u64, |sum, shape| {
            sum.wrapping_mul(1009).wrapping_add(match shape {
                Shape::Point => 1,
                Shape::Circle(radius) => 3 * u64::from(*radius),
                Shape::Polygon { sides, n_sides } => {
                    sides.iter().take(usize::from(*n_sides)).map(|side| u64::from(*side)).sum()
                }
                Shape::Scaled(how, factor) => how.len() as u64 * factor,
            })
        })
    });
}

fn slices_are_matched(env: &Env) {
    fn weigh(values: &[u8]) -> u32 {
        match values {
            [] => 0,
            [one] => u32::from(*one),
            [first, .., last] if first == last => 1000 + weigh(&values[1..values.len() - 1]),
            [a @ 0..=99, b, rest @ ..] => u32::from(*a) + u32::from(*b) + 3 * weigh(rest),
            [_, middle @ .., 200..=255] => 7 + weigh(middle),
            [_, rest @ ..] => weigh(rest),
        }
    }
    env.compare(|i| {
        let bytes: [u8; 12] = std::array::from_fn(|k| (scramble(i * 12 + k) >> 7) as u8);
        weigh(&bytes[..i % 13])
    });
}

fn guards_ranges_and_bindings(env: &Env) {
    env.compare(|i| {
        let (x, y) = ((scramble(i) % 41) as i8 - 20, (scramble(i + 5) % 41) as i8 - 20);
        let place = match (x, y) {
            (0, 0) => 0,
            (i8::MIN..=-1, i8::MIN..=-1) => 1,
            (x, y) if x == y => 2,
            (x @ (1 | 3 | 5 | 7 | 9), _) => 100 + i32::from(x),
            (_, y @ 10..) if y % 2 == 0 => 200 + i32::from(y),
            (a, b) => i32::from(a) * i32::from(b),
        };
        let letter = match (scramble(i) >> 16) as u8 {
            b'0'..=b'9' => 'd',
            b'a'..=b'f' | b'A'..=b'F' => 'x',
            0x80.. => 'h',
            byte if byte.is_ascii_punctuation() => 'p',
            _ => '.',
        };
        let nested = match (Some(x.checked_abs()), Err::<u8, i8>(y)) {
            (Some(Some(1..=5)), Err(y)) => i32::from(y),
            (Some(Some(x)), Err(..0)) => -i32::from(x),
            _ => 77,
        };
        (place, letter, nested)
    });
}

fn let_else_and_if_let(env: &Env) {
    fn middle(values: &[u32]) -> Option<u32> {
        let [first, rest @ ..] = values else { return None };
        let Some((last, rest)) = rest.split_last() else { return Some(*first) };
        if let [only] = rest { Some(*only) } else { middle(rest).map(|value| value.wrapping_add(first ^ last)) }
    }
    env.compare(|i| {
        let values: [u32; 9] = std::array::from_fn(|k| scramble(i + k));
        let found = middle(&values[..i % 10]);
        let low = if let Some(value) = found
            && value % 2 == 0
        {
            value / 2
        } else {
            1
        };
        (found, low, matches!(found, Some(1..=2_000_000_000)))
    });
}

fn loops_have_labels_and_values(env: &Env) {
    env.compare(|i| {
        let mut steps = 0_u32;
        let product = 'search: loop {
            for a in 2..40_u32 {
                for b in a..40 {
                    steps += 1;
                    if (a * b + i as u32) % 97 == 13 {
                        break 'search a * 100 + b;
                    }
                    if steps > 900 {
                        break 'search u32::MAX;
                    }
                    if a * b > 600 {
                        continue;
                    }
                }
            }
        };
        let block = 'block: {
            if product == u32::MAX {
                break 'block 1;
            }
            if steps.is_multiple_of(2) {
                break 'block 2;
            }
            3
        };
        let mut n = scramble(i);
        while n > 100 && n % 7 != 0 {
            n -= n / 3;
        }
        (product, steps, block, n)
    });
}

#[derive(Clone, Copy)]
enum Reader {
    Start,
    Number { value: u32, negative: bool },
    Word(u32),
    Comment { depth: u8 },
}

fn a_state_machine_reads_a_text(env: &Env) {
    const TEXT: &[u8] = b"x1 = -42 (note (inner) 99) + 1234567 foo_bar -7) 0 (open";
    env.compare(|i| {
        let text = &TEXT[i % 20..TEXT.len() - i % 11];
        let (mut state, mut numbers, mut words) = (Reader::Start, 0_i64, 0_u32);
        for &byte in text.iter().chain(b" ") {
            state = match (state, byte) {
                (Reader::Comment { depth }, b'(') => Reader::Comment { depth: depth + 1 },
                (Reader::Comment { depth: 1 }, b')') => Reader::Start,
                (Reader::Comment { depth }, b')') => Reader::Comment { depth: depth - 1 },
                (state @ Reader::Comment { .. }, _) => state,
                (_, b'(') => Reader::Comment { depth: 1 },
                (Reader::Start, b'-') => Reader::Number { value: 0, negative: true },
                (Reader::Start, b'0'..=b'9') => Reader::Number { value: u32::from(byte - b'0'), negative: false },
                (Reader::Number { value, negative }, b'0'..=b'9') => {
                    Reader::Number { value: value.saturating_mul(10).saturating_add(u32::from(byte - b'0')), negative }
                }
                (Reader::Number { value, negative }, _) => {
                    numbers += if negative { -i64::from(value) } else { i64::from(value) };
                    Reader::Start
                }
                (Reader::Start, b'a'..=b'z') => Reader::Word(u32::from(byte)),
                (Reader::Word(hash), b'a'..=b'z' | b'_' | b'0'..=b'9') => {
                    Reader::Word(hash.wrapping_mul(33) ^ u32::from(byte))
                }
                (Reader::Word(hash), _) => {
                    words = words.wrapping_add(hash);
                    Reader::Start
                }
                (Reader::Start, _) => Reader::Start,
            };
        }
        (numbers, words)
    });
}

#[derive(Clone, Copy)]
enum Token {
    Push(i32),
    Binary(fn(i32, i32) -> Option<i32>),
    Swap,
}

fn evaluate(tokens: &[Token]) -> Option<i32> {
    let (mut stack, mut depth) = ([0; 8], 0);
    for token in tokens {
        match *token {
            Token::Push(value) => {
                *stack.get_mut(depth)? = value;
                depth += 1;
            }
            Token::Binary(operation) => {
                let [.., left, right] = stack[..depth] else { return None };
                depth -= 1;
                stack[depth - 1] = operation(left, right)?;
            }
            Token::Swap => stack[..depth].last_chunk_mut::<2>()?.reverse(),
        }
    }
    if let [result] = stack[..depth] { Some(result) } else { None }
}

fn an_expression_is_evaluated_on_a_stack(env: &Env) {
    env.compare(|i| {
        let number = |k: usize| Token::Push((scramble(i + k) % 2000) as i32 - 1000);
        let operation = |k: usize| match scramble(i + k) % 5 {
            0 => Token::Binary(i32::checked_add),
            1 => Token::Binary(i32::checked_sub),
            2 => Token::Binary(i32::checked_mul),
            3 => Token::Binary(i32::checked_div),
            _ => Token::Swap,
        };
        evaluate(&[number(0), number(1), operation(2), number(3), number(4), operation(5), operation(6), operation(7)])
    });
}

fn control_flow_as_a_value(env: &Env) {
    env.compare(|i| {
        let search = (1..100_u32).try_fold(i as u32, |sum, step| {
            let sum = sum.wrapping_mul(step) ^ step;
            if sum % 31 == 7 { ControlFlow::Break((step, sum)) } else { ControlFlow::Continue(sum) }
        });
        match search {
            ControlFlow::Break((step, sum)) => (true, step, sum),
            ControlFlow::Continue(sum) => (false, 0, sum),
        }
    });
}

/// Functions of C's calling convention get structs of this size by a copy that LLVM counts on the call to make.
#[derive(Clone, Copy)]
#[repr(C)]
struct Eight {
    values: [u64; 8],
}

extern "C" fn add_one(mut x: Eight, at: usize) -> u64 {
    x.values[at % 8] += 1;
    x.values.iter().sum()
}

extern "C" fn add_ten(mut x: Eight, at: usize) -> u64 {
    x.values[at % 8] += 10;
    x.values.iter().sum()
}

#[inline(never)]
extern "C" fn halves(mut x: Eight, depth: usize) -> u64 {
    if depth == 0 {
        return x.values.iter().sum();
    }
    x.values[depth % 8] /= 2;
    let deeper = halves(x, depth - 1);
    x.values[(depth + 1) % 8] += deeper;
    x.values.iter().fold(0, |sum, value| sum * 3 + value)
}

const ADDITIONS: [extern "C" fn(Eight, usize) -> u64; 2] = [add_one, add_ten];

/// On OpenCL a function that was called through a table wrote into its caller's value.
fn arguments_that_are_passed_by_value_are_copies(env: &Env) {
    env.compare(|i| {
        let mut x = Eight { values: [scramble(i).into(); 8] };
        x.values[i % 8] = 1;
        let add = ADDITIONS[i % 2];
        let (once, twice) = (add(x, i + 1), add(x, i + 1));
        (once, twice, x.values[(i + 1) % 8], halves(x, 3), x.values[3])
    });
}
