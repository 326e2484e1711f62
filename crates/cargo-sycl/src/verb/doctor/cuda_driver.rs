use std::ffi::c_int;

use super::Finding;

/// The driver's library; it comes with the driver, not with a toolkit.
const LIBRARY: &str = if cfg!(target_os = "windows") { "nvcuda.dll" } else { "libcuda.so.1" };

/// `CUDA_SUCCESS`.
const SUCCESS: c_int = 0;

/// Looks for NVIDIA's driver and asks for its version, as programs will at run time.
pub(super) fn find() -> Finding {
    // SAFETY: the library is the system's driver, whose initialisers are meant to run in any process; it is what programs load, too.
    let library = match unsafe { libloading::Library::new(LIBRARY) } {
        Ok(library) => library,
        Err(_) => {
            return Finding::Absent(format!(
                "{LIBRARY} is not there; install NVIDIA's driver to run kernels on its GPUs"
            ));
        }
    };
    // SAFETY: `cuDriverGetVersion` has this signature in every version of the driver.
    let version = unsafe { library.get::<unsafe extern "C" fn(*mut c_int) -> c_int>(b"cuDriverGetVersion\0") };
    let Ok(version) = version else {
        return Finding::Absent(format!("{LIBRARY} has no cuDriverGetVersion: it is not NVIDIA's driver"));
    };
    let mut number = 0;
    // SAFETY: the function writes one number, for which there is room, and may be called before `cuInit`.
    let code = unsafe { version(&mut number) };
    if code != SUCCESS {
        return Finding::Absent(format!("{LIBRARY} is there, but does not report its version: error {code}"));
    }
    described(number)
}

fn described(number: c_int) -> Finding {
    let (major, minor) = (number / 1000, number % 1000 / 10);
    // The driver compiles PTX 7.7, which is what kernels are compiled to, from this version on.
    if number < 11070 {
        return Finding::Absent(format!(
            "CUDA {major}.{minor}; kernels need a driver for CUDA 11.7 or later: update it"
        ));
    }
    Finding::Found(format!("CUDA {major}.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_drivers_are_told_what_is_needed() {
        assert_eq!(described(12040), Finding::Found("CUDA 12.4".to_owned()));
        assert!(
            matches!(described(11060), Finding::Absent(text) if text.contains("CUDA 11.6") && text.contains("11.7"))
        );
    }
}
