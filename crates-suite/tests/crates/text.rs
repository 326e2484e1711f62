//! Unicode, and texts that stand for bytes and numbers.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::bytes;
use crate::harness::{Env, kernels, scramble};

kernels![unicode_segmentation, hex, base64, ryu];

fn unicode_segmentation(env: &Env) {
    const TEXTS: [&str; 4] =
        ["a\u{310}e\u{301}o\u{308}\u{332}", "The quick (\"brown\") fox can't jump 32.3 feet", "🇷🇺🇸🇹 👩‍👩‍👧", ""];
    env.compare(|i| {
        let text = TEXTS[i % 4];
        let longest = text.graphemes(true).map(str::len).max().unwrap_or(0);
        let words = text.unicode_words().filter(|word| word.len() > i % 3).count();
        (text.graphemes(true).count() as u32, longest as u32, words as u32, text.split_word_bounds().count() as u32)
    });
}

fn hex(env: &Env) {
    env.compare(|i| {
        let (source, mut text, mut back) = (bytes::<20>(i), [0_u8; 40], [0_u8; 20]);
        let encoded = hex::encode_to_slice(source, &mut text).is_ok();
        if i % 7 == 0 {
            text[i % 40] = b'g';
        }
        let decoded = match hex::decode_to_slice(text, &mut back) {
            Ok(()) => 1000,
            Err(hex::FromHexError::InvalidHexCharacter { index, .. }) => index as u32,
            Err(_) => 2000,
        };
        (encoded, decoded, back == source, text[5])
    });
}

fn base64(env: &Env) {
    env.compare(|i| {
        let (source, mut text, mut back) = (bytes::<30>(i), [0_u8; 40], [0_u8; 36]);
        let source = &source[..i % 31];
        let length = STANDARD.encode_slice(source, &mut text).unwrap_or(99);
        let decoded = STANDARD.decode_slice(&text[..length], &mut back).unwrap_or(99);
        let other = URL_SAFE_NO_PAD.decode_slice(&text[..length], &mut [0_u8; 36]).is_ok();
        (length as u32, decoded as u32, &back[..decoded.min(36)] == source, other)
    });
}

fn ryu(env: &Env) {
    env.compare(|i| {
        let bits = u64::from(scramble(i)) << 32 | u64::from(scramble(i + 5));
        let (mut buffer, mut single) = (ryu::Buffer::new(), ryu::Buffer::new());
        let sum = |text: &str| text.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte));
        let small = single.format(scramble(i) as f32 / 8.0);
        (sum(buffer.format(f64::from_bits(bits))), sum(small), small.len() as u32)
    });
}
