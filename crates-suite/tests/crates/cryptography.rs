//! Hashes, a cipher, and keyed hashing.

use core::hash::Hasher as _;

use blake2::{Blake2s256, Digest as _};
use salsa20::Salsa20;
use salsa20::cipher::{KeyIvInit as _, StreamCipher as _, StreamCipherSeek as _};
use sha3::Sha3_256;
use siphasher::sip::{SipHasher13, SipHasher24};

use crate::bytes;
use crate::harness::{Env, kernels};

kernels![blake2, sha3, salsa20, siphasher];

/// Eight bytes of a longer text.
fn first_word(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn blake2(env: &Env) {
    env.compare(|i| {
        let text = bytes::<100>(i);
        let mut hasher = Blake2s256::new();
        hasher.update(&text[..i % 100]);
        hasher.update(b"and more");
        let digest = hasher.finalize();
        (first_word(&digest), first_word(&digest[24..]))
    });
}

fn sha3(env: &Env) {
    env.compare(|i| {
        let digest = Sha3_256::digest(&bytes::<200>(i)[..i % 200]);
        (first_word(&digest), first_word(&digest[24..]))
    });
}

fn salsa20(env: &Env) {
    env.compare(|i| {
        let (key, nonce) = (bytes::<32>(i), bytes::<8>(i + 1));
        let mut cipher = Salsa20::new(&key.into(), &nonce.into());
        let mut text = bytes::<150>(i + 2);
        cipher.apply_keystream(&mut text);
        let secret = first_word(&text[100..]);
        cipher.seek(0_u64);
        cipher.apply_keystream(&mut text);
        (secret, text == bytes::<150>(i + 2))
    });
}

fn siphasher(env: &Env) {
    env.compare(|i| {
        let (mut fast, mut safe) = (SipHasher13::new_with_keys(7, i as u64), SipHasher24::new());
        fast.write(&bytes::<40>(i)[..i % 40]);
        fast.write_u32(i as u32);
        safe.write(b"key");
        safe.write_usize(i);
        (fast.finish(), safe.finish())
    });
}
