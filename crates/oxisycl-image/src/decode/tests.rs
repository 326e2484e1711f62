//! Round trips, and what happens to bytes that no encoder wrote.

use super::*;
use crate::format::CHECKSUM_OFFSET;
use crate::{
    ArgumentFormat, FormatAlignment, FormatCount, FormatTrait, HostLevel, ImageTarget, MessagePiece, PanicSite, encode,
    encode_bundle,
};

fn kernel(symbol: &str, type_id: u8, form: Form) -> KernelEntry {
    KernelEntry {
        location: SourceLocation { file: "src/häuser.rs".to_owned(), line: 7, column: 31 },
        ..KernelEntry::new(
            symbol,
            [type_id; 16],
            form,
            ParameterLayout { size: 48, align: 16 },
            format!("app::{symbol}::{{{{closure}}}}"),
        )
    }
}

fn argument(path: &str, type_name: &str, offset: usize, size: usize) -> Argument {
    Argument { path: path.to_owned(), type_name: type_name.to_owned(), offset, size }
}

fn unsupported(type_id: u8, form: Form) -> UnsupportedKernel {
    let (type_name, reason) = ("app::Walk".to_owned(), "calls std::fs::read at src/main.rs:4:5".to_owned());
    UnsupportedKernel { type_id: [type_id; 16], form, type_name, reason }
}

fn sites() -> Vec<PanicSite> {
    let format = ArgumentFormat {
        alternate: true,
        fill: '·',
        alignment: Some(FormatAlignment::Center),
        width: Some(FormatCount::Argument(1)),
        precision: Some(FormatCount::Is(3)),
        ..ArgumentFormat::new(FormatTrait::DebugUpperHex)
    };
    let location = SourceLocation { file: "src/lib.rs".to_owned(), line: 3, column: 9 };
    vec![
        PanicSite { location: None, message: Vec::new() },
        PanicSite {
            location: Some(location),
            message: vec![
                MessagePiece::Literal("value ".to_owned()),
                MessagePiece::Argument { index: 0, format },
                MessagePiece::Argument { index: 2, format: ArgumentFormat::new(FormatTrait::Display) },
            ],
        },
    ]
}

fn sample() -> DeviceImage {
    DeviceImage {
        target: ImageTarget::Ptx { sm: 90 },
        kernels: vec![
            KernelEntry {
                requirements: vec!["fp64".to_owned(), "atomic64".to_owned()],
                aspects: vec!["fp64".to_owned()],
                unstated: vec!["it needs the aspect atomic64, which it does not state".to_owned()],
                library: vec!["core::num::dec2flt".to_owned(), "sinf".to_owned()],
                launch: Some(SourceLocation { file: "src/l.rs".to_owned(), line: 8, column: 4 }),
                ..kernel("saxpy", 1, Form::Range(2))
            },
            KernelEntry {
                may_panic: true,
                arguments: vec![argument("captures", "app::setup", 0, 8), argument("1.sta[2]", "i32", 8, 4)],
                ..kernel("setup", 1, Form::Single)
            },
            KernelEntry {
                groups: GroupNeeds {
                    local: [1, 16, 32],
                    sub_group: 32,
                    static_local_bytes: 8,
                    bytes_of_element: 4,
                    uses_local_memory: true,
                    has_barriers: true,
                },
                ..kernel("tiles", 3, Form::Group(2))
            },
            KernelEntry {
                may_print: true,
                is_paired: true,
                has_unbounded_stack: true,
                groups: GroupNeeds::default(),
                ..kernel("a", 0xff, Form::Range(1))
            },
        ],
        build_options: "-cl-fast-relaxed-math".to_owned(),
        unsupported: vec![unsupported(2, Form::Range(3)), unsupported(2, Form::Single)],
        sites: sites(),
        code: b".version 8.0\n.target sm_90\n\0".to_vec(),
    }
}

