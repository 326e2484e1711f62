//! Messages against what Rust's own formatting prints, and records that no kernel would write.

use super::*;

fn argument(kind: ArgumentKind, size: usize, bits: u128) -> PanicArgument {
    PanicArgument { kind: kind.number(), size: size as u32, bits: [bits as u64, (bits >> 64) as u64] }
}

/// Values that are recorded as the device records them.
trait Recorded {
    const KIND: ArgumentKind;
    fn bits(self) -> u128;
}

macro_rules! recorded {
    ($($kind:ident: $t:ty = |$value:ident| $bits:expr;)*) => {$(
        impl Recorded for $t {
            const KIND: ArgumentKind = ArgumentKind::$kind;
            fn bits(self) -> u128 {
                let $value = self;
                $bits
            }
        }
    )*};
}

recorded! {
    Bool: bool = |value| value.into();
    Char: char = |value| u32::from(value).into();
    I8: i8 = |value| (value as u8).into();
    I16: i16 = |value| (value as u16).into();
    I32: i32 = |value| (value as u32).into();
    I64: i64 = |value| (value as u64).into();
    I128: i128 = |value| value as u128;
    Isize: isize = |value| (value as u64).into();
    U8: u8 = |value| value.into();
    U16: u16 = |value| value.into();
    U32: u32 = |value| value.into();
    U64: u64 = |value| value.into();
    U128: u128 = |value| value;
    Usize: usize = |value| value as u128;
    F32: f32 = |value| value.to_bits().into();
    F64: f64 = |value| value.to_bits().into();
    Pointer: *const u8 = |value| value.addr() as u128;
}

fn record_of<T: Recorded>(value: T) -> PanicRecord {
    let mut record = PanicRecord { state: PanicRecord::COMPLETE, n_arguments: 3, ..PanicRecord::EMPTY };
    record.arguments[0] = argument(T::KIND, size_of::<T>(), value.bits());
    record.arguments[1] = argument(ArgumentKind::Usize, 8, 9);
    record.arguments[2] = argument(ArgumentKind::Usize, 8, 2);
    record
}

fn site(message: Vec<MessagePiece>) -> PanicSite {
    PanicSite { location: None, message }
}

fn printed<T: Recorded>(value: T, format: ArgumentFormat) -> String {
    site(vec![MessagePiece::Argument { index: 0, format }]).format(&record_of(value))
}

/// Compares the given values with Rust's formatting, for one trait with many flags.
macro_rules! agrees {
    ($style:ident, $letter:literal, $($value:expr),*) => {$(
        let value = $value;
        let format = ArgumentFormat::new(FormatTrait::$style);
        let width = Some(FormatCount::Argument(1));
        let precision = Some(FormatCount::Argument(2));
        for (found, expected) in [
            (format, format!(concat!("{:", $letter, "}"), value)),
            (ArgumentFormat { alternate: true, ..format }, format!(concat!("{:#", $letter, "}"), value)),
            (ArgumentFormat { sign_plus: true, ..format }, format!(concat!("{:+", $letter, "}"), value)),
            (ArgumentFormat { width, ..format }, format!(concat!("{:9", $letter, "}"), value)),
            (ArgumentFormat { width, zero_pad: true, ..format }, format!(concat!("{:09", $letter, "}"), value)),
            (ArgumentFormat { precision, ..format }, format!(concat!("{:.2", $letter, "}"), value)),
            (
                ArgumentFormat { width, precision, fill: 'é', alignment: Some(FormatAlignment::Center), ..format },
                format!(concat!("{:é^9.2", $letter, "}"), value),
            ),
            (
                ArgumentFormat { width, alignment: Some(FormatAlignment::Left), ..format },
                format!(concat!("{:<9", $letter, "}"), value),
            ),
            (
                ArgumentFormat { width, alignment: Some(FormatAlignment::Right), ..format },
                format!(concat!("{:>9", $letter, "}"), value),
            ),
            (
                ArgumentFormat { width, alternate: true, sign_plus: true, zero_pad: true, ..format },
                format!(concat!("{:+#09", $letter, "}"), value),
            ),
            (
                ArgumentFormat { width: Some(FormatCount::Is(40)), precision, sign_plus: true, zero_pad: true, ..format },
                format!(concat!("{:+040.2", $letter, "}"), value),
            ),
        ] {
            assert_eq!(printed(value, found), expected, "{value:?} as {found:?}");
        }
    )*};
}

