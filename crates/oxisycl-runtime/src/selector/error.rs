//! What is wrong with a selector value, as a message with the value, the place and the grammar.

use std::error::Error;
use std::fmt;
use std::ops::Range;

use super::parse::{BACKENDS, DEVICE_TYPES};

/// A value of `OXISYCL_DEVICE_SELECTOR` that does not follow its grammar.
///
/// Prints as several lines: what was expected and found, the value with the place marked below it, and the grammar.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilterError {
    pub(super) value: String,
    /// The offending bytes of `value`, on character boundaries; empty where something is missing.
    pub(super) part: Range<usize>,
    pub(super) expected: Expected,
}

/// What the grammar wants in the place of the offending part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expected {
    Term,
    Colon,
    Backend,
    Device,
    SubDevice,
    TwoLevels,
    SmallerIndex,
    AcceptingFirst,
}

impl FilterError {
    /// The value that was refused.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Where in the value the offending part begins, in bytes.
    pub fn position(&self) -> usize {
        self.part.start
    }

    /// The offending part; empty where something is missing.
    pub fn part(&self) -> &str {
        &self.value[self.part.clone()]
    }
}

impl Error for FilterError {}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, part, expected } = self;
        write!(f, "OXISYCL_DEVICE_SELECTOR: expected {expected}, found ")?;
        match self.part() {
            "" => f.write_str("nothing")?,
            part => write!(f, "{part:?}")?,
        }
        writeln!(f, " (at byte {} of the value)", part.start)?;
        // Quoting escapes control characters, so the place is counted in the quoted text, after its opening quote.
        writeln!(f, "    {value:?}")?;
        let indent = escaped_width(&value[..part.start]) + 1;
        let marks = escaped_width(self.part()).max(1);
        writeln!(f, "    {:indent$}{:^<marks$}", "", "")?;
        grammar(f)
    }
}

/// How many characters `text` takes inside quotes.
fn escaped_width(text: &str) -> usize {
    format!("{text:?}").chars().count() - 2
}

fn grammar(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "  value   = term;term;..      terms that discard stand last")?;
    writeln!(f, "  term    = backend:device,device,..      a leading ! discards instead of accepting")?;
    writeln!(f, "  backend = * {}", Names(" ", &BACKENDS, " "))?;
    writeln!(f, "  device  = root, root.sub or root.sub.sub      sub-devices become devices of their own")?;
    writeln!(f, "  root    = * {} or an index from 0", Names(" ", &DEVICE_TYPES, " "))?;
    write!(f, "  sub     = * or an index from 0")
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Term => f.write_str("a term backend:device"),
            Self::Colon => f.write_str("a backend, a colon and a device"),
            Self::Backend => write!(f, "backend *, {}", Names(", ", &BACKENDS, " or ")),
            Self::Device => write!(f, "device *, {} or an index", Names(", ", &DEVICE_TYPES, ", ")),
            Self::SubDevice => f.write_str("sub-device * or an index"),
            Self::TwoLevels => f.write_str("at most two levels of sub-devices"),
            Self::SmallerIndex => write!(f, "an index up to {}", usize::MAX),
            Self::AcceptingFirst => f.write_str("only terms that discard after the first of them"),
        }
    }
}

/// A list of names with a separator and another one before the last name.
struct Names<'a, T>(&'static str, &'a [T], &'static str);