fn empty() -> DeviceImage {
    DeviceImage {
        target: ImageTarget::Host { triple: "x86_64-unknown-linux-gnu".to_owned(), level: None },
        kernels: Vec::new(),
        build_options: String::new(),
        unsupported: Vec::new(),
        sites: Vec::new(),
        code: Vec::new(),
    }
}

/// Makes length and checksum right, as a hostile author would.
fn reseal(bytes: &mut [u8]) {
    let length = bytes.len() as u64;
    bytes[16..CHECKSUM_OFFSET].copy_from_slice(&length.to_le_bytes());
    let sum = checksum(bytes);
    bytes[CHECKSUM_OFFSET..HEADER_SIZE].copy_from_slice(&sum.to_le_bytes());
}

/// Decodes bytes with a right checksum. What is accepted must be the one encoding of an image that keeps the rules.
fn decode_hostile(bytes: &[u8]) -> Result<DeviceImage, ImageError> {
    let result = decode(bytes);
    match &result {
        Ok(image) => assert_eq!(encode(image).as_deref(), Ok(bytes)),
        Err(error) => assert!(error.to_string().starts_with("device image: ")),
    }
    result
}

/// The sample with the bytes at one place replaced.
fn altered(offset: usize, replacement: &[u8]) -> Vec<u8> {
    let mut bytes = encode(&sample()).unwrap();
    bytes[offset..offset + replacement.len()].copy_from_slice(replacement);
    reseal(&mut bytes);
    bytes
}

/// Where in the sample a section begins.
fn start(section: Section) -> usize {
    let bytes = encode(&sample()).unwrap();
    let entry = HEADER_SIZE + Section::ALL.iter().position(|other| *other == section).unwrap() * TABLE_ENTRY_SIZE;
    u64::from_le_bytes(bytes[entry + 8..entry + 16].try_into().unwrap()) as usize
}

/// Where in the sample a text begins.
fn position(text: &str) -> usize {
    let bytes = encode(&sample()).unwrap();
    bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap()
}

#[test]
fn images_round_trip() {
    for image in [
        sample(),
        empty(),
        DeviceImage { code: vec![0xa5; 100_000], ..sample() },
        DeviceImage { sites: every_format(), ..empty() },
        DeviceImage { target: ImageTarget::SpirV { major: 1, minor: 4 }, ..empty() },
        DeviceImage { target: ImageTarget::Host { triple: "x".to_owned(), level: Some(HostLevel::V3) }, ..empty() },
        DeviceImage { target: ImageTarget::AmdGcn { arch: "gfx90a:xnack-".to_owned() }, ..sample() },
    ] {
        assert_eq!(decode(&encode(&image).unwrap()), Ok(image));
    }
}

/// One site for every trait, flag, alignment and kind of count.
fn every_format() -> Vec<PanicSite> {
    let mut formats = Vec::new();
    for style in FormatTrait::ALL {
        let format = ArgumentFormat::new(style);
        formats.extend([
            format,
            ArgumentFormat { alternate: true, ..format },
            ArgumentFormat { sign_plus: true, ..format },
            ArgumentFormat { zero_pad: true, ..format },
            ArgumentFormat { fill: char::MAX, alignment: Some(FormatAlignment::Left), ..format },
            ArgumentFormat { alignment: Some(FormatAlignment::Right), ..format },
            ArgumentFormat { width: Some(FormatCount::Is(u16::MAX)), ..format },
            ArgumentFormat { precision: Some(FormatCount::Argument(255)), ..format },
        ]);
    }
    let site = |format| PanicSite { location: None, message: vec![MessagePiece::Argument { index: 255, format }] };
    formats.into_iter().map(site).collect()
}

#[test]
fn bundles_round_trip() {
    for images in [Vec::new(), vec![sample()], vec![empty(), sample(), DeviceImage { code: vec![1; 13], ..empty() }]] {
        let bytes = encode_bundle(&images).unwrap();
        assert!(bytes.len().is_multiple_of(SECTION_ALIGN));
        assert_eq!(decode_bundle(&bytes), Ok(images));
    }
}

