//! What kernels print: order, wholeness, values, and buffers that are full (T1, T2).

use std::fmt;
use std::sync::{Arc, Mutex};

use oxisycl::group::Fixed1;
use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::code;

tests![
    lines_of_a_work_item_are_in_its_order,
    lines_are_never_within_others,
    long_texts_are_whole,
    numbers_print_as_on_the_host,
    strings_print_as_on_the_host,
    users_types_print_as_on_the_host,
    what_is_implemented_for_references_is_what_prints,
    pieces_of_a_line_come_one_after_the_other,
    output_is_there_before_the_wait_returns,
    a_kernel_that_panics_has_printed,
    a_full_buffer_loses_lines_and_nothing_else,
    helpers_of_kernels_print,
    a_handler_of_output_must_not_wait,
    group_scope_prints_in_each_work_item_of_a_device_and_a_phase_in_one,
];

/// What is printed while `f` runs.
fn printed(f: impl FnOnce()) -> String {
    let text = Arc::new(Mutex::new(String::new()));
    let kept = text.clone();
    oxisycl::set_output_handler(Some(Arc::new(move |piece: &str| kept.lock().unwrap().push_str(piece))));
    f();
    oxisycl::set_output_handler(None);
    std::mem::take(&mut *text.lock().unwrap())
}

/// What one work-item prints.
fn printed_by(env: &Env, kernel: impl for<'wi> Fn(Item<'wi, 1>) + Copy + Send + Sync + 'static) -> String {
    printed(|| env.queue().parallel_for(1, kernel).unwrap().wait().unwrap())
}

fn lines_of_a_work_item_are_in_its_order(env: &Env) {
    for queue in [env.queue(), env.in_order_queue()] {
        let text = printed(|| {
            let kernel = queue.parallel_for([10, 30], |item| {
                for line in 0..4 {
                    oxisycl::println!("{} {} {line}", item.get(0), item.get(1));
                }
            });
            kernel.unwrap().wait().unwrap();
        });
        let mut next = [[0; 30]; 10];
        for line in text.lines() {
            let numbers: Vec<usize> = line.split(' ').map(|number| number.parse().unwrap()).collect();
            let [y, x, number] = numbers[..] else { panic!("{line}") };
            assert_eq!(number, next[y][x], "{line}");
            next[y][x] += 1;
        }
        assert_eq!(next, [[4; 30]; 10]);
    }
}

fn lines_are_never_within_others(env: &Env) {
    let text = printed(|| {
        let kernel = env.queue().parallel_for(3000, |item| {
            let [a, b, c] = [item.index(), item.index() * 2, item.index() * 3];
            oxisycl::println!("{a}:{b:>9}:{c:<9}:{a:x}");
        });
        kernel.unwrap().wait().unwrap();
    });
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let mut expected: Vec<String> = (0..3000).map(|i| format!("{i}:{:>9}:{:<9}:{i:x}", 2 * i, 3 * i)).collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

/// Two thousand letters.
const LONG: &str = {
    const LETTERS: [u8; 2000] = [b'x'; 2000];
    match std::str::from_utf8(&LETTERS) {
        Ok(text) => text,
        Err(_) => panic!("letters are text"),
    }
};

fn long_texts_are_whole(env: &Env) {
    let text = printed(|| {
        let kernel = env.queue().parallel_for(20, |item| {
            let part = &LONG[item.index()..];
            oxisycl::println!("{part}{part}{part}{part}{part}");
        });
        kernel.unwrap().wait().unwrap();
    });
    let mut lengths: Vec<usize> = text.lines().map(|line| line.bytes().filter(|byte| *byte == b'x').count()).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(lengths, (0..20).map(|i| 5 * (2000 - i)).collect::<Vec<_>>());
}

fn numbers_print_as_on_the_host(env: &Env) {
    macro_rules! same {
        ($($value:expr => $($format:literal)+;)*) => {$(
            let value = $value;
            let text = printed_by(env, move |_| {
                $(oxisycl::println!(concat!("{:", $format, "}|"), value);)+
            });
            let mut expected = String::new();
            $(expected.push_str(&format!(concat!("{:", $format, "}|\n"), value));)+
            assert_eq!(text, expected, "{}", stringify!($value));
        )*};
    }
    same! {
        -128i8 => "" "?" "x" "#b" "+" "08";
        -32_000i16 => "" ">9" "#X";
        i32::MIN => "" "?" "_^20" "#010x" "e";
        i64::MIN => "" "o" "<30";
        i128::MIN => "" "x" "+45";
        -1isize => "" "x" "#?";
        200u8 => "" "#010b" "X?";
        60_000u16 => "" "E";
        u32::MAX => "" "015" "x?";
        u64::MAX => "" ">25";
        u128::MAX => "" "#x" "e";
        usize::MAX => "" "?";
        1.5f32 => "" "?" ".3" "8.2" "e" "+08.1";
        f32::NAN => "" "?" "9";
        f32::MIN_POSITIVE => "" "?" "e" ".50";
        -0.0f64 => "" "?" "+";
        f64::MAX => "" "e" "?";
        1.0f64 / 3.0 => "" ".0" ".17" "#?" "*^30.4";
        f64::NEG_INFINITY => "" "9";
        true => "" "?" ">6";
        'ß' => "" "?" "*<4";
        '\n' => "?";
    }
    let (width, precision) = (12usize, 3usize);
    let text = printed_by(env, move |item| {
        let x = 2.0f32 / (3 + item.index()) as f32;
        oxisycl::println!("{x:>width$.precision$} {0:1$} {2:.3$}", 7, width, 0.125, precision);
    });
    let x = 2.0f32 / 3.0;
    assert_eq!(text, format!("{x:>width$.precision$} {0:1$} {2:.3$}\n", 7, width, 0.125, precision));
}

fn strings_print_as_on_the_host(env: &Env) {
    let text = printed_by(env, |item| {
        let names = ["", "häuser", "a\tb\"c\n", "日本語"];
        for n in 0..4 {
            let name = names[(n + item.index()) % 4];
            oxisycl::println!(
                "{name}|{name:?}|{name:>8}|{name:.2}|{name:*^7.1}|{}",
                name.get(..name.len() / 6).unwrap_or("none")
            );
        }
        oxisycl::println!("\x1b[1mbraces {{}} and 100 %\x1b[0m");
        oxisycl::println!();
        oxisycl::println!("");
        oxisycl::print!("");
    });
    let mut expected = String::new();
    for name in ["", "häuser", "a\tb\"c\n", "日本語"] {
        let start = name.get(..name.len() / 6).unwrap_or("none");
        expected.push_str(&format!("{name}|{name:?}|{name:>8}|{name:.2}|{name:*^7.1}|{start}\n"));
    }
    assert_eq!(text, expected + "\x1b[1mbraces {} and 100 %\x1b[0m\n\n\n");
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Body {
    position: [f32; 3],
    mass: f64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Star,
    Planet { moons: u8 },
    Comet(Option<i32>, bool),
}

#[derive(Clone, Copy)]
struct Degrees(f32);

impl fmt::Display for Degrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)?;
        f.pad("°")
    }
}

