//! What was compressed, decompressed by kernels.

use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use crate::harness::{Env, kernels};
use crate::outcome::Tolerance::Exact;

kernels![lz4_flex, miniz_oxide];

const TEXT: &[u8] =
    b"She sells sea shells by the sea shore. The shells she sells are surely seashells, by the sea shore.";
/// Texts, each in a block of so many bytes: one for its length, then what was compressed, then zeros.
const BLOCK: usize = 128;

/// Beginnings of the text, compressed by the host.
fn blocks(compress: impl Fn(&[u8]) -> Vec<u8>) -> Vec<[u8; BLOCK]> {
    let block = |length: usize| {
        let compressed = compress(&TEXT[..length]);
        let mut block = [0; BLOCK];
        block[0] = u8::try_from(compressed.len()).expect("a short text");
        block[1..=compressed.len()].copy_from_slice(&compressed);
        block
    };
    (0..TEXT.len()).map(block).collect()
}

fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(1, |sum, byte| sum * 31 % 65_521 + u32::from(*byte))
}

fn lz4_flex(env: &Env) {
    env.compare_over(Exact, blocks(lz4_flex::block::compress), |blocks, index| {
        let (length, block) = blocks[index].split_first().map_or((0, &[][..]), |(length, rest)| (*length, rest));
        let mut text = [0_u8; 100];
        match lz4_flex::block::decompress_into(&block[..usize::from(length)], &mut text) {
            Ok(length) => (length as u32, checksum(&text[..length])),
            Err(_) => (0, 0),
        }
    });
}

fn miniz_oxide(env: &Env) {
    let compress = |text: &[u8]| miniz_oxide::deflate::compress_to_vec(text, 6);
    env.compare_over(Exact, blocks(compress), |blocks, index| {
        let (length, block) = blocks[index].split_first().map_or((0, &[][..]), |(length, rest)| (*length, rest));
        let (mut inflater, mut text) = (DecompressorOxide::new(), [0_u8; 100]);
        let input = &block[..usize::from(length)];
        let flags = TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let (status, read, written) = decompress(&mut inflater, input, &mut text, 0, flags);
        (status as i32, read as u32, written as u32, checksum(&text[..written]))
    });
}
