//! A crate of many kernels, written anew for each run of the benchmark: everyday Rust, each body with several constants.

use std::fmt::Write;

/// How many kernels the crate has.
pub(super) const N_KERNELS: usize = 97;

/// What precedes the kernels: the one launch, and what several bodies use.
const PRELUDE: &str = r#"
use oxisycl::prelude::*;

/// Launches one kernel over the numbers.
fn launch(queue: &Queue, numbers: &Buffer<u32, 1>, kernel: impl Fn(u32) -> u32 + Copy + Send + Sync + 'static) {
    let launched = queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for(numbers.range(), move |item: Item<1>| numbers.update(item, kernel))
    });
    launched.expect("the launch");
}

/// Text of a work-item's own.
struct Line {
    bytes: [u8; 48],
    len: usize,
}

impl core::fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = self.len + text.len();
        let Some(place) = self.bytes.get_mut(self.len..end) else { return Err(core::fmt::Error) };
        place.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Shape {
    Circle(f32),
    Rectangle { width: f32, height: f32 },
    Polygon { n_sides: u32, side: f32 },
}

impl Shape {
    fn area(self) -> Option<f32> {
        match self {
            Self::Circle(radius) => (radius > 0.0).then(|| std::f32::consts::PI * radius * radius),
            Self::Rectangle { width, height } => Some(width * height),
            Self::Polygon { n_sides: 0..=2, .. } => None,
            Self::Polygon { n_sides, side } => {
                Some(n_sides as f32 * side * side / (4.0 * (std::f32::consts::PI / n_sides as f32).tan()))
            }
        }
    }
}

fn modular_power(mut base: u64, mut exponent: u64, modulus: u64) -> u64 {
    let mut result = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = (u128::from(result) * u128::from(base) % u128::from(modulus)) as u64;
        }
        base = (u128::from(base) * u128::from(base) % u128::from(modulus)) as u64;
        exponent >>= 1;
    }
    result
}

fn determinant(m: [[f64; 3]; 3]) -> f64 {
    let minor = |a: usize, b: usize| m[1][a] * m[2][b] - m[1][b] * m[2][a];
    m[0][0] * minor(1, 2) - m[0][1] * minor(0, 2) + m[0][2] * minor(0, 1)
}
"#;

