//! The results for single kernels, which a build keeps as soon as it has them and looks for before it compiles one.
//!
//! Entries are named by the kernel's whole code, so that a kernel is found again when others of its program have changed. Invariant: what a
//! result was made of beside that code is part of its name, or the result is not kept.

use std::cell::{Cell, RefCell};

use oxisycl_compiler::Kept;
use sha2::{Digest, Sha256};

use super::Request;
use super::cache::{self, ImageCache};
use super::deferred::DeferredCrates;
use crate::failure::Result;
use crate::settings::hex;

/// The results for single kernels: one build's view of the image cache.
pub(super) struct KernelCache<'a, 'd> {
    cache: Option<ImageCache>,
    /// What makes the compiler another one.
    compiler: [&'a str; 2],
    /// The whole program.
    program: String,
    deferred: &'a RefCell<DeferredCrates<'d>>,
    /// How many crates had been compiled for the device when a kernel was looked for.
    n_deferred: Cell<usize>,
}

impl<'a, 'd> KernelCache<'a, 'd> {
    /// Results in `cache`, of a request's compiler.
    ///
    /// # Errors
    /// If a module of the request cannot be read.
    pub(super) fn new(
        cache: Option<ImageCache>,
        request: &'a Request,
        deferred: &'a RefCell<DeferredCrates<'d>>,
    ) -> Result<Self> {
        let program = if cache.is_some() { cache::key(request, "")? } else { String::new() };
        let compiler = [&*request.key, &*request.toolchain];
        Ok(Self { cache, compiler, program, deferred, n_deferred: Cell::new(0) })
    }

    /// The name for a result that is of the kernel's code alone, and that for one with more of the program.
    fn keys(&self, code: &[u8]) -> [String; 2] {
        let mut hasher = Sha256::new();
        for part in [b"kernel", self.compiler[0].as_bytes(), self.compiler[1].as_bytes(), code] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let alone = hex(&hasher.finalize());
        let with_program = hex(&Sha256::digest(format!("{alone} {}", self.program)));
        [alone, with_program]
    }
}

impl Kept for KernelCache<'_, '_> {
    fn find(&self, code: &[u8]) -> Option<Vec<u8>> {
        let cache = self.cache.as_ref()?;
        self.n_deferred.set(self.deferred.borrow().used_positions().len());
        self.keys(code).iter().find_map(|key| cache.get_kernel(key))
    }

    fn keep(&self, code: &[u8], is_all: bool, result: &[u8]) {
        let Some(cache) = &self.cache else { return };
        // The name has no hash of crates that were compiled for the device only now.
        let is_named = self.deferred.borrow().used_positions().len() == self.n_deferred.get();
        if is_named {
            cache.put_kernel(&self.keys(code)[usize::from(!is_all)], result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;

    #[test]
    fn a_result_is_found_by_its_code_its_compiler_and_if_needed_its_program() {
        let scratch = Scratch::new("kernel-cache");
        let module = scratch.path().join("a.bc");
        let folder = scratch.path().join("oxisycl/images");
        let kept = |request: &Request, content: &str, run: &dyn Fn(&KernelCache<'_, '_>)| {
            std::fs::write(&module, content).unwrap();
            let deferred = RefCell::new(DeferredCrates::new(&[], &request.key));
            run(&KernelCache::new(Some(ImageCache::at(&folder)), request, &deferred).unwrap());
        };
        let request = Request { modules: vec![module.clone()], ..cache::tests::request(module.clone()) };
        kept(&request, "1", &|kept| {
            kept.keep(b"alone", true, b"a");
            kept.keep(b"more", false, b"m");
            assert_eq!(kept.find(b"alone"), Some(b"a".to_vec()));
            assert_eq!(kept.find(b"more"), Some(b"m".to_vec()));
            assert_eq!(kept.find(b"other"), None);
        });
        // Another program with the same kernels.
        kept(&request, "2", &|kept| {
            assert_eq!(kept.find(b"alone"), Some(b"a".to_vec()));
            assert_eq!(kept.find(b"more"), None);
        });
        for other in [
            Request { key: "l".to_owned(), ..request.clone() },
            Request { toolchain: "d".to_owned(), ..request.clone() },
        ] {
            kept(&other, "1", &|kept| assert_eq!(kept.find(b"alone"), None));
        }
    }
}