/// Shows more than it holds, and a reference to it something else.
#[derive(Clone, Copy)]
struct Thousands(u8);

impl fmt::Display for Thousands {
    #[inline(always)]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&(u64::from(self.0) * 1000), f)
    }
}

impl fmt::LowerHex for &Thousands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt("text", f)
    }
}

impl fmt::Debug for &Thousands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&(u64::from(self.0) << 33), f)
    }
}

/// The formatting methods of this type are inlined into the library's method for references. `Debug` prints a number in another form,
/// `Octal` may print nothing, and `Display` prints a text of its own length.
#[derive(Clone, Copy)]
#[repr(C)]
struct Inlined([u8; 0], u64);

impl fmt::Display for Inlined {
    #[inline(always)]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::str::from_utf8(&self.0).map_or(Ok(()), |text| f.pad(text))
    }
}

impl fmt::Debug for Inlined {
    #[inline(always)]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.1, f)
    }
}

impl fmt::Octal for Inlined {
    #[inline(always)]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.1 > 100 { fmt::Octal::fmt(&self.1, f) } else { Ok(()) }
    }
}

fn what_is_implemented_for_references_is_what_prints(env: &Env) {
    let text = printed_by(env, |item| {
        let value = Thousands(item.index() as u8 + 3);
        let shown = &value;
        oxisycl::println!("{} {} {:x} {:?} {}", shown, &shown, shown, shown, &&"text");
        // A number stands beside the reference, where the length of a text would be.
        let pairs = [(&Inlined([], 30), item.index() + 64), (&Inlined([], 300), 40)];
        let first = item.index() % 2;
        let ((one, n), (other, _)) = (pairs[first], pairs[1 - first]);
        oxisycl::println!("<{}> {n} {:?} <{:o}> <{:o}>", one, one, one, other);
    });
    assert_eq!(text, "3000 3000 text 25769803776 text\n<> 64 1e <> <454>\n");
}

fn users_types_print_as_on_the_host(env: &Env) {
    fn bodies(mass: f64) -> [Body; 3] {
        [Kind::Star, Kind::Planet { moons: 2 }, Kind::Comet(Some(-7), true)].map(|kind| Body {
            position: [0.1, -2.5, 1e30],
            mass,
            kind,
        })
    }
    // Several kernels, since one with all of it takes an OpenCL driver more than a minute to compile.
    let text = printed_by(env, |item| {
        for body in &bodies(item.index() as f64 + 0.25) {
            oxisycl::println!("{body:?} at {:8.1} in {item:?}", Degrees(body.position[1]));
        }
    });
    let bodies_here = bodies(0.25);
    let line = |body: &Body| format!("{body:?} at {:8.1} in Item {{ id: [0], range: [1] }}\n", Degrees(-2.5));
    assert_eq!(text, bodies_here.iter().map(line).collect::<String>());
    let text = printed_by(env, |item| oxisycl::println!("{:#?}", bodies(item.index() as f64 + 0.25)[2]));
    assert_eq!(text, format!("{:#?}\n", bodies_here[2]));
    let text = printed_by(env, |item| {
        let bodies = bodies(item.index() as f64 + 0.25);
        oxisycl::println!("{:?} {:02x?} {:?}", &bodies[0].position[1..], [7u8, 255], (1, "two", '3', ()));
        oxisycl::println!("{:?} {:?}", Some(item.index()), "x".parse::<u32>());
        oxisycl::println!("{} {:>9}", format_args!("{}/{:>3}", 1, 2), format_args!("{:.1}", 0.25));
    });
    let expected =
        format!("[-2.5, 1e30] [07, ff] (1, \"two\", '3', ())\nSome(0) {:?}\n1/  2 0.2\n", "x".parse::<u32>());
    assert_eq!(text, expected);
}

