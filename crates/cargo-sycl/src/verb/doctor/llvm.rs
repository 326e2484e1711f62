use std::ffi::c_uint;
use std::path::Path;

use super::Finding;

/// Loads the toolchain's LLVM, as each build does, and asks for its version.
pub(super) fn find(library: &Path) -> Finding {
    match version(library) {
        Ok(version) => Finding::Found(format!("{version}, {}", library.display())),
        Err(why) => Finding::Broken(format!(
            "{}: {why}; install the toolchain again, with `rustup toolchain install stable`",
            library.display()
        )),
    }
}

fn version(path: &Path) -> Result<String, String> {
    // SAFETY: the library of the toolchain, which `rustc` itself runs.
    let library = unsafe { libloading::Library::new(path) }.map_err(|error| error.to_string())?;
    // Destructors of LLVM are meant for the end of the process.
    let library = std::mem::ManuallyDrop::new(library);
    // SAFETY: `LLVMGetVersion` has this signature in each version since LLVM 16.
    let function =
        unsafe { library.get::<unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint)>(b"LLVMGetVersion\0") };
    let function = function.map_err(|_| "it has no LLVMGetVersion".to_owned())?;
    let [mut major, mut minor, mut patch] = [0; 3];
    // SAFETY: the function writes three numbers, for which there is room.
    unsafe { function(&raw mut major, &raw mut minor, &raw mut patch) };
    Ok(format!("{major}.{minor}.{patch}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_llvm_is_broken() {
        for library in ["/no/such/libLLVM.so", "libc.so.6"] {
            assert!(matches!(find(library.as_ref()), Finding::Broken(why) if why.starts_with(library)), "{library}");
        }
    }
}
