//! A reader of JSON, strict enough to find out what a browser would refuse.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

impl Json {
    /// Reads a whole document.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text.chars().peekable();
        let value = value(&mut rest)?;
        space(&mut rest);
        match rest.next() {
            None => Ok(value),
            Some(more) => Err(format!("{more:?} after the end")),
        }
    }

    /// The member of an object; `Null` if there is none.
    pub(crate) fn get(&self, name: &str) -> &Json {
        match self {
            Json::Object(members) => members.get(name).unwrap_or(&Json::Null),
            _ => &Json::Null,
        }
    }

    pub(crate) fn list(&self) -> &[Json] {
        if let Json::List(values) = self { values } else { &[] }
    }

    pub(crate) fn text(&self) -> &str {
        if let Json::Text(text) = self { text } else { "" }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        if let Json::Number(number) = self { Some(*number) } else { None }
    }
}

type Rest<'a> = Peekable<Chars<'a>>;

fn space(rest: &mut Rest<'_>) {
    while rest.next_if(|c| " \t\r\n".contains(*c)).is_some() {}
}

fn expect(rest: &mut Rest<'_>, wanted: &str) -> Result<(), String> {
    for c in wanted.chars() {
        if rest.next() != Some(c) {
            return Err(format!("expected {wanted:?}"));
        }
    }
    Ok(())
}

fn value(rest: &mut Rest<'_>) -> Result<Json, String> {
    space(rest);
    match rest.peek() {
        Some('n') => expect(rest, "null").map(|()| Json::Null),
        Some('t') => expect(rest, "true").map(|()| Json::Bool(true)),
        Some('f') => expect(rest, "false").map(|()| Json::Bool(false)),
        Some('"') => string(rest).map(Json::Text),
        Some('[') => {
            let mut values = Vec::new();
            sequence(rest, ']', |rest| value(rest).map(|value| values.push(value)))?;
            Ok(Json::List(values))
        }
        Some('{') => {
            let mut members = BTreeMap::new();
            sequence(rest, '}', |rest| {
                space(rest);
                let name = string(rest)?;
                space(rest);
                expect(rest, ":")?;
                members.insert(name, value(rest)?);
                Ok(())
            })?;
            Ok(Json::Object(members))
        }
        _ => {
            let mut digits = String::new();
            while let Some(c) = rest.next_if(|c| c.is_ascii_digit() || "+-.eE".contains(*c)) {
                digits.push(c);
            }
            digits.parse().map(Json::Number).map_err(|_| format!("{digits:?} is no number"))
        }
    }
}

fn sequence(
    rest: &mut Rest<'_>,
    end: char,
    mut element: impl FnMut(&mut Rest<'_>) -> Result<(), String>,
) -> Result<(), String> {
    rest.next();
    space(rest);
    if rest.next_if_eq(&end).is_some() {
        return Ok(());
    }
    loop {
        element(rest)?;
        space(rest);
        match rest.next() {
            Some(',') => {}
            Some(c) if c == end => return Ok(()),
            other => return Err(format!("expected ',' or {end:?}, found {other:?}")),
        }
    }
}

fn string(rest: &mut Rest<'_>) -> Result<String, String> {
    expect(rest, "\"")?;
    let mut text = String::new();
    loop {
        match rest.next() {
            Some('"') => return Ok(text),
            Some('\\') => match rest.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('r') => text.push('\r'),
                Some('b') => text.push('\u{8}'),
                Some('f') => text.push('\u{c}'),
                Some(c @ ('"' | '\\' | '/')) => text.push(c),
                Some('u') => {
                    let digits: String = rest.by_ref().take(4).collect();
                    let code = u32::from_str_radix(&digits, 16).map_err(|_| format!("\\u{digits}"))?;
                    text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                other => return Err(format!("escape {other:?}")),
            },
            Some(c) if c >= ' ' => text.push(c),
            other => return Err(format!("{other:?} in a string")),
        }
    }
}
