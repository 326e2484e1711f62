//! Texts: parsing of numbers, UTF-8, characters, searching.

use std::str::FromStr;

use crate::harness::{Env, kernels, scramble};

kernels![
    integers_are_parsed,
    floats_are_parsed,
    bytes_are_checked_to_be_utf8,
    characters_are_classified_and_mapped,
    words_are_split_and_trimmed,
    texts_are_searched_and_compared,
    fields_of_a_line_become_a_struct,
    characters_are_encoded,
    words_are_split_from_the_end,
];

/// Writes decimal digits, and gives the part that holds them.
fn write_decimal(buffer: &mut [u8; 24], value: i64) -> &str {
    let mut start = buffer.len();
    let mut rest = value.unsigned_abs();
    loop {
        start -= 1;
        buffer[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        start -= 1;
        buffer[start] = b'-';
    }
    std::str::from_utf8(&buffer[start..]).unwrap_or("?")
}

fn integers_are_parsed(env: &Env) {
    env.compare(|i| {
        let value = (i64::from(scramble(i) as i32) << 20) >> (i % 52);
        let mut buffer = [0; 24];
        let text = write_decimal(&mut buffer, value);
        let cut = &text[..text.len() - usize::from(i % 3 == 0 && text.len() > 1)];
        (text.parse::<i64>().ok(), cut.parse::<u32>().ok(), text.parse::<i8>().is_err(), u16::from_str(cut).ok())
    });
}

fn floats_are_parsed(env: &Env) {
    const TEXTS: [&str; 16] = [
        "0",
        "-0.0",
        "1.5",
        "3.14159265358979",
        "1e10",
        "-2.5E-3",
        "123456789.125",
        "1e-45",
        "6.02214076e23",
        "inf",
        "NaN",
        "0.1",
        "1.7976931348623157e308",
        "9007199254740993",
        "1.2.3",
        "",
    ];
    env.compare(|i| {
        let text = TEXTS[i % 16];
        let double = text.parse::<f64>().ok();
        let single = text.parse::<f32>().ok();
        let mut buffer = [0; 24];
        let digits = write_decimal(&mut buffer, i64::from(scramble(i)) * 1_000_003);
        (double, single, digits.parse::<f64>().ok(), digits.parse::<f32>().ok())
    });
}

fn words_are_split_from_the_end(env: &Env) {
    const TEXT: &str = "alpha,beta;gamma,,größer;epsilon, zeta,eta";
    env.compare(|i| {
        let text = TEXT.get(i % 21..TEXT.len() - i % 7).unwrap_or(TEXT);
        let mut words = text.rsplit(',');
        let last = [words.next(), words.next()].map(|word| word.map_or(99, |word| word.len() as u8));
        let hash =
            text.rsplit([';', ',']).fold(7_u32, |hash, word| hash.wrapping_mul(31) + word.chars().count() as u32);
        let cut = text.rsplit_once("ma").map(|(before, after)| (before.len() as u8, after.len() as u8));
        (last, hash, cut, text.rsplitn(3, ',').last().map(|rest| rest.len() as u8))
    });
}

fn bytes_are_checked_to_be_utf8(env: &Env) {
    const TEXT: &[u8] = "Größe: 3 µm, 日本語, 🦀!".as_bytes();
    env.compare(|i| {
        let (start, end) = (i % TEXT.len(), TEXT.len() - i / TEXT.len() % 7);
        let slice = TEXT.get(start..end).unwrap_or_default();
        let valid_up_to = std::str::from_utf8(slice).map_or_else(|error| error.valid_up_to(), str::len);
        let mut broken = [0; 6];
        let n = slice.len().min(6);
        broken[..n].copy_from_slice(&slice[..n]);
        broken[i % 6] ^= 0x80;
        let error = std::str::from_utf8(&broken).map_err(|error| error.error_len()).err().flatten();
        let n_chars = std::str::from_utf8(&slice[..valid_up_to]).map_or(0, |text| text.chars().count());
        (valid_up_to as u32, n_chars as u32, error.map(|length| length as u8))
    });
}

fn characters_are_classified_and_mapped(env: &Env) {
    env.compare(|i| {
        let letter = char::from_u32(scramble(i) % 0x250).unwrap_or('?');
        let flags = [letter.is_alphabetic(), letter.is_numeric(), letter.is_whitespace(), letter.is_uppercase()];
        let ascii = (scramble(i) % 128) as u8 as char;
        let digit = ascii.to_digit(16).and_then(|digit| char::from_digit(15 - digit, 16));
        let upper = letter.to_uppercase().fold(0_u32, |sum, upper| sum * 3 + u32::from(upper));
        (flags, ascii.to_ascii_uppercase(), digit, upper, letter.len_utf8() as u8 * 10 + letter.len_utf16() as u8)
    });
}

fn words_are_split_and_trimmed(env: &Env) {
    const TEXT: &str = "  alpha, beta;gamma  ,,delta\n epsilon zeta,eta  ";
    env.compare(|i| {
        let text = &TEXT[i % 30..TEXT.len() - i % 7];
        let words = text.split([',', ';']).map(str::trim).filter(|word| !word.is_empty());
        let longest = words.clone().map(str::len).max().map(|length| length as u8);
        let hash = text.split_whitespace().fold(7_u32, |hash, word| {
            word.bytes().fold(hash.wrapping_mul(31), |hash, byte| hash.wrapping_mul(131).wrapping_add(u32::from(byte)))
        });
        let lines = text.lines().count() as u8;
        let halves = text.split_once(", ").map(|(left, right)| (left.len() as u8, right.trim_start().len() as u8));
        (words.count() as u8, longest, hash, lines, halves)
    });
}

fn texts_are_searched_and_compared(env: &Env) {
    const NAMES: [&str; 6] = ["kernel", "queue", "Queue", "accessor", "access", "é"];
    env.compare(|i| {
        let (a, b) = (NAMES[i % 6], NAMES[i / 6 % 6]);
        let order = a.cmp(b) as i8;
        let found = [a.find('e'), a.rfind("ue"), a.find(|letter: char| letter > 'r'), a.find(b)];
        let flags = [a.starts_with(b), a.ends_with("r"), a.contains("cc"), a.eq_ignore_ascii_case(b), a == b];
        let stripped = a.strip_prefix("acc").map_or(0, |rest| rest.len() as u8);
        (order, found.map(|place| place.map(|place| place as u8)), flags, stripped, a.char_indices().count() as u8)
    });
}

struct Record {
    id: u32,
    weight: f32,
    flag: bool,
}

impl FromStr for Record {
    type Err = u8;

    fn from_str(line: &str) -> Result<Self, u8> {
        let mut fields = line.split('|').map(str::trim);
        let mut field = |number: u8| fields.next().ok_or(number);
        let id = field(1)?.parse().map_err(|_| 10)?;
        let weight = field(2)?.strip_suffix("kg").ok_or(20)?.parse().map_err(|_| 21)?;
        let flag = match field(3)? {
            "yes" => true,
            "no" => false,
            _ => return Err(30),
        };
        if fields.next().is_some() { Err(40) } else { Ok(Self { id, weight, flag }) }
    }
}

fn fields_of_a_line_become_a_struct(env: &Env) {
    const LINES: [&str; 8] = [
        "1 | 2.5kg | yes",
        "77|0.125kg|no",
        "x | 1kg | no",
        "3 | 9 | yes",
        "4 | 1e3kg | maybe",
        "5 | 6kg",
        "6|7kg|no|8",
        "4294967295 | -1.75kg | yes",
    ];
    env.compare(|i| match LINES[scramble(i) as usize % 8].parse::<Record>() {
        Ok(Record { id, weight, flag }) => (id, weight, flag, 0_u8),
        Err(number) => (0, 0.0, false, number),
    });
}

fn characters_are_encoded(env: &Env) {
    env.compare(|i| {
        let letter = char::from_u32(scramble(i) % 0x11_0000).unwrap_or(char::REPLACEMENT_CHARACTER);
        let (mut bytes, mut words) = ([0; 4], [0; 2]);
        let n_bytes = letter.encode_utf8(&mut bytes).len() as u8;
        let n_words = letter.encode_utf16(&mut words).len() as u8;
        let back = char::decode_utf16(words[..usize::from(n_words)].iter().copied()).next().and_then(Result::ok);
        (bytes, words, n_bytes * 10 + n_words, back == Some(letter), letter.escape_unicode().len() as u8)
    });
}
