//! What the device compiler gives for one target, and the bytes of it for other processes and for the cache.
//!
//! Invariant: bytes that were changed do not decode. They come from the user's own files, so this finds damage, not attacks; the image's
//! decoder trusts nothing either way.

use std::io::Read;
use std::time::Duration;

use oxisycl_compiler::LoweredModule;
use oxisycl_image::DeviceImage;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::processes::TOO_SLOW;
use crate::failure::{Failure, Result};

const MAGIC: &[u8; 8] = b"OXICACH3";
const HASH_SIZE: usize = 32;

/// Images, and what to tell the user about them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    /// The images; none if there are no kernels. They tell of the kernels that the target cannot run, too.
    pub(crate) images: Vec<DeviceImage>,
    /// Why crates could not be compiled for the device.
    pub(crate) warnings: Vec<String>,
    /// The crates whose bitcode was made for them.
    pub(crate) deferred: Vec<UsedCrate>,
    /// What the images' code was generated from, for who wants to look at it.
    pub(crate) modules: Vec<LoweredModule>,
    /// The times of the compiler's passes, if they are wanted.
    pub(crate) times: Vec<PassTime>,
}

/// How long a pass of the compiler took, summed over the kernels.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct PassTime {
    pub(crate) name: String,
    pub(crate) runs: u64,
    pub(crate) time: Duration,
}

impl From<oxisycl_compiler::PassTime> for PassTime {
    fn from(oxisycl_compiler::PassTime { name, runs, time }: oxisycl_compiler::PassTime) -> Self {
        Self { name, runs, time }
    }
}

/// A crate that was compiled for the device because a kernel needs it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct UsedCrate {
    /// The name of its sidecar.
    pub(crate) sidecar: String,
    /// The hash of its bitcode.
    pub(crate) hash: String,
}

#[derive(Serialize, Deserialize)]
struct Notes {
    warnings: Vec<String>,
    deferred: Vec<UsedCrate>,
    images: usize,
    modules: Vec<NotedModule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    times: Vec<PassTime>,
}

/// A module, whose bytes come after the notes.
#[derive(Serialize, Deserialize)]
struct NotedModule {
    symbol: String,
    size: usize,
}

impl Outcome {
    /// Whether another machine, or this one at another time, could come to another outcome.
    pub(super) fn is_of_this_machine(&self) -> bool {
        let mut refused = self.images.iter().flat_map(|image| &image.unsupported);
        refused.any(|kernel| kernel.reason.starts_with(TOO_SLOW))
    }

