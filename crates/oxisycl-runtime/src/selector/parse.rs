//! Reads a selector value. Space around the parts of a value means nothing, and neither does the case of names.

use oxisycl_types::{BackendKind, DeviceType};

use super::error::{Expected, FilterError};
use super::{DeviceFilter, Pattern, Position, Root, SubSelection};

pub(super) const BACKENDS: [BackendKind; 4] =
    [BackendKind::Host, BackendKind::Simulated, BackendKind::Cuda, BackendKind::OpenCl];

pub(super) const DEVICE_TYPES: [DeviceType; 4] =
    [DeviceType::Cpu, DeviceType::Gpu, DeviceType::Accelerator, DeviceType::Custom];

pub(super) fn parse(value: &str) -> Result<DeviceFilter, FilterError> {
    let mut accepted = Vec::new();
    let mut discarded = Vec::new();
    for term in Part::new(value).split(';') {
        match term.after('!') {
            Some(term) => parse_term(term, &mut discarded)?,
            None if discarded.is_empty() => parse_term(term, &mut accepted)?,
            None => return term.refuse(Expected::AcceptingFirst),
        }
    }
    Ok(DeviceFilter { text: value.to_owned(), accepted, discarded })
}

/// A piece of the value that knows where it stands; never begins or ends with white space.
#[derive(Clone, Copy)]
struct Part<'a> {
    value: &'a str,
    start: usize,
    end: usize,
}

impl<'a> Part<'a> {
    fn new(value: &'a str) -> Self {
        Self { value, start: 0, end: value.len() }.trim()
    }

    fn text(self) -> &'a str {
        &self.value[self.start..self.end]
    }

    fn trim(self) -> Self {
        let start = self.end - self.text().trim_start().len();
        let end = start + self.text().trim().len();
        Self { start, end, ..self }
    }

    /// The pieces between separators; one more than there are separators.
    fn split(self, separator: char) -> impl Iterator<Item = Self> {
        let mut next = self.start;
        self.text().split(separator).map(move |piece| {
            let start = next;
            let end = start + piece.len();
            next = end + separator.len_utf8();
            Self { start, end, ..self }.trim()
        })
    }

    /// What follows the prefix, if the part begins with it.
    fn after(self, prefix: char) -> Option<Self> {
        self.text().starts_with(prefix).then(|| Self { start: self.start + prefix.len_utf8(), ..self }.trim())
    }

    /// The pieces before and after the first separator.
    fn split_once(self, separator: char) -> Option<(Self, Self)> {
        let middle = self.start + self.text().find(separator)?;
        let before = Self { end: middle, ..self };
        let after = Self { start: middle + separator.len_utf8(), ..self };
        Some((before.trim(), after.trim()))
    }

    fn is(self, name: &str) -> bool {
        self.text().eq_ignore_ascii_case(name)
    }

    fn refuse<T>(self, expected: Expected) -> Result<T, FilterError> {
        Err(FilterError { value: self.value.to_owned(), part: self.start..self.end, expected })
    }
}

fn parse_term(term: Part<'_>, patterns: &mut Vec<Pattern>) -> Result<(), FilterError> {
    if term.text().is_empty() {
        return term.refuse(Expected::Term);
    }
    let Some((backend, devices)) = term.split_once(':') else {
        return term.refuse(Expected::Colon);
    };
    let backend = parse_backend(backend)?;
    for device in devices.split(',') {
        let (root, sub) = parse_device(device)?;
        patterns.push(Pattern { backend, root, sub });
    }
    Ok(())
}

fn parse_backend(name: Part<'_>) -> Result<Option<BackendKind>, FilterError> {
    if name.is("*") {
        return Ok(None);
    }
    match BACKENDS.into_iter().find(|backend| name.is(backend.name())) {
        Some(backend) => Ok(Some(backend)),
        None => name.refuse(Expected::Backend),
    }
}

fn parse_device(device: Part<'_>) -> Result<(Root, Option<SubSelection>), FilterError> {
    let mut levels = device.split('.');
    let root = parse_root(levels.next().unwrap_or(device))?;
    let Some(sub) = levels.next() else {
        return Ok((root, None));
    };
    let sub = parse_position(sub)?;
    let sub_sub = levels.next().map(parse_position).transpose()?;
    if levels.next().is_some() {
        return device.refuse(Expected::TwoLevels);
    }
    Ok((root, Some(SubSelection { sub, sub_sub })))
}

fn parse_root(name: Part<'_>) -> Result<Root, FilterError> {
    if name.is("*") {
        return Ok(Root::All);
    }
    if let Some(device_type) = DEVICE_TYPES.into_iter().find(|device_type| name.is(device_type.name())) {
        return Ok(Root::Type(device_type));
    }
    parse_index(name, Expected::Device).map(Root::Index)
}

fn parse_position(name: Part<'_>) -> Result<Position, FilterError> {
    if name.is("*") {
        return Ok(Position::All);
    }
    parse_index(name, Expected::SubDevice).map(Position::Index)
}

fn parse_index(number: Part<'_>, expected: Expected) -> Result<usize, FilterError> {
    let digits = number.text();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.refuse(expected);
    }
    // Only digits: the one way left to fail is a number that is too large.
    digits.parse().or_else(|_| number.refuse(Expected::SmallerIndex))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small generator of pseudo-random numbers (xorshift), so that failures repeat.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % bound as u64) as usize
        }
    }

    /// Parses, and checks what holds for every string. An accepted value parses again from its print. An error points
    /// into the value and can be printed.
    fn check(value: &str) -> bool {
        match DeviceFilter::parse(value) {
            Ok(filter) => {
                assert_eq!(DeviceFilter::parse(&filter.to_string()), Ok(filter));
                true
            }
            Err(error) => {
                assert_eq!(error.value(), value);
                assert!(value[error.position()..].starts_with(error.part()));
                assert!(error.to_string().starts_with("OXISYCL_DEVICE_SELECTOR: expected "));
                false
            }
        }
    }

    #[test]
    fn strings_of_the_grammars_pieces_never_panic() {
        const PIECES: [&str; 24] = [
            "*",
            ":",
            ";",
            "!",
            ",",
            ".",
            " ",
            "cuda",
            "HOST",
            "opencl",
            "simulated",
            "cpu",
            "gpu",
            "0",
            "1",
            "17",
            "*:*",
            "cuda:",
            ".*",
            "99999999999999999999999",
            "é",
            "\u{3000}",
            "\n",
            "",
        ];
        let mut random = Random(0x5eed_0001);
        let mut n_accepted = 0;
        for _ in 0..20_000 {
            let value: String = (0..random.below(9)).map(|_| PIECES[random.below(PIECES.len())]).collect();
            n_accepted += usize::from(check(&value));
        }
        assert!(n_accepted > 100, "only {n_accepted} values were accepted");
    }

    #[test]
    fn arbitrary_strings_never_panic() {
        let mut random = Random(0x5eed_0002);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.below(24)).map(|_| random.below(256) as u8).collect();
            check(&String::from_utf8_lossy(&bytes));
        }
    }
}