impl<T: fmt::Display> fmt::Display for Names<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(separator, names, last) = self;
        for (idx, name) in names.iter().enumerate() {
            match idx {
                0 => {}
                _ if idx + 1 == names.len() => f.write_str(last)?,
                _ => f.write_str(separator)?,
            }
            write!(f, "{name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::DeviceFilter;

    fn message(value: &str) -> String {
        DeviceFilter::parse(value).unwrap_err().to_string()
    }

    /// The first line, without the name of the variable.
    fn first_line(value: &str) -> String {
        let message = message(value);
        message.lines().next().unwrap().strip_prefix("OXISYCL_DEVICE_SELECTOR: ").unwrap().to_owned()
    }

    /// The quoted value and the line of marks, without their indent.
    fn marked(value: &str) -> [String; 2] {
        let message = message(value);
        let mut lines = message.lines().skip(1).map(|line| line.strip_prefix("    ").unwrap().to_owned());
        [lines.next().unwrap(), lines.next().unwrap()]
    }

    #[test]
    fn the_whole_message() {
        assert_eq!(
            message("host:*;cuda:fpga"),
            r#"OXISYCL_DEVICE_SELECTOR: expected device *, cpu, gpu, accelerator, custom or an index, found "fpga" (at byte 12 of the value)
    "host:*;cuda:fpga"
                 ^^^^
  value   = term;term;..      terms that discard stand last
  term    = backend:device,device,..      a leading ! discards instead of accepting
  backend = * host simulated cuda opencl
  device  = root, root.sub or root.sub.sub      sub-devices become devices of their own
  root    = * cpu gpu accelerator custom or an index from 0
  sub     = * or an index from 0"#
        );
    }

    #[test]
    fn each_mistake_has_its_message() {
        let backend = "backend *, host, simulated, cuda or opencl";
        let device = "device *, cpu, gpu, accelerator, custom or an index";
        for (value, expected, found, position) in [
            ("", "a term backend:device", "nothing", 0),
            ("   ", "a term backend:device", "nothing", 3),
            ("cuda:*;", "a term backend:device", "nothing", 7),
            (";cuda:*", "a term backend:device", "nothing", 0),
            ("!", "a term backend:device", "nothing", 1),
            ("cuda", "a backend, a colon and a device", "\"cuda\"", 0),
            ("*:* ; gpu", "a backend, a colon and a device", "\"gpu\"", 6),
            ("level_zero:gpu", backend, "\"level_zero\"", 0),
            ("*:*;!hip:gpu", backend, "\"hip\"", 5),
            (":gpu", backend, "nothing", 0),
            ("!!cuda:*", backend, "\"!cuda\"", 1),
            ("cuda:", device, "nothing", 5),
            ("cuda:gpu,", device, "nothing", 9),
            ("cuda:gpu,,0", device, "nothing", 9),
            ("cuda:-1", device, "\"-1\"", 5),
            ("cuda:+1", device, "\"+1\"", 5),
            ("cuda:0x1", device, "\"0x1\"", 5),
            ("cuda:g pu", device, "\"g pu\"", 5),
            ("cuda:cuda:gpu", device, "\"cuda:gpu\"", 5),
            ("cuda:.0", device, "nothing", 5),
            ("cuda:acc.0", device, "\"acc\"", 5),
            ("cuda:0.", "sub-device * or an index", "nothing", 7),
            ("cuda:0.gpu", "sub-device * or an index", "\"gpu\"", 7),
            ("cuda:0.1.x", "sub-device * or an index", "\"x\"", 9),
            ("cuda:0.*.*.*", "at most two levels of sub-devices", "\"0.*.*.*\"", 5),
            ("!cuda:0;host:*", "only terms that discard after the first of them", "\"host:*\"", 8),
        ] {
            assert_eq!(
                first_line(value),
                format!("expected {expected}, found {found} (at byte {position} of the value)"),
                "{value}"
            );
        }
    }

    #[test]
    fn an_index_that_is_no_usize_is_refused() {
        let value = format!("cuda:0,{}0", usize::MAX);
        let expected = format!("expected an index up to {0}, found \"{0}0\" (at byte 7 of the value)", usize::MAX);
        assert_eq!(first_line(&value), expected);
        assert!(DeviceFilter::parse(&format!("cuda:{}", usize::MAX)).is_ok());
    }

    #[test]
    fn the_mark_is_below_the_part_even_after_escapes_and_other_scripts() {
        assert_eq!(marked("cuda:\tgpü"), [r#""cuda:\tgpü""#, "        ^^^"]);
        assert_eq!(marked("größe:*"), [r#""größe:*""#, " ^^^^^"]);
        assert_eq!(marked("\"cuda\":*"), [r#""\"cuda\":*""#, " ^^^^^^^^"]);
        assert_eq!(marked("'a':*"), [r#""'a':*""#, " ^^^"]);
        assert_eq!(marked("cuda:"), [r#""cuda:""#, "      ^"]);
    }

    #[test]
    fn the_error_gives_its_parts() {
        let error = DeviceFilter::parse("cuda:0,apu").unwrap_err();
        assert_eq!((error.value(), error.position(), error.part()), ("cuda:0,apu", 7, "apu"));
    }
}