/// Bodies from `x` to a number; `#` stands for the kernel's number.
const BODIES: [&str; 14] = [
    "x.wrapping_mul(#).rotate_left(#) ^ (x >> 3)",
    "let angle = x as f32 / (# as f32 + 1.0); (angle.sin() * angle.exp() + (angle + 2.0).ln().powf(1.5)).to_bits()",
    "let y = f64::from(x) + 0.#; ((y.sqrt() + y.atan2(2.0) * y.cbrt()).hypot(3.0) * 1000.0) as u32",
    "let values: [u32; 12] = std::array::from_fn(|i| x.wrapping_add(i as u32 * #)); \
     values.iter().zip(values.iter().skip(1)).filter(|(a, b)| a < b).map(|(a, b)| b - a).sum::<u32>() \
     + values.chunks(5).map(|part| part.iter().copied().max().unwrap_or(#)).fold(0, u32::wrapping_add)",
    "let mut values: [u32; 16] = std::array::from_fn(|i| x.wrapping_mul(2 * i as u32 + 1) % (# + 100)); \
     values.sort_unstable(); values[x as usize % 16] + values.partition_point(|value| *value < #) as u32",
    "let shape = match x % 3 { 0 => Shape::Circle(x as f32), 1 => Shape::Rectangle { width: x as f32, height: #.0 }, \
     _ => Shape::Polygon { n_sides: x % #, side: 2.0 } }; shape.area().map_or(#, |area| area as u32)",
    "(modular_power(u64::from(x) + #, 65_537, 0xffff_fffb) ^ modular_power(#, u64::from(x), 998_244_353)) as u32",
    "let y = f64::from(x); let m = determinant([[y, 2.0, #.0], [1.0, y, 4.0], [#.0, 3.0, y + 1.0]]); \
     if m.abs() < 1e-9 { 0 } else { (1e6 / m) as i32 as u32 }",
    "use core::fmt::Write; let mut line = Line { bytes: [0; 48], len: 0 }; \
     write!(line, \"{x} of #, {:x}\", x ^ #).map_or(0, |()| line.bytes[..line.len].iter().fold(5381, |h: u32, b| h.wrapping_mul(33) ^ u32::from(*b)))",
    "let (mut re, mut im, mut n) = (0.0f32, 0.0f32, 0); let c = (x as f32 / #.0, 0.3); \
     while n < 100 + # && re * re + im * im < 4.0 { (re, im) = (re * re - im * im + c.0, 2.0 * re * im + c.1); n += 1; } n",
    "let text: [u8; 6] = std::array::from_fn(|i| b'0' + ((x >> (2 * i)) % 10) as u8); \
     std::str::from_utf8(&text).ok().and_then(|text| text.parse::<u32>().ok()).map_or(#, |n| n / (# + 1))",
    "let table = [3u32, 5, 7, 11, 13, 17, 19, 23]; assert!(x != 4_000_000_000 + #, \"no {x} of kernel {}\", #); \
     table[(x as usize + #) % table.len()] + table[x as usize & 7].checked_mul(x).expect(\"small numbers\")",
    "let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, #]; for word in 0..32u32 { \
     let [a, b, c, d] = state; let f = (b & c) | (!b & d); \
     state = [d, b.wrapping_add(a.wrapping_add(f).wrapping_add(x ^ word).rotate_left(7 + word % 5)), b, c]; } state[0] ^ state[3]",
    "let mut stack = [0i64; 8]; let mut top = 0; for step in 0..24u32 { match (x.wrapping_add(step * #)) % 4 { \
     0 if top < 8 => { stack[top] = i64::from(step); top += 1; } \
     1 if top > 1 => { top -= 1; stack[top - 1] += stack[top]; } \
     2 if top > 1 => { top -= 1; stack[top - 1] *= stack[top]; } \
     _ => { if top > 0 { stack[top - 1] ^= #; } } } } stack[..top].iter().sum::<i64>() as u32",
];

/// The manifest of the crate, in a workspace of its own, with OxiSYCL at that place.
pub(super) fn manifest(oxisycl: &str) -> String {
    format!(
        "[package]\nname = \"kernels\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         oxisycl = {{ path = {oxisycl:?}, features = [\"cuda\", \"opencl\"] }}\n"
    )
}

/// The source of the crate.
pub(super) fn source() -> String {
    let mut text = PRELUDE.to_owned();
    let mut main = String::new();
    for number in 0..N_KERNELS {
        let body = BODIES[number % BODIES.len()].replace('#', &(number + 3).to_string());
        // Writing to a text does not fail.
        let _ = write!(
            text,
            "\nfn kernel_{number}(queue: &Queue, numbers: &Buffer<u32, 1>) {{\n    launch(queue, numbers, |x| {{ {body} }});\n}}\n"
        );
        let _ = writeln!(main, "    kernel_{number}(&queue, &numbers);");
    }
    let start = "let queue = Queue::default().expect(\"a device\");\n    let numbers = Buffer::from_vec((0..1000).collect()).expect(\"memory\");";
    let _ = write!(
        text,
        "\nfn main() {{\n    {start}\n{main}    println!(\"{{:?}}\", numbers.to_vec().expect(\"numbers\")[7]);\n}}\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_is_written_and_called_once_and_no_two_are_the_same() {
        let source = source();
        assert_eq!(source.matches("    launch(queue, numbers, |x| {").count(), N_KERNELS);
        assert!(!source.contains('#') || source.matches('#').count() == source.matches("#[derive").count());
        let bodies: std::collections::HashSet<&str> =
            source.lines().filter(|line| line.contains("launch(queue, numbers, |x|")).collect();
        assert_eq!(bodies.len(), N_KERNELS);
        for number in 0..N_KERNELS {
            assert!(source.contains(&format!("    kernel_{number}(&queue, &numbers);")), "{number}");
        }
    }
}
