//! Makes up images and changes their bytes.
//!
//! Knows the outline of the format (header, table, sections) but nothing of the decoder. Most changes are sealed again with a right
//! length and checksum: without that only the checksum would be tested.

use oxisycl_image::{
    Argument, ArgumentFormat, DeviceImage, Form, FormatCount, FormatTrait, GroupNeeds, HostLevel, ImageTarget,
    KernelEntry, MessagePiece, PanicSite, ParameterLayout, SourceLocation, SpecializedLoad, UnsupportedKernel, encode,
    encode_bundle,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::random::Random;

/// Where an image says how long it is, and what its checksum is.
const LENGTH: std::ops::Range<usize> = 16..24;
const CHECKSUM: std::ops::Range<usize> = 24..32;
/// The section table: kind, zero, offset, length for each of the sections.
const TABLE: usize = 32;
const TABLE_ENTRY: usize = 24;
const N_SECTIONS: usize = 6;
/// A bundle's header; then the length of the first image.
const BUNDLE_HEADER: usize = 24;

/// What the bytes pretend to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Image,
    Bundle,
}

/// The bytes of one case.
pub(crate) fn hostile(random: &mut Random) -> (Vec<u8>, Kind) {
    let image = image(random);
    let mut bytes = encode(&image).expect("an image that keeps the rules");
    for _ in 0..random.below(4) {
        change(random, &mut bytes, &image);
    }
    if !random.chance(16) {
        seal(&mut bytes);
    }
    if random.chance(2) {
        return (bytes, Kind::Image);
    }
    let mut bundle = bundle_of(random, &bytes);
    if random.chance(3) {
        change_bundle(random, &mut bundle);
    }
    (bundle, Kind::Bundle)
}

/// Images whose lists are as long as their bytes allow, of the smallest entries there are.
pub(crate) fn dearest() -> Vec<(Vec<u8>, Kind)> {
    let empty = DeviceImage {
        target: ImageTarget::Ptx { sm: 70 },
        kernels: Vec::new(),
        build_options: String::new(),
        unsupported: Vec::new(),
        sites: Vec::new(),
        code: Vec::new(),
    };
    let kernel = |number: usize| KernelEntry {
        location: SourceLocation { file: String::new(), line: 0, column: 0 },
        ..KernelEntry::new(
            format!("k{number}"),
            (number as u128).to_le_bytes(),
            Form::Single,
            ParameterLayout { size: 0, align: 1 },
            "",
        )
    };
    let unsupported = |number: usize| UnsupportedKernel {
        type_id: (number as u128).to_le_bytes(),
        form: Form::Single,
        type_name: String::new(),
        reason: String::new(),
    };
    let site = |message| PanicSite { location: None, message };
    let literal = || MessagePiece::Literal(String::new());
    // One more than a power of two: a vector that doubles has just grown.
    let n = (1 << 12) + 1;
    let images = [
        DeviceImage { kernels: (0..n).map(kernel).collect(), ..empty.clone() },
        DeviceImage {
            kernels: vec![KernelEntry { requirements: vec![String::new(); n], ..kernel(0) }],
            ..empty.clone()
        },
        DeviceImage { kernels: vec![KernelEntry { unstated: vec![String::new(); n], ..kernel(0) }], ..empty.clone() },
        DeviceImage { kernels: vec![KernelEntry { library: vec![String::new(); n], ..kernel(0) }], ..empty.clone() },
        DeviceImage { unsupported: (0..n).map(unsupported).collect(), ..empty.clone() },
        DeviceImage { sites: vec![site(Vec::new()); n], ..empty.clone() },
        DeviceImage { sites: vec![site((0..n).map(|_| literal()).collect())], ..empty.clone() },
    ];
    let mut cases: Vec<_> = images.iter().map(|image| (encode(image).expect("an image"), Kind::Image)).collect();
    cases.push((encode_bundle(&vec![empty; n]).expect("a bundle"), Kind::Bundle));
    cases
}

