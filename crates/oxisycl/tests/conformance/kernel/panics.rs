//! The messages of kernels that panic: those of Rust, with the values of any type, the place and the work-item (N5).

use std::cell::RefCell;
use std::fmt;

use oxisycl::prelude::*;

use crate::harness::{Env, tests};

tests![
    panics_of_the_language_have_rusts_messages,
    panics_of_the_standard_library_have_rusts_messages,
    messages_show_values_with_their_formats,
    messages_show_values_of_users_types,
    values_within_values_do_no_harm,
    recursion_that_needs_more_than_the_stack_is_a_panic,
    recursion_that_is_deeper_than_there_are_frames_is_a_panic,
    allocations_beyond_the_arena_are_a_panic,
    messages_are_strings_that_the_kernel_knows,
    the_place_of_a_panic_is_exact,
];

/// The message of the one panic of a kernel with two work-items, of which the second fails. `x` is 1 in that one and 0 in the other, as the
/// kernel reads it from memory.
#[track_caller]
fn message(env: &Env, kernel: impl Fn(usize) + Copy + Send + Sync + 'static) -> String {
    let numbers = Buffer::from_vec(vec![0usize, 1]).unwrap();
    let event = env.queue().submit(|cg| {
        cg.name("failing");
        let numbers = cg.access(&numbers, Read);
        cg.parallel_for(2, move |item| {
            if item.index() == 1 {
                kernel(numbers.get(item));
            }
        })
    });
    let error = event.unwrap().wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Kernel);
    let text = error.to_string();
    let begin = format!("on device \"{}\" panicked in work-item [1] at ", env.device().name());
    assert!(text.contains("kernel \"failing\"") && text.contains(&begin), "{text}");
    text
}

macro_rules! says {
    ($env:expr, $($expected:expr => |$x:ident| $kernel:expr;)*) => {$({
        let expected: &str = &$expected;
        let text = message($env, |$x| _ = std::hint::black_box($kernel));
        assert!(text.ends_with(&format!(": {expected}")), "{expected:?} is not at the end of {text:?}");
    })*};
}

#[allow(unconditional_panic, arithmetic_overflow, reason = "that is what the test is about")]
fn panics_of_the_language_have_rusts_messages(env: &Env) {
    says! { env,
        "index out of bounds: the len is 3 but the index is 5" => |x| [1, 2, 3][5 * x];
        "attempt to divide by zero" => |x| 7 / (x - 1);
        "attempt to calculate the remainder with a divisor of zero" => |x| 7 % (x - 1);
        "attempt to divide with overflow" => |x| i32::MIN / -(x as i32);
        "explicit panic" => |x| if x == 1 { panic!() };
        "internal error: entered unreachable code" => |x| if x == 1 { unreachable!() };
        "internal error: entered unreachable code: case 1" => |x| if x == 1 { unreachable!("case {x}") };
        "assertion failed: x != 1" => |x| assert!(x != 1);
    }
    if cfg!(debug_assertions) {
        says! { env,
            "attempt to add with overflow" => |x| 255u8 + x as u8;
            "attempt to subtract with overflow" => |x| 0u32 - x as u32;
            "attempt to multiply with overflow" => |x| i64::MAX * (x as i64 + 1);
            "attempt to negate with overflow" => |x| -(i16::MIN + x as i16 - 1);
            "attempt to shift left with overflow" => |x| 1u32 << (31 + x);
        }
    }
}