#[test]
fn every_change_and_truncation_of_a_bundle_is_an_error() {
    let original = encode_bundle(&[empty(), DeviceImage { code: vec![1; 13], ..empty() }]).unwrap();
    for length in 0..original.len() {
        assert!(decode_bundle(&original[..length]).is_err(), "{length}");
        let mut bytes = original[..length].to_vec();
        if length >= 24 {
            bytes[16..24].copy_from_slice(&(length as u64).to_le_bytes());
            assert!(decode_bundle(&bytes).is_err(), "{length}");
        }
    }
    let mut bytes = original.clone();
    for offset in 0..bytes.len() {
        for change in 1..=255 {
            bytes[offset] ^= change;
            assert!(decode_bundle(&bytes).is_err(), "{change:#x} at {offset}");
            bytes[offset] ^= change;
        }
    }
    for number in [0, 1, 7, 0x7fff_ffff, 0xffff_ffff, u64::MAX / 2, u64::MAX - 7, u64::MAX] {
        for offset in 0..original.len() - 8 {
            let mut bytes = original.clone();
            bytes[offset..offset + 8].copy_from_slice(&number.to_le_bytes());
            if let Ok(images) = decode_bundle(&bytes) {
                assert_eq!(encode_bundle(&images).unwrap(), bytes);
            }
        }
    }
}

#[test]
fn what_is_wrong_with_a_bundle_is_told() {
    let message = |bytes: &[u8]| decode_bundle(bytes).unwrap_err().to_string();
    let bundle = encode_bundle(&[empty()]).unwrap();
    let image = encode(&empty()).unwrap();
    assert_eq!(message(&image), "device image: expected it to begin with \"OXISYCLB\", found \"OXISYCLI\"");
    let mut many = bundle.clone();
    many[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    let expected = format!("device image: bundle: expected {} bytes at offset 12, found ", u32::MAX as u64 * 8);
    assert!(message(&many).starts_with(&expected), "{}", message(&many));
    let mut few = bundle.clone();
    few[12] = 0;
    assert_eq!(
        message(&few),
        format!("device image: bundle: expected its end, found {} more bytes", bundle.len() - 24)
    );
    let mut old = bundle;
    old[8] = 1;
    assert_eq!(message(&old), "device image: expected format version 14, found 1");
}

#[test]
fn the_bytes_of_version_fourteen_are_fixed() {
    let bytes = encode(&empty()).unwrap();
    let mut expected = b"OXISYCLI\x0e\0\0\0\x06\0\0\0".to_vec();
    // Length and checksum, which `reseal` fills in.
    expected.extend([0; 16]);
    for (kind, offset, length) in
        [(1_u32, 176_u64, 29_u64), (2, 208, 0), (3, 208, 4), (4, 216, 4), (5, 224, 4), (6, 232, 0)]
    {
        expected.extend(kind.to_le_bytes());
        expected.extend([0; 4]);
        expected.extend(offset.to_le_bytes());
        expected.extend(length.to_le_bytes());
    }
    expected.extend(b"host:x86_64-unknown-linux-gnu\0\0\0");
    expected.extend([0; 24]);
    reseal(&mut expected);
    assert_eq!(bytes, expected);
    assert_eq!(
        checksum(&encode(&sample()).unwrap()),
        263729972609071232,
        "the format changed: it needs another version"
    );
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = encode(&sample()).unwrap();
    for length in 0..bytes.len() {
        assert!(decode(&bytes[..length]).is_err(), "{length}");
        if length >= HEADER_SIZE {
            let mut bytes = bytes[..length].to_vec();
            reseal(&mut bytes);
            // The last byte of the image is code, but then its length in the table is wrong.
            decode_hostile(&bytes).unwrap_err();
        }
    }
}

#[test]
fn more_bytes_are_an_error() {
    let mut bytes = encode(&sample()).unwrap();
    let length = bytes.len() as u64;
    bytes.push(0);
    assert_eq!(decode(&bytes), Err(ImageError::Length { expected: length, found: length + 1 }));
    reseal(&mut bytes);
    assert_eq!(decode(&bytes), Err(ImageError::Trailing { part: "code", found: 1 }));
}

#[test]
fn every_change_of_one_byte_is_an_error() {
    let mut bytes = encode(&sample()).unwrap();
    for offset in 0..bytes.len() {
        for change in 1..=255 {
            bytes[offset] ^= change;
            assert!(decode(&bytes).is_err(), "{change:#x} at {offset}");
            bytes[offset] ^= change;
        }
    }
}

#[test]
fn every_change_of_one_byte_with_a_right_checksum_decodes_canonically_or_not_at_all() {
    let original = encode(&sample()).unwrap();
    let mut n_accepted = 0;
    for offset in 0..original.len() {
        for change in 1..=255 {
            let mut bytes = original.clone();
            bytes[offset] ^= change;
            reseal(&mut bytes);
            n_accepted += usize::from(decode_hostile(&bytes).is_ok());
        }
    }
    // Letters of names and code may change, and are most of the bytes that may.
    assert!(n_accepted > 10_000, "only {n_accepted} changes were accepted");
}

#[test]
fn extreme_numbers_anywhere_are_harmless() {
    let length = encode(&sample()).unwrap().len();
    for number in [0, 1, 7, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, u64::MAX / 2, u64::MAX - 7, u64::MAX] {
        for offset in 0..length - 8 {
            let _ = decode_hostile(&altered(offset, &number.to_le_bytes()));
            let _ = decode_hostile(&altered(offset, &(number as u32).to_le_bytes()));
        }
    }
}

#[test]
fn random_bytes_are_refused() {
    let mut state = 0x5eed_u64;
    for length in 0..2_000 {
        let mut bytes: Vec<u8> = Vec::with_capacity(length);
        bytes.extend((0..length).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        }));
        assert!(decode(&bytes).is_err());
        if length >= HEADER_SIZE {
            bytes[..16].copy_from_slice(b"OXISYCLI\x09\0\0\0\x06\0\0\0");
            reseal(&mut bytes);
            assert!(decode_hostile(&bytes).is_err());
        }
    }
}

