//! Parsers of texts.

use atoi::{FromRadix10SignedChecked as _, FromRadix16Checked as _};
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::{char, digit1, space0};
use nom::combinator::{map_res, opt};
use nom::multi::fold_many0;
use nom::sequence::{delimited, preceded};
use nom::{IResult, Parser as _};

use crate::harness::{Env, kernels, scramble};

kernels![nom, httparse, atoi, lexical_core];

/// A number, or an expression within parentheses.
fn factor(text: &str) -> IResult<&str, i64> {
    let number = map_res(digit1, str::parse::<i64>);
    delimited(space0, number, space0).parse(text)
}

/// Products and quotients.
fn term(text: &str) -> IResult<&str, i64> {
    let (rest, first) = factor(text)?;
    let step = |sum: i64, (operator, value): (char, i64)| match operator {
        '*' => sum.wrapping_mul(value),
        _ => sum / value.max(1),
    };
    fold_many0((alt((char('*'), char('/'))), factor), move || first, step).parse(rest)
}

fn nom(env: &Env) {
    const TEXTS: [&str; 4] = ["1 + 2 * 3", " 40 / 4 * 2 + 7", "x = 12; y", "7 * 6 - 1 junk"];
    env.compare(|i| {
        let text = TEXTS[i % 4];
        let (rest, first) = term(text).unwrap_or(("", -1));
        let sum = fold_many0(
            (alt((char('+'), char('-'))), term),
            move || first,
            |sum, (operator, value)| {
                if operator == '+' { sum + value } else { sum - value }
            },
        );
        let (left, sum) = { sum }.parse(rest).unwrap_or((rest, 0));
        let assignment: IResult<&str, (&str, &str, Option<char>)> =
            (take_while1(char::is_alphabetic), preceded(tag(" = "), digit1), opt(char(';'))).parse(text);
        (sum, left.len() as u32, assignment.map_or(0, |(rest, (_, digits, _))| rest.len() + digits.len() * 100) as u32)
    });
}

fn httparse(env: &Env) {
    const REQUESTS: [&[u8]; 3] = [
        b"GET /index.html HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n\r\nbody",
        b"POST /f?a=b HTTP/1.0\r\nContent-Length: 12\r\n",
        b"BAD\x01 / HTTP/1.1\r\n\r\n",
    ];
    env.compare(|i| {
        let mut headers = [httparse::EMPTY_HEADER; 8];
        let mut request = httparse::Request::new(&mut headers);
        let text = REQUESTS[i % 3];
        let text = &text[..text.len() - i % 5];
        let status = match request.parse(text) {
            Ok(httparse::Status::Complete(length)) => length as i32,
            Ok(httparse::Status::Partial) => -1,
            Err(_) => -2,
        };
        let lengths = request.headers.iter().map(|header| header.name.len() + header.value.len()).sum::<usize>();
        (status, lengths as u32, request.method.map_or(0, str::len) as u32, request.version)
    });
}

fn atoi(env: &Env) {
    const TEXTS: [&[u8]; 5] = [b"12345 apples", b"-77", b"99999999999", b"ff00", b""];
    env.compare(|i| {
        let text = TEXTS[i % 5];
        let (signed, length) = i32::from_radix_10_signed_checked(text);
        (atoi::atoi::<u64>(text), signed, length as u32, u32::from_radix_16_checked(text).0)
    });
}

fn lexical_core(env: &Env) {
    const TEXTS: [&[u8]; 6] =
        [b"3.25", b"-1e-7", b"123456789.987654321e-20", b"1.7976931348623157e308", b"inf", b"2.5x"];
    env.compare(|i| {
        let mut buffer = [0_u8; 64];
        let digits = lexical_core::write(scramble(i) as i32, &mut buffer);
        let back = lexical_core::parse::<i32>(digits).map_or(0, |number| number);
        let float = lexical_core::parse::<f64>(TEXTS[i % 6]).map_or(0, f64::to_bits);
        (
            back,
            digits.len() as u32,
            float,
            lexical_core::parse_partial::<f32>(TEXTS[i % 6]).map_or(0, |(_, n)| n as u32),
        )
    });
}