fn panics_of_the_standard_library_have_rusts_messages(env: &Env) {
    says! { env,
        "called `Option::unwrap()` on a `None` value" => |x| [Some(1), None][x].unwrap();
        "a number was expected" => |x| [Some(1), None][x].expect("a number was expected");
        "called `Result::unwrap()` on an `Err` value: Error" => |x| [Ok(1), Err(std::fmt::Error)][x].unwrap();
        "it parses: ParseIntError { kind: InvalidDigit }" => |x| ["1", "one"][x].parse::<u32>().expect("it parses");
        "called `Result::unwrap_err()` on an `Ok` value: 5" => |x| [Err("no"), Ok(5)][x].unwrap_err();
        "range end index 4 out of range for slice of length 3" => |x| [1, 2, 3][x..4 * x].len();
        "slice index starts at 3 but ends at 1" => |x| [1, 2, 3][3 * x..x].len();
        "range start index 9 out of range for slice of length 3" => |x| [1, 2, 3][9 * x..].len();
        "copy_from_slice: source slice length (1) does not match destination slice length (2)"
            => |x| [0, 0].copy_from_slice(&[1, 2][..x]);
        "chunk size must be non-zero" => |x| [1, 2].chunks(x - 1).count();
    }
    let text = message(env, |x| _ = std::hint::black_box("häuser"[..2 * x].len()));
    assert!(text.contains("byte index 2 is not a char boundary; it is inside 'ä' (bytes 1..3"), "{text}");
    let text = message(env, |x| {
        let cell = RefCell::new(x);
        let held = cell.borrow_mut();
        let other = cell.borrow();
        assert_eq!(*held, *other);
    });
    assert!(text.contains("already mutably borrowed"), "{text}");
}

fn messages_show_values_with_their_formats(env: &Env) {
    says! { env,
        format!("{:>8}|{:<6.2}|{:#x}|{:?}", 1, 0.5f32, 255u8, 'é')
            => |x| if x == 1 { panic!("{x:>8}|{:<6.2}|{:#x}|{:?}", x as f32 / 2.0, 255u8, 'é') };
        format!("{:1$}|{2:.*}", 7, 5, 1.25) => |x| if x == 1 { panic!("{:1$}|{2:.*}", 7 * x, 5 * x, 1.25) };
        "name is \"text\" and yes" => |x| {
            let (name, answer) = ("text", true);
            if x == 1 { panic!("name is {name:?} and {}", if answer { "yes" } else { "no" }) }
        };
    }
    let expected = "assertion `left == right` failed: with 1\n  left: 1.5\n right: 2.5";
    says! { env, expected => |x| assert_eq!(x as f64 + 0.5, x as f64 + 1.5, "with {x}"); }
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Particle {
    position: [f32; 2],
    state: State,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Free,
    Bound { to: usize },
}

#[derive(Debug)]
enum Failure {
    #[expect(dead_code, reason = "only `Debug` reads it")]
    TooFar(f32),
}

struct Metres(f32);

impl fmt::Display for Metres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} m", self.0)
    }
}

fn messages_show_values_of_users_types(env: &Env) {
    let particle = |state| Particle { position: [0.5, -1.0], state };
    let expected = format!(
        "assertion `left == right` failed\n  left: {:?}\n right: {:?}",
        particle(State::Bound { to: 1 }),
        particle(State::Free)
    );
    says! { env,
        expected => |x| {
            let particle = |state| Particle { position: [0.5, -1.0], state };
            assert_eq!(particle(State::Bound { to: x }), particle(State::Free));
        };
        "called `Result::unwrap()` on an `Err` value: TooFar(2.5)"
            => |x| [Ok(1u8), Err(Failure::TooFar(x as f32 + 1.5))][x].as_ref().unwrap().count_ones();
        "3.5 m is too long for [1, 2]" => |x| if x == 1 { panic!("{} is too long for {:?}", Metres(3.5), [x, 2 * x]) };
    }
}

/// Values within each other.
struct Nested(usize);

impl std::fmt::Debug for Nested {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut tuple = f.debug_tuple("Nested");
        if self.0 > 0 {
            tuple.field(&Self(self.0 - 1));
        }
        tuple.finish()
    }
}