    /// The outcome as bytes, for other processes and for the cache.
    ///
    /// # Errors
    /// If an image breaks a rule of its format.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let images = oxisycl_image::encode_bundle(&self.images).map_err(|error| Failure::new(error.to_string()))?;
        let noted = |module: &LoweredModule| NotedModule { symbol: module.symbol.clone(), size: module.bitcode.len() };
        let notes = Notes {
            warnings: self.warnings.clone(),
            deferred: self.deferred.clone(),
            images: images.len(),
            modules: self.modules.iter().map(noted).collect(),
            times: self.times.clone(),
        };
        let notes = serde_json::to_vec(&notes).map_err(|error| Failure::new(error.to_string()))?;
        let mut body = (notes.len() as u64).to_le_bytes().to_vec();
        body.extend_from_slice(&notes);
        body.extend_from_slice(&images);
        self.modules.iter().for_each(|module| body.extend_from_slice(&module.bitcode));
        Ok([MAGIC.as_slice(), Sha256::digest(&body).as_slice(), &body].concat())
    }

    /// Reads the bytes; `None` if they are not those of an outcome.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (hash, body) = bytes.strip_prefix(MAGIC)?.split_at_checked(HASH_SIZE)?;
        if Sha256::digest(body).as_slice() != hash {
            return None;
        }
        let (length, rest) = body.split_first_chunk()?;
        let (notes, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let notes: Notes = serde_json::from_slice(notes).ok()?;
        let (images, mut rest) = rest.split_at_checked(notes.images)?;
        let images = oxisycl_image::decode_bundle(images).ok()?;
        let mut modules = Vec::new();
        for NotedModule { symbol, size } in notes.modules {
            let (bitcode, others) = rest.split_at_checked(size)?;
            modules.push(LoweredModule { symbol, bitcode: bitcode.to_vec() });
            rest = others;
        }
        let Notes { warnings, deferred, times, .. } = notes;
        rest.is_empty().then_some(Self { images, warnings, deferred, modules, times })
    }

    /// The symbols of the kernels that an outcome has modules of, from the beginning of its bytes. Nothing is checked: [`decode`](Self::decode) does
    /// that with the rest.
    pub(crate) fn symbols(bytes: &mut impl Read) -> Option<Vec<String>> {
        let (mut start, mut length) = ([0; MAGIC.len() + HASH_SIZE], [0; 8]);
        bytes.read_exact(&mut start).and_then(|()| bytes.read_exact(&mut length)).ok()?;
        if !start.starts_with(MAGIC) {
            return None;
        }
        let mut notes = Vec::new();
        // No more than there is, whatever the length says.
        bytes.take(u64::from_le_bytes(length)).read_to_end(&mut notes).ok()?;
        let notes: Notes = serde_json::from_slice(&notes).ok()?;
        Some(notes.modules.into_iter().map(|module| module.symbol).collect())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use oxisycl_image::ImageTarget;

    use super::*;
    use crate::files::tests::damaged;

    pub(crate) fn outcome() -> Outcome {
        let image = DeviceImage {
            target: ImageTarget::Ptx { sm: 70 },
            kernels: Vec::new(),
            build_options: String::new(),
            unsupported: Vec::new(),
            sites: Vec::new(),
            code: b".version 7.7".to_vec(),
        };
        let used = UsedCrate { sidecar: "half-1.json".to_owned(), hash: "00".to_owned() };
        let module =
            |symbol: &str, bitcode: &[u8]| LoweredModule { symbol: symbol.to_owned(), bitcode: bitcode.to_vec() };
        let modules = vec![module("k_1", b"BC1"), module("k_2", b"BC22")];
        Outcome {
            images: vec![image],
            warnings: vec!["crate".to_owned()],
            deferred: vec![used],
            modules,
            times: Vec::new(),
        }
    }

    #[test]
    fn outcomes_come_back_from_their_bytes() {
        let without_kernels = Outcome { images: Vec::new(), modules: Vec::new(), ..outcome() };
        let time = PassTime { name: "x86".to_owned(), runs: 3, time: Duration::from_nanos(1_000_000_007) };
        for outcome in [outcome(), without_kernels, Outcome { times: vec![time], ..outcome() }] {
            assert_eq!(Outcome::decode(&outcome.encode().unwrap()), Some(outcome));
        }
    }

    #[test]
    fn the_symbols_are_known_from_the_beginning() {
        let bytes = outcome().encode().unwrap();
        let symbols = Some(vec!["k_1".to_owned(), "k_2".to_owned()]);
        assert_eq!(Outcome::symbols(&mut &bytes[..]), symbols);
        assert_eq!(Outcome::symbols(&mut &bytes[..bytes.len() - 10]), symbols);
        for length in 0..MAGIC.len() + HASH_SIZE + 20 {
            assert_eq!(Outcome::symbols(&mut &bytes[..length]), None, "{length} bytes");
        }
        for number in 0..2_000 {
            let _ = Outcome::symbols(&mut &damaged(&bytes, number)[..]);
        }
    }

    #[test]
    fn damaged_bytes_are_no_outcome() {
        let bytes = outcome().encode().unwrap();
        for idx in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[idx] ^= 1;
            assert_eq!(Outcome::decode(&damaged), None, "byte {idx}");
            assert_eq!(Outcome::decode(&bytes[..idx]), None, "{idx} bytes");
        }
    }
    /// Changes that an attacker who knows the hash would make.
    #[test]
    fn changed_bytes_with_a_right_hash_are_another_outcome_or_none() {
        let bytes = outcome().encode().unwrap();
        let (mut n_outcomes, n_cases) = (0, 5_000);
        for number in 0..n_cases {
            let body = damaged(&bytes[MAGIC.len() + HASH_SIZE..], number);
            let changed = [MAGIC.as_slice(), Sha256::digest(&body).as_slice(), &body].concat();
            if let Some(outcome) = Outcome::decode(&changed) {
                assert_eq!(Outcome::decode(&outcome.encode().unwrap()), Some(outcome));
                n_outcomes += 1;
            }
        }
        // Letters of the notes may change; the image has a checksum of its own.
        assert!(n_outcomes > n_cases / 400 && n_outcomes < n_cases / 2, "{n_outcomes}");
    }
}
