//! LLVM assembly of kernels in a program: what the device compiler gave code generation.
//!
//! Programs do not have it. Builds leave it in the user's image cache, where it is found by the image that became of it. Compiles nothing.

use oxisycl_compiler::LoweredModule;
use oxisycl_image::DeviceImage;

use crate::compile::ImageCache;
use crate::failure::{Failure, Result};
use crate::toolchain;
use crate::verb::cargo::Cargo;

const REMEDY: &str = "it is there for what this user built on this machine, until the cache is full: `cargo sycl clean` and another build \
                      bring it back, and `cargo sycl build --dump DIR` writes it to a folder, too";

/// The text for each image.
pub(super) fn of(images: &[&DeviceImage]) -> Result<Vec<String>> {
    let Some(cache) = ImageCache::open() else {
        return Err(Failure::new("--emit llvm: there is no image cache to find it in: `cargo sycl doctor` says why"));
    };
    let modules = modules(&cache, images)?;
    let toolchain = toolchain::ask(&Cargo::here(Vec::new())?.rustc())?;
    modules.iter().map(|module| Ok(module.assembly(&toolchain)?)).collect()
}

fn modules(cache: &ImageCache, images: &[&DeviceImage]) -> Result<Vec<LoweredModule>> {
    let found = cache.modules(images);
    let n_missing = found.iter().filter(|module| module.is_none()).count();
    if let Some((image, _)) = images.iter().zip(&found).find(|(_, module)| module.is_none()) {
        let kernel = image.kernels.first().map_or("", |kernel| &kernel.type_name);
        let others = if n_missing > 1 { format!(" and {} more", n_missing - 1) } else { String::new() };
        let (target, folder) = (&image.target, cache.path().display());
        return Err(Failure::new(format!(
            "--emit llvm: {folder} has no LLVM assembly of kernel {kernel} for {target}{others}: {REMEDY}"
        )));
    }
    Ok(found.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::image;
    use super::*;
    use crate::compile::Outcome;
    use crate::files::tests::Scratch;

    #[test]
    fn modules_are_found_by_the_image_that_became_of_them() {
        let scratch = Scratch::new("assembly");
        let cache = ImageCache::at(&scratch.path().join("oxisycl/images"));
        let put = |key: &str, code: &[u8], bitcode: &[u8]| {
            let modules = ["k_0", "k_1"].map(|symbol| LoweredModule {
                symbol: symbol.to_owned(),
                bitcode: [symbol.as_bytes(), bitcode].concat(),
            });
            let (images, modules) = (vec![image(code)], modules.to_vec());
            let outcome = Outcome { images, warnings: Vec::new(), deferred: Vec::new(), modules, times: Vec::new() };
            cache.put(key, &outcome.encode().unwrap());
        };
        // Two builds of one kernel, and entries that are none.
        put("a", b"old", b"1");
        put("b", b"new", b"2");
        std::fs::write(cache.path().join("c"), "OXICACH3").unwrap();
        std::fs::create_dir(cache.path().join("d")).unwrap();
        let bitcode = |code: &[u8]| modules(&cache, &[&image(code)]).map(|modules| modules[0].bitcode.clone());
        assert_eq!((bitcode(b"old"), bitcode(b"new")), (Ok(b"k_11".to_vec()), Ok(b"k_12".to_vec())));
        let missing = modules(&cache, &[&image(b"old"), &image(b"x"), &image(b"y")]).unwrap_err().to_string();
        let expected = "has no LLVM assembly of kernel app::main::{{closure}} for sm_70 and 1 more: ";
        assert!(missing.contains(expected) && missing.contains("--dump DIR"), "{missing}");
    }
}