/// An image that keeps the rules.
fn image(random: &mut Random) -> DeviceImage {
    let target = match random.below(4) {
        0 => ImageTarget::Host {
            triple: "x86_64-unknown-linux-gnu".to_owned(),
            level: (random.below(2) == 0).then_some(HostLevel::V4),
        },
        1 => ImageTarget::SpirV { major: 1, minor: random.next() as u32 },
        2 => ImageTarget::AmdGcn { arch: "gfx90a:xnack-".to_owned() },
        _ => ImageTarget::Ptx { sm: random.next() as u32 },
    };
    let mut image = DeviceImage {
        target,
        kernels: (0..random.below(4)).map(|number| kernel(random, number)).collect(),
        build_options: text(random),
        unsupported: (4..4 + random.below(3)).map(|number| unsupported(random, number)).collect(),
        sites: (0..random.below(4)).map(|_| site(random)).collect(),
        code: (0..random.below(40)).map(|_| random.next() as u8).collect(),
    };
    if let ([kernel, ..], ImageTarget::Ptx { .. } | ImageTarget::SpirV { .. }) = (&mut *image.kernels, &image.target) {
        kernel.parameters = ParameterLayout { size: 64, align: 8 };
        kernel.arguments.clear();
        let is_text = matches!(image.target, ImageTarget::Ptx { .. });
        image.code = if is_text { text_with_loads(random) } else { words_with_loads(random) };
        kernel.specialized = SpecializedLoad::find_for(&image.target, &image.code);
    }
    image
}

/// A part of a block of 64 bytes: offset and size.
fn part(random: &mut Random) -> (usize, usize) {
    let size = 1 << random.below(4);
    (size * random.below(64 / size), size)
}

/// PTX with loads of specialization constants.
fn text_with_loads(random: &mut Random) -> Vec<u8> {
    let mut text = "{\n".to_owned();
    for register in 0..random.below(4) {
        let (offset, size) = part(random);
        text.push_str(&SpecializedLoad::text(offset, size, &format!("%r{register}"), "k_param_1"));
        text.push('\n');
    }
    text.into_bytes()
}