#[test]
fn counts_and_lengths_beyond_the_input_are_refused_before_anything_is_allocated() {
    let found = decode_hostile(&altered(start(Section::Kernels), &u32::MAX.to_le_bytes())).unwrap_err();
    let ImageError::Truncated { part: "kernels", expected, .. } = found else { panic!("{found}") };
    assert_eq!(expected, (u32::MAX as usize).saturating_mul(MIN_KERNEL_SIZE));

    let found = decode_hostile(&altered(position("saxpy") - 4, &u32::MAX.to_le_bytes())).unwrap_err();
    let ImageError::Truncated { part: "kernels", expected, .. } = found else { panic!("{found}") };
    assert_eq!(expected, u32::MAX as usize);
}

/// The message for the sample with the bytes at one place replaced.
fn message(offset: usize, replacement: &[u8]) -> String {
    decode_hostile(&altered(offset, replacement)).unwrap_err().to_string()
}

#[test]
fn every_part_has_its_message() {
    let entry = HEADER_SIZE;
    let kernels = start(Section::Kernels);
    let sites = start(Section::Sites);
    // After the count, the first site, the second one's place, and the first piece.
    let argument = sites + 4 + 8 + (4 + 8 + 4 + 10) + 4 + (8 + 6) + 4;
    let first_kernel = kernels + 4;
    for (offset, replacement, expected) in [
        (0, &b"\x7fELF"[..], "expected it to begin with \"OXISYCLI\", found \"\\x7fELFYCLI\"".to_owned()),
        (8, &[1], "expected format version 14, found 1".to_owned()),
        (12, &[5], "header: expected 6 at offset 12, found 5".to_owned()),
        (entry, &[9], format!("section table: expected 1 at offset {entry}, found 9")),
        (entry + 4, &[1], format!("section table: expected 0 at offset {}, found 1", entry + 4)),
        (entry + 8, &[0], format!("section table: expected 176 at offset {}, found 0", entry + 8)),
        (entry + 23, &[1], "target: expected 72057594037927941 bytes at offset 176, found ".to_owned()),
        (181, &[3], "padding: expected 0 at offset 181, found 3".to_owned()),
        (176, b"ps", "expected a known target, found another".to_owned()),
        (176, &[0xff], "target: expected utf-8 at offset 176, found other bytes".to_owned()),
        (position("fp64"), &[0xc3], format!("kernels: expected utf-8 at offset {}", position("fp64"))),
        (start(Section::Unsupported), &[1], "unsupported kernels: expected its end, found 75 more bytes".to_owned()),
        (sites + 4, &[2], format!("panic sites: expected 1 at offset {}, found 2", sites + 4)),
        (argument - 4, &[2], format!("panic sites: expected 1 at offset {}, found 2", argument - 4)),
        (argument + 1, &[11], format!("panic sites: expected 10 at offset {}, found 11", argument + 1)),
        (argument + 2, &[8], format!("panic sites: expected 7 at offset {}, found 8", argument + 2)),
        (argument + 3, &[4], format!("panic sites: expected 3 at offset {}, found 4", argument + 3)),
        (argument + 5, &[0xd8], format!("panic sites: expected 1114111 at offset {}, found 55479", argument + 4)),
        (argument + 8, &[3], format!("panic sites: expected 2 at offset {}, found 3", argument + 8)),
        (argument + 8, &[0], format!("panic sites: expected 0 at offset {}, found 1", argument + 10)),
        (argument + 11, &[1], format!("panic sites: expected 255 at offset {}, found 257", argument + 10)),
        (kernels, &[2], "kernels: expected its end, found ".to_owned()),
        (first_kernel + 16, &[3], format!("kernel form: expected 2 at offset {}, found 3", first_kernel + 16)),
        (first_kernel + 16, &[0], format!("kernel form: expected 0 at offset {}, found 2", first_kernel + 17)),
        (first_kernel + 18, &[5], format!("kernels: expected 1 at offset {}, found 5", first_kernel + 18)),
        (first_kernel + 19, &[5], format!("kernels: expected 1 at offset {}, found 5", first_kernel + 19)),
        (first_kernel + 17, &[4], "kernel \"saxpy\": expected 1 to 3 dimensions, found 4".to_owned()),
        (first_kernel + 17, &[0], "kernel \"saxpy\": expected 1 to 3 dimensions, found 0".to_owned()),
        (
            first_kernel + 21,
            &[47],
            "kernel \"saxpy\": expected the size and alignment of a type, found size 47 and alignment 16".to_owned(),
        ),
        (position("saxpy"), b"setup", "kernel \"setup\": expected its symbol once, found it twice".to_owned()),
        (position("saxpy"), &[0], "kernel \"\\0axpy\": expected a symbol that is not empty".to_owned()),
    ] {
        let message = message(offset, replacement);
        assert!(message.starts_with(&format!("device image: {expected}")), "{message}");
    }
}

#[test]
fn damage_is_told_with_both_checksums() {
    let mut bytes = encode(&sample()).unwrap();
    let expected = checksum(&bytes);
    *bytes.last_mut().unwrap() ^= 1;
    let found = checksum(&bytes);
    assert_eq!(decode(&bytes), Err(ImageError::Checksum { expected, found }));
}

#[test]
fn short_inputs_are_told_apart_from_other_files() {
    assert_eq!(decode(b""), Err(ImageError::Magic { expected: "OXISYCLI", found: Vec::new() }));
    assert_eq!(decode(b"OXI"), Err(ImageError::Magic { expected: "OXISYCLI", found: b"OXI".to_vec() }));
    let error = decode(b"OXISYCLI\x09\0").unwrap_err();
    assert_eq!(error.to_string(), "device image: header: expected 4 bytes at offset 8, found 2");
}