fn values_within_values_do_no_harm(env: &Env) {
    says! { env,
        "it is Nested(Nested(Nested))" => |x| if x == 1 { panic!("it is {:?}", Nested(2 * x)) };
    }
    // Deeper than the stack of a GPU, which cuts it off.
    let text = message(env, |x| {
        if x == 1 {
            panic!("it is {:?}", Nested(300 * x))
        }
    });
    assert!(text.contains(": it is Nested(Nested(Nested(Nested("), "{text}");
    says! { env,
        "it goes on" => |x| if x == 1 { panic!("it goes on") };
    }
}

/// Calls itself so many times, in a way that no compiler makes a loop of.
fn deep(n: usize) -> usize {
    if n == 0 { 1 } else { deep(n - 1).wrapping_mul(3).wrapping_add(n) }
}

fn recursion_that_needs_more_than_the_stack_is_a_panic(env: &Env) {
    if env.device().backend() != oxisycl::BackendKind::Cuda {
        env.skip("only on NVIDIA GPUs do kernels know where the stack for calls ends");
    }
    // More calls than fit into the largest stack that a work-item can be given.
    let text = message(env, |x| _ = std::hint::black_box(deep(200_000 * x)));
    assert!(text.contains("panics.rs:") && text.contains(": recursive calls need more stack than the "), "{text}");
    assert!(text.ends_with(" bytes that it has for them, as OXISYCL_CALL_STACK says"), "{text}");
    // Neither the device nor a recursion that fits is the worse for it.
    says! { env,
        format!("deep enough: {}", deep(50)) => |x| if x == 1 { panic!("deep enough: {}", deep(50 * x)) };
    }
}

fn recursion_that_is_deeper_than_there_are_frames_is_a_panic(env: &Env) {
    if env.device().backend() != oxisycl::BackendKind::OpenCl {
        env.skip("other devices have a stack of calls");
    }
    let text = message(env, |x| _ = std::hint::black_box(deep(200 * x)));
    assert!(text.contains(include_str!("../../messages/recursion.txt").trim()), "{text}");
    says! { env,
        format!("deep enough: {}", deep(60)) => |x| if x == 1 { panic!("deep enough: {}", deep(60 * x)) };
    }
}

/// Needs memory for so many numbers.
fn sum(n: usize) -> u64 {
    (0..n as u64).collect::<Vec<_>>().into_iter().rev().step_by(2).sum()
}

fn allocations_beyond_the_arena_are_a_panic(env: &Env) {
    if ![oxisycl::BackendKind::Cuda, oxisycl::BackendKind::OpenCl].contains(&env.device().backend()) {
        env.skip("kernels have the heap elsewhere");
    }
    let text = message(env, |x| _ = std::hint::black_box(sum(600 * x)));
    assert!(text.contains(include_str!("../../messages/arena.txt").trim()), "{text}");
    says! { env,
        format!("small enough: {}", sum(400)) => |x| if x == 1 { panic!("small enough: {}", sum(400 * x)) };
    }
}

#[inline(never)]
fn fail(message: &str) -> ! {
    panic!("{message}")
}

fn messages_are_strings_that_the_kernel_knows(env: &Env) {
    says! { env,
        "the second" => |x| if x == 1 { fail(["the first", "the second"][x]) };
        "the second" => |x| [Some(1), None][x].expect(["the first", "the second"][x]);
        "second half" => |x| if x == 1 { panic!("{}", &"first second half"[6 * x..]) };
    }
}

fn the_place_of_a_panic_is_exact(env: &Env) {
    let line = line!() + 1;
    let text = message(env, |x| assert!(x != 1, "here"));
    assert!(text.contains(&format!("panics.rs:{line}:33: here")), "{text}");
    // With `#[track_caller]`, the place is that of the call.
    let line = line!() + 1;
    let text = message(env, |x| _ = std::hint::black_box([Some(1), None][x].unwrap()));
    assert!(text.contains(&format!("panics.rs:{line}:77: called")), "{text}");
}