/// SPIR-V with loads of specialization constants: names, types, a function, and the loads.
fn words_with_loads(random: &mut Random) -> Vec<u8> {
    let instruction =
        |number: u32, operands: &[u32]| [&[number | (1 + operands.len() as u32) << 16], operands].concat();
    let (mut names, mut loads) = (Vec::new(), Vec::new());
    for result in 10..10 + random.below(4) as u32 {
        let (offset, size) = part(random);
        let mut name = SpecializedLoad::name(offset, size).into_bytes();
        name.resize(name.len() / 4 * 4 + 4, 0);
        let name = name.chunks(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
        names.extend(instruction(5, &[&[result][..], &name.collect::<Vec<_>>()].concat()));
        // The types are numbered by the size.
        loads.extend(instruction(61, &[size as u32, result, 20, 2, size as u32]));
    }
    let types = [1, 2, 4, 8].map(|size| instruction(21, &[size, 8 * size, 0])).concat();
    let header = [0x0723_0203, 0x0001_0200, 0, 100, 0];
    let words = [&header[..], &names, &types, &instruction(54, &[1, 2, 0, 3]), &loads].concat();
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn kernel(random: &mut Random, number: usize) -> KernelEntry {
    let align = 1 << random.below(9);
    let form = form(random);
    let requirements: Vec<String> = (0..random.below(3)).map(|_| text(random)).collect();
    let aspects = requirements.iter().filter(|_| random.chance(2)).cloned().collect();
    let groups = groups(random, form);
    let is_free = matches!(form, Form::Group(_)) || groups.local == [0; 3];
    let size = align * random.below(100);
    KernelEntry {
        // All of one length, so that one can be written over another.
        symbol: format!("kernel_{number}"),
        type_id: [number as u8; 16],
        form,
        parameters: ParameterLayout { size, align },
        type_name: text(random),
        location: location(random),
        launch: random.chance(2).then(|| location(random)),
        requirements,
        aspects,
        unstated: (0..random.below(3)).map(|_| text(random)).collect(),
        library: (0..random.below(3)).map(|_| text(random)).collect(),
        specialized: Vec::new(),
        arguments: if size == 0 { Vec::new() } else { (0..random.below(3)).map(|_| argument(random, size)).collect() },
        may_panic: random.chance(2),
        may_print: random.chance(2),
        is_paired: random.chance(2) && is_free,
        has_unbounded_stack: random.chance(2),
        groups,
    }
}

/// An argument inside a block of that size.
fn argument(random: &mut Random, block: usize) -> Argument {
    let offset = random.below(block);
    Argument { path: text(random), type_name: text(random), offset, size: 1 + random.below(block - offset) }
}

fn unsupported(random: &mut Random, number: usize) -> UnsupportedKernel {
    UnsupportedKernel { type_id: [number as u8; 16], form: form(random), type_name: text(random), reason: text(random) }
}

fn form(random: &mut Random) -> Form {
    let dimensions = 1 + random.below(3) as u8;
    match random.below(3) {
        0 => Form::Single,
        1 => Form::Range(dimensions),
        _ => Form::Group(dimensions),
    }
}

fn groups(random: &mut Random, form: Form) -> GroupNeeds {
    let of_code = GroupNeeds {
        static_local_bytes: random.below(1 << 16) as u32,
        has_barriers: random.chance(2),
        ..GroupNeeds::default()
    };
    let extents = [1 + random.below(4) as u32, 1 + random.below(8) as u32, 256];
    let sub_group = if random.chance(2) { 0 } else { 1 << random.below(7) };
    let local = match form {
        _ if random.chance(2) => [0; 3],
        Form::Single => [0; 3],
        Form::Range(1) => [1, 1, extents[2]],
        Form::Range(2) => [1, extents[1], extents[2]],
        _ => extents,
    };
    if !matches!(form, Form::Group(_)) {
        return GroupNeeds { local, sub_group, ..of_code };
    }
    let bytes_of_element = random.below(65) as u32;
    GroupNeeds { local, sub_group, bytes_of_element, uses_local_memory: random.chance(2), ..of_code }
}

fn site(random: &mut Random) -> PanicSite {
    let location = if random.chance(3) { None } else { Some(location(random)) };
    PanicSite { location, message: (0..random.below(4)).map(|_| piece(random)).collect() }
}

fn piece(random: &mut Random) -> MessagePiece {
    if random.chance(2) {
        return MessagePiece::Literal(text(random));
    }
    let format = ArgumentFormat {
        alternate: random.chance(2),
        fill: *random.pick(&[' ', '·', char::MAX]),
        width: random.chance(2).then(|| FormatCount::Is(random.next() as u16)),
        precision: random.chance(2).then(|| FormatCount::Argument(random.next() as u8)),
        ..ArgumentFormat::new(*random.pick(&[FormatTrait::Display, FormatTrait::Debug, FormatTrait::LowerHex]))
    };
    MessagePiece::Argument { index: random.next() as u8, format }
}

fn location(random: &mut Random) -> SourceLocation {
    SourceLocation { file: text(random), line: random.next() as u32, column: random.next() as u32 }
}

fn text(random: &mut Random) -> String {
    (*random.pick(&["", "a", "fp64", "src/häuser.rs", "app::main::{{closure}}", "\u{10ffff}\0"])).to_owned()
}

/// One change of an image's bytes, whose original is `image`.
fn change(random: &mut Random, bytes: &mut Vec<u8>, image: &DeviceImage) {
    match random.below(11) {
        0 => flip(random, bytes),
        1 => overwrite(random, bytes),
        2 => section_entry(random, bytes),
        3 => swap_sections(random, bytes),
        4 => {
            let length = random.below(bytes.len() + 1);
            bytes.truncate(length);
        }
        5 => insert(random, bytes),
        6 => copy_within(random, bytes),
        7 => not_utf8(random, bytes),
        8 => same_kernel_twice(random, bytes, image),
        9 => form_or_symbol(random, bytes, image),
        _ => remove(random, bytes),
    }
}

fn flip(random: &mut Random, bytes: &mut [u8]) {
    for _ in 0..=random.below(8) {
        let position = random.below(bytes.len());
        if let Some(byte) = bytes.get_mut(position) {
            *byte ^= 1 << random.below(8);
        }
    }
}

/// A number of 1, 2, 4 or 8 bytes anywhere, such as a length at its limit.
fn overwrite(random: &mut Random, bytes: &mut [u8]) {
    let size = 1 << random.below(4);
    let number = random.length(bytes.len()).to_le_bytes();
    let position = random.below(bytes.len());
    // Most numbers of the format stand at multiples of four.
    let position = if random.chance(3) { position } else { position & !3 };
    if let Some(place) = bytes.get_mut(position..position + size) {
        place.copy_from_slice(&number[..size]);
    }
}

/// The offset or the length of a section: that of another section, so that they overlap, or any other.
fn section_entry(random: &mut Random, bytes: &mut [u8]) {
    let mut entry = || TABLE + TABLE_ENTRY * random.below(N_SECTIONS) + 8;
    let (from, to) = (entry(), entry());
    let field = 8 * random.below(2);
    let other = bytes.get(from + field..from + field + 8).map(<[u8]>::to_vec);
    let number = if random.chance(2) { other } else { None };
    let number = number.unwrap_or_else(|| random.length(bytes.len()).to_le_bytes().to_vec());
    if let Some(place) = bytes.get_mut(to + field..to + field + 8) {
        place.copy_from_slice(&number);
    }
}

fn swap_sections(random: &mut Random, bytes: &mut [u8]) {
    let (a, b) = (random.below(N_SECTIONS), random.below(N_SECTIONS));
    let entry = |number: usize| TABLE + TABLE_ENTRY * number;
    if bytes.len() >= entry(N_SECTIONS) {
        for byte in 0..TABLE_ENTRY {
            bytes.swap(entry(a) + byte, entry(b) + byte);
        }
    }
}

fn insert(random: &mut Random, bytes: &mut Vec<u8>) {
    let position = random.below(bytes.len() + 1);
    let fill = random.next() as u8;
    let length = random.below(40);
    bytes.splice(position..position, std::iter::repeat_n(fill, length));
}

fn remove(random: &mut Random, bytes: &mut Vec<u8>) {
    let start = random.below(bytes.len());
    let end = (start + random.below(40)).min(bytes.len());
    bytes.drain(start..end);
}

fn copy_within(random: &mut Random, bytes: &mut [u8]) {
    let length = random.below(bytes.len().min(80) + 1);
    let (from, to) = (random.below(bytes.len() - length + 1), random.below(bytes.len() - length + 1));
    bytes.copy_within(from..from + length, to);
}

fn not_utf8(random: &mut Random, bytes: &mut [u8]) {
    const PATTERNS: [&[u8]; 5] = [&[0xff], &[0xc3], &[0xed, 0xa0, 0x80], &[0xf4, 0x90, 0x80, 0x80], &[0xc0, 0x80]];
    let pattern = *random.pick(&PATTERNS);
    let position = random.below(bytes.len());
    if let Some(place) = bytes.get_mut(position..position + pattern.len()) {
        place.copy_from_slice(pattern);
    }
}

/// Gives a kernel the symbol, the type, or both of another one.
fn same_kernel_twice(random: &mut Random, bytes: &mut [u8], image: &DeviceImage) {
    if image.kernels.len() < 2 {
        return;
    }
    let (from, to) = (random.pick(&image.kernels), random.pick(&image.kernels));
    let mut replace = |old: &[u8], new: &[u8]| {
        if let Some(position) = position(bytes, old) {
            bytes[position..position + new.len()].copy_from_slice(new);
        }
    };
    let what = random.below(3);
    if what != 0 {
        replace(from.symbol.as_bytes(), to.symbol.as_bytes());
    }
    if what != 1 {
        replace(&from.type_id, &to.type_id);
    }
}

/// Gives a kernel another form, another number of dimensions, or a NUL in its symbol.
fn form_or_symbol(random: &mut Random, bytes: &mut [u8], image: &DeviceImage) {
    if image.kernels.is_empty() {
        return;
    }
    let kernel = random.pick(&image.kernels);
    let (place, offset) = match random.below(3) {
        0 => (position(bytes, &kernel.type_id), 16),
        1 => (position(bytes, &kernel.type_id), 17),
        _ => (position(bytes, kernel.symbol.as_bytes()), random.below(kernel.symbol.len())),
    };
    if let Some(byte) = place.and_then(|place| bytes.get_mut(place + offset)) {
        *byte = random.below(5) as u8;
    }
}

/// Where a part is first.
fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(part.len())?;
    (0..=last).find(|position| bytes[*position..].starts_with(part))
}

/// A bundle of the bytes and others that are in order.
fn bundle_of(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let before: Vec<DeviceImage> = (0..random.below(3)).map(|_| image(random)).collect();
    let mut bundle = encode_bundle(&before).expect("a bundle");
    bundle[12..16].copy_from_slice(&(before.len() as u32 + 1).to_le_bytes());
    bundle.extend((bytes.len() as u64).to_le_bytes());
    bundle.extend(bytes);
    bundle.resize(bundle.len().next_multiple_of(8), 0);
    seal_bundle(&mut bundle);
    bundle
}

fn change_bundle(random: &mut Random, bundle: &mut Vec<u8>) {
    match random.below(4) {
        0 => overwrite(random, &mut bundle[..BUNDLE_HEADER + 8]),
        1 => flip(random, bundle),
        2 => insert(random, bundle),
        _ => remove(random, bundle),
    }
    if !random.chance(8) {
        seal_bundle(bundle);
    }
}

/// Makes an image's length and checksum right, as a hostile author would.
fn seal(bytes: &mut [u8]) {
    let length = (bytes.len() as u64).to_le_bytes();
    let Some(place) = bytes.get_mut(LENGTH) else { return };
    place.copy_from_slice(&length);
    if bytes.len() < CHECKSUM.end {
        return;
    }
    let (before, rest) = bytes.split_at_mut(CHECKSUM.start);
    let (place, after) = rest.split_at_mut(CHECKSUM.len());
    let sum = xxh3_64(&[before, after].concat());
    place.copy_from_slice(&sum.to_le_bytes());
}

fn seal_bundle(bundle: &mut [u8]) {
    let length = (bundle.len() as u64).to_le_bytes();
    if let Some(place) = bundle.get_mut(LENGTH) {
        place.copy_from_slice(&length);
    }
}
