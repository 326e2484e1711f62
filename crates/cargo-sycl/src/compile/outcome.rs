//! What the device compiler gives for one target, and the bytes of it for other processes and for the cache.
//!
//! Invariant: bytes that were changed do not decode. They come from the user's own files, so this finds damage, not attacks; the image's
//! decoder trusts nothing either way.

use oxisycl_image::DeviceImage;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::failure::{Failure, Result};

const MAGIC: &[u8; 8] = b"OXICACH2";
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
}

impl Outcome {
    /// Its bytes.
    ///
    /// # Errors
    /// If an image breaks a rule of its format.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let notes = Notes { warnings: self.warnings.clone(), deferred: self.deferred.clone() };
        let notes = serde_json::to_vec(&notes).map_err(|error| Failure::new(error.to_string()))?;
        let images = oxisycl_image::encode_bundle(&self.images).map_err(|error| Failure::new(error.to_string()))?;
        let mut body = (notes.len() as u64).to_le_bytes().to_vec();
        body.extend_from_slice(&notes);
        body.extend_from_slice(&images);
        Ok([MAGIC.as_slice(), Sha256::digest(&body).as_slice(), &body].concat())
    }

    /// Reads the bytes; `None` if they are not those of an outcome.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (hash, body) = bytes.strip_prefix(MAGIC)?.split_at_checked(HASH_SIZE)?;
        if Sha256::digest(body).as_slice() != hash {
            return None;
        }
        let (length, rest) = body.split_first_chunk()?;
        let (notes, images) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let Notes { warnings, deferred } = serde_json::from_slice(notes).ok()?;
        let images = oxisycl_image::decode_bundle(images).ok()?;
        Some(Self { images, warnings, deferred })
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
        Outcome { images: vec![image], warnings: vec!["crate".to_owned()], deferred: vec![used] }
    }

    #[test]
    fn outcomes_come_back_from_their_bytes() {
        let without_kernels = Outcome { images: Vec::new(), ..outcome() };
        for outcome in [outcome(), without_kernels] {
            assert_eq!(Outcome::decode(&outcome.encode().unwrap()), Some(outcome));
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
    /// As somebody would change them who knows the hash.
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