macro_rules! integers_agree {
    ($style:ident, $letter:literal) => {
        agrees!($style, $letter, 0_u8, u8::MAX, 42_u16, u16::MAX, 0_u32, 123_456_u32, u64::MAX, u128::MAX, usize::MAX);
        agrees!($style, $letter, 0_i8, -1_i8, i8::MIN, -300_i16, i32::MIN, i32::MAX, i64::MIN, i128::MIN, -7_isize);
    };
}

macro_rules! floats_agree {
    ($style:ident, $letter:literal) => {
        agrees!($style, $letter, 0.0_f32, -0.0_f32, 1.5_f32, -2.25e-7_f32, f32::MAX, f32::MIN_POSITIVE, 0.1_f32);
        agrees!($style, $letter, f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
        agrees!($style, $letter, 0.0_f64, -1.0_f64, 1e16_f64, 123_456_789.125_f64, f64::MAX, 5e-324_f64, 0.1_f64);
        agrees!($style, $letter, f64::NAN, f64::INFINITY, f64::NEG_INFINITY);
    };
}

#[test]
fn integers_print_as_in_rust() {
    integers_agree!(Display, "");
    integers_agree!(Debug, "?");
    integers_agree!(LowerHex, "x");
    integers_agree!(UpperHex, "X");
    integers_agree!(Octal, "o");
    integers_agree!(Binary, "b");
    integers_agree!(LowerExp, "e");
    integers_agree!(UpperExp, "E");
    integers_agree!(DebugLowerHex, "x?");
    integers_agree!(DebugUpperHex, "X?");
}

#[test]
fn floats_print_as_in_rust() {
    floats_agree!(Display, "");
    floats_agree!(Debug, "?");
    floats_agree!(LowerExp, "e");
    floats_agree!(UpperExp, "E");
    floats_agree!(DebugLowerHex, "x?");
}

#[test]
fn other_values_print_as_in_rust() {
    agrees!(Display, "", true, false, 'a', 'ß', '\u{10ffff}');
    agrees!(Debug, "?", true, false, 'a', '\'', '\n', '\u{301}');
    agrees!(Pointer, "p", std::ptr::null::<u8>(), std::ptr::without_provenance::<u8>(0xdead_beef));
    agrees!(Debug, "?", std::ptr::without_provenance::<u8>(0x10));
}

/// A record with strings; their sizes may lie.
fn strings(sizes: &[u32], text: &[u8]) -> PanicRecord {
    let mut record = PanicRecord { n_arguments: sizes.len() as u32, ..PanicRecord::EMPTY };
    for (argument, &size) in record.arguments.iter_mut().zip(sizes) {
        *argument = PanicArgument { kind: ArgumentKind::Str.number(), size, bits: [0; 2] };
    }
    record.text[..text.len()].copy_from_slice(text);
    record.text_length = text.len() as u32;
    record
}

fn show(record: &PanicRecord, style: FormatTrait) -> String {
    let pieces = (0..3).flat_map(|index| {
        let format = ArgumentFormat::new(style);
        [MessagePiece::Literal("|".to_owned()), MessagePiece::Argument { index, format }]
    });
    site(pieces.collect()).format(record)
}

#[test]
fn strings_follow_each_other_in_the_text() {
    let record = strings(&[3, 0, 6], &"abcgr\u{fc}\u{df}".as_bytes()[..8]);
    assert_eq!(show(&record, FormatTrait::Display), "|abc||grü…");
    let record = strings(&[3, 0, 6], "abcgr\u{fc}\u{df}".as_bytes());
    assert_eq!(show(&record, FormatTrait::Display), "|abc||grüß");
    assert_eq!(show(&record, FormatTrait::Debug), "|\"abc\"|\"\"|\"grüß\"");
    let format = ArgumentFormat {
        width: Some(FormatCount::Is(4)),
        precision: Some(FormatCount::Is(2)),
        alignment: Some(FormatAlignment::Right),
        zero_pad: true,
        ..ArgumentFormat::new(FormatTrait::Display)
    };
    let padded = site(vec![MessagePiece::Argument { index: 2, format }]).format(&record);
    assert_eq!(padded, format!("{:>04.2}", "grüß"));
}

#[test]
fn what_was_cut_off_is_told() {
    assert_eq!(show(&strings(&[2, 9, 4], b"abcd"), FormatTrait::Display), "|ab|cd…|…");
    assert_eq!(show(&strings(&[2, 9], b"abcd"), FormatTrait::Debug), "|\"ab\"|\"cd…\"|<not recorded>");
    assert_eq!(show(&strings(&[u32::MAX, u32::MAX, 1], b"ab"), FormatTrait::Display), "|ab…|…|…");
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_terminals_are_left_alone() {
    let record = strings(&[8, 2, 1], b"a\xff\x1b[2J\r\n\x00\t\x7f");
    assert_eq!(show(&record, FormatTrait::Display), "|a\u{fffd}\u{fffd}[2J\u{fffd}\n|\u{fffd}\t|\u{fffd}");
    let control = ArgumentFormat::new(FormatTrait::Display);
    assert_eq!(printed('\u{7}', control), "\u{fffd}");
}

#[test]
fn values_that_cannot_be_are_harmless() {
    let mut record = record_of(7_u32);
    let format = ArgumentFormat::new(FormatTrait::Display);
    let mut show = |argument: PanicArgument| {
        record.arguments[0] = argument;
        site(vec![MessagePiece::Argument { index: 0, format }]).format(&record)
    };
    assert_eq!(show(argument(ArgumentKind::Char, 4, 0xd800)), "\u{fffd}");
    assert_eq!(show(argument(ArgumentKind::Bool, 1, 0x1_02)), "true");
    assert_eq!(show(argument(ArgumentKind::U8, 999, u128::MAX)), "255");
    assert_eq!(show(argument(ArgumentKind::Unknown, 4, 1)), "<type>");
    assert_eq!(show(PanicArgument { kind: 77, size: 4, bits: [1; 2] }), "<type>");
    // Traits that the type does not have.
    let style = FormatTrait::Pointer;
    assert_eq!(printed(17_u8, ArgumentFormat::new(style)), "11");
    assert_eq!(printed(1.5_f32, ArgumentFormat::new(style)), "1.5");
}

#[test]
fn a_message_has_a_largest_length() {
    let format = ArgumentFormat { width: Some(FormatCount::Is(u16::MAX)), ..ArgumentFormat::new(FormatTrait::Display) };
    let pieces = vec![MessagePiece::Argument { index: 0, format }; 1000];
    let message = site(pieces).format(&record_of(1_u8));
    assert!(message.len() <= MAX_MESSAGE + ELLIPSIS.len_utf8() && message.ends_with(ELLIPSIS));
    // A width that the device made up.
    let mut record = record_of(1_u8);
    record.arguments[1] = argument(ArgumentKind::Usize, 8, u128::MAX);
    let format = ArgumentFormat { width: Some(FormatCount::Argument(1)), ..format };
    let message = site(vec![MessagePiece::Argument { index: 0, format }]).format(&record);
    assert_eq!(message.len(), usize::from(u16::MAX));
    record.arguments[1].kind = ArgumentKind::F32.number();
    assert_eq!(site(vec![MessagePiece::Argument { index: 0, format }]).format(&record), "1");
}

#[test]
fn any_record_gives_some_message() {
    let mut state = 0x5eed_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 32
    };
    let count = |number: u64| match number % 4 {
        0 => Some(FormatCount::Argument((number >> 8) as u8 % 10)),
        1 => Some(FormatCount::Is((number >> 8) as u16 % 100)),
        _ => None,
    };
    for _ in 0..5_000 {
        let mut record = PanicRecord {
            n_arguments: (random() % 12) as u32,
            text_length: (random() % 300) as u32,
            ..PanicRecord::EMPTY
        };
        for argument in &mut record.arguments {
            argument.kind = (random() % 20) as u32;
            argument.size = if random() % 8 == 0 { random() as u32 } else { (random() % 100) as u32 };
            argument.bits = if random() % 2 == 0 { [random(), random()] } else { [random() << 32 | random(); 2] };
        }
        record.text.fill_with(|| random() as u8);
        let message = (0..random() % 6).map(|_| MessagePiece::Argument {
            index: (random() % 10) as u8,
            format: ArgumentFormat {
                style: FormatTrait::ALL[(random() % 11) as usize],
                alternate: random() % 2 == 0,
                sign_plus: random() % 2 == 0,
                zero_pad: random() % 2 == 0,
                fill: '*',
                alignment: [None, Some(FormatAlignment::Center)][(random() % 2) as usize],
                width: count(random()),
                precision: count(random()),
            },
        });
        let message = site(message.collect()).format(&record);
        assert!(message.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{message:?}");
    }
}

#[test]
fn kinds_have_their_number() {
    for (number, kind) in ArgumentKind::ALL.into_iter().enumerate() {
        assert_eq!(kind.number(), number as u32);
        assert_eq!(ArgumentKind::from_number(number as u32), kind);
    }
    assert_eq!(ArgumentKind::from_number(u32::MAX), ArgumentKind::Unknown);
}
