//! Checksums of short texts.

use adler2::Adler32;
use crc32fast::Hasher;

use crate::bytes;
use crate::harness::{Env, kernels};

kernels![adler2, crc32fast];

fn adler2(env: &Env) {
    env.compare(|i| {
        let text = bytes::<120>(i);
        let mut sum = Adler32::new();
        sum.write_slice(&text[..i % 120]);
        sum.write_slice(b"more");
        (sum.checksum(), adler2::adler32_slice(&text))
    });
}

fn crc32fast(env: &Env) {
    env.compare(|i| {
        let text = bytes::<150>(i);
        let (mut whole, mut end) = (Hasher::new(), Hasher::new());
        whole.update(&text[..i % 150]);
        end.update(&text[i % 150..]);
        whole.combine(&end);
        (whole.finalize(), crc32fast::hash(&text))
    });
}
