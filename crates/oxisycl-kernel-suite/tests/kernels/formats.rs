//! `core::fmt` in kernels: formatting into a fixed buffer.

use std::fmt::{self, Write};

use crate::harness::{Env, fraction, kernels, scramble};

kernels![integers_are_formatted, floats_are_formatted, texts_are_padded, structs_are_formatted];

/// A text of at most so many bytes; what does not fit is an error.
struct Text<const CAPACITY: usize> {
    bytes: [u8; CAPACITY],
    length: usize,
}

impl<const CAPACITY: usize> Text<CAPACITY> {
    /// The bytes after the text are zero.
    fn of(arguments: fmt::Arguments<'_>) -> [u8; CAPACITY] {
        let mut text = Self { bytes: [0; CAPACITY], length: 0 };
        match text.write_fmt(arguments) {
            Ok(()) => text.bytes,
            Err(fmt::Error) => [b'!'; CAPACITY],
        }
    }
}

impl<const CAPACITY: usize> Write for Text<CAPACITY> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

fn integers_are_formatted(env: &Env) {
    env.compare(|i| {
        let value = scramble(i) as i32 >> (i % 31);
        Text::<64>::of(format_args!("{value} {i:>6} {value:#010x} {:o} {:+}|{:<4}|", i, value as i8, i as u8))
    });
}

fn floats_are_formatted(env: &Env) {
    env.compare(|i| {
        let value = fraction(i) * 1000.0 - 300.0;
        Text::<80>::of(format_args!("{value} {value:.3} {:e} {:8.2}", f64::from(value) * 1e20, value / 7.0))
    });
}

fn texts_are_padded(env: &Env) {
    const WORDS: [&str; 4] = ["work", "item", "größer", ""];
    env.compare(|i| {
        let (word, width) = (WORDS[i % 4], 5 + i % 6);
        Text::<48>::of(format_args!("[{word:>width$}|{word:-^9}|{:?}|{:.2}]", i as u8 as char, word))
    });
}

#[derive(Debug)]
#[expect(dead_code, reason = "the fields are read by the derived formatting")]
enum Event {
    Start { at: u32, name: &'static str },
    Stop(Option<i16>),
    Several { at: [u16; 3], of: Kind },
}

#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "the field is read by the derived formatting")]
enum Kind {
    Compute,
    Copy(u8),
}

fn structs_are_formatted(env: &Env) {
    env.compare(|i| {
        let event = match scramble(i) % 5 {
            0 => Event::Start { at: i as u32, name: "kernel" },
            1 => Event::Stop(Some(-(i as i16))),
            2 => Event::Stop(None),
            kind => Event::Several {
                at: [i as u16, 7, scramble(i) as u16],
                of: if kind == 3 { Kind::Compute } else { Kind::Copy(i as u8) },
            },
        };
        Text::<96>::of(format_args!("{event:?} {:?} {:?}", [i as u8, 7], (event_size(&event), "a\"b")))
    });
}

fn event_size(event: &Event) -> usize {
    match event {
        Event::Start { name, .. } => name.len(),
        Event::Stop(_) => 0,
        Event::Several { at, .. } => at.len(),
    }
}