fn pieces_of_a_line_come_one_after_the_other(env: &Env) {
    let text = printed_by(env, |item| {
        for n in item.index()..5 {
            oxisycl::print!("{n} ");
        }
        oxisycl::println!("end");
    });
    assert_eq!(text, "0 1 2 3 4 end\n");
}

fn output_is_there_before_the_wait_returns(env: &Env) {
    let queue = env.in_order_queue();
    for n in 0..50 {
        let text = printed(|| {
            let event = queue.parallel_for(3, move |item| oxisycl::println!("{n} {}", item.index())).unwrap();
            if n % 2 == 0 { event.wait().unwrap() } else { queue.wait().unwrap() }
        });
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, [format!("{n} 0"), format!("{n} 1"), format!("{n} 2")]);
    }
}

fn a_kernel_that_panics_has_printed(env: &Env) {
    let text = printed(|| {
        let kernel = env.queue().single_task(|_| {
            oxisycl::println!("before");
            panic!("on purpose");
        });
        assert_eq!(code(kernel.unwrap().wait()), ErrorCode::Kernel);
    });
    assert_eq!(text, "before\n");
}

fn a_full_buffer_loses_lines_and_nothing_else(env: &Env) {
    let queue = Queue::builder().device(env.device()).print_buffer(4096).build().unwrap();
    let buffer = Buffer::from_vec(vec![0u32; 1000]).unwrap();
    let text = printed(|| {
        let kernel = queue.submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            cg.parallel_for(1000, move |item| {
                oxisycl::println!("line {:>4} {:?}", item.index(), Kind::Comet(None, false));
                data.set(item, 7);
            })
        });
        kernel.unwrap().wait().unwrap();
    });
    let n_lines = text.lines().count();
    let ends_well = |line: &str| line.starts_with("line ") && line.ends_with(" Comet(None, false)") && line.len() == 28;
    assert!(text.ends_with('\n') && text.lines().all(ends_well), "{text}");
    // A line takes 16 bytes, 24 for each value, and the text of the one that the device formats.
    let keeps_all = !matches!(env.device().backend(), oxisycl::BackendKind::Cuda | oxisycl::BackendKind::OpenCl);
    assert_eq!(n_lines, if keeps_all { 1000 } else { 4096 / (16 + 2 * 24 + 24) });
    assert_eq!(buffer.into_vec().unwrap(), [7; 1000]);
    assert_eq!(code(Queue::builder().device(env.device()).print_buffer(usize::MAX).build()), ErrorCode::Invalid);
}

#[inline(never)]
fn helper(n: usize) -> usize {
    oxisycl::println!("helper {n}");
    n + 1
}

fn helpers_of_kernels_print(env: &Env) {
    let text = printed_by(env, |item| {
        let n = helper(helper(item.index()));
        if n != 2 {
            oxisycl::println!("wrong");
        }
    });
    assert_eq!(text, "helper 0\nhelper 1\n");
}

fn a_handler_of_output_must_not_wait(env: &Env) {
    let codes = Arc::new(Mutex::new(Vec::new()));
    let (kept, queue) = (codes.clone(), env.queue());
    let other = queue.clone();
    oxisycl::set_output_handler(Some(Arc::new(move |_: &str| {
        kept.lock().unwrap().extend([code(other.wait()), code(other.single_task(|_| {}))]);
    })));
    queue.single_task(|_| oxisycl::println!("text")).unwrap().wait().unwrap();
    oxisycl::set_output_handler(None);
    assert_eq!(*codes.lock().unwrap(), [ErrorCode::Invalid; 2]);
}

fn group_scope_prints_in_each_work_item_of_a_device_and_a_phase_in_one(env: &Env) {
    const ITEMS: usize = 4;
    let text = printed(|| {
        let kernel = env.queue().parallel_for_work_group(2, Fixed1::<ITEMS>, (), |mut group, ()| {
            oxisycl::println!("group {}", group.linear_id());
            group.for_each((), |item, ()| {
                if item.local_linear_id() == 0 {
                    oxisycl::println!("phase {}", item.global().index() / ITEMS);
                }
            });
        });
        kernel.unwrap().wait().unwrap();
    });
    let n_printing = if env.device().image_targets().is_empty() { 1 } else { ITEMS };
    for group in 0..2 {
        let count = |line: String| text.lines().filter(|printed| *printed == line).count();
        assert_eq!((count(format!("group {group}")), count(format!("phase {group}"))), (n_printing, 1), "{text}");
    }
}
