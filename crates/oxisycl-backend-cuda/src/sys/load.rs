//! Finding and loading the driver library.

use std::ffi::{OsStr, c_int, c_void};
use std::sync::Arc;

use libloading::{Library, Symbol};

use super::{Code, Driver, code};
use crate::error::version_text;

/// The file name of the system's driver, as the driver's own installer writes it.
#[cfg(windows)]
pub(crate) const LIBRARY: &str = "nvcuda.dll";
/// The file name of the system's driver.
#[cfg(not(windows))]
pub(crate) const LIBRARY: &str = "libcuda.so.1";

/// The reason why no driver is loaded.
#[derive(Debug)]
pub(crate) enum LoadFailure {
    /// The machine has no driver: not an error.
    Absent(String),
    /// The machine has a driver that cannot be used.
    Unusable {
        /// The failed call or missing symbol.
        call: &'static str,
        /// The driver's code, or `NOT_FOUND` for a missing symbol.
        code: Code,
        /// The meaning of the code.
        meaning: String,
    },
}

/// Loads a driver library and initialises it: the named one, or the system's.
///
/// # Safety
/// The library implements the CUDA driver API.
pub(crate) unsafe fn load(path: Option<&OsStr>) -> Result<Arc<Driver>, LoadFailure> {
    let path = path.unwrap_or(OsStr::new(LIBRARY));
    // SAFETY: the caller promises that this is a driver library, whose initialisers may run anywhere.
    let library = unsafe { Library::new(path) }.map_err(|error| {
        LoadFailure::Absent(format!("the driver library {} cannot be loaded: {error}", path.to_string_lossy()))
    })?;
    let version = version(&library)?;
    let mut addresses = Vec::new();
    for name in Driver::REQUIRED {
        addresses.push((*name, address(&library, name)));
    }
    let mut resolve = {
        // The library moves into the table; its symbols stay where they are.
        addresses.extend(Driver::OPTIONAL.iter().map(|name| (*name, address(&library, name))));
        move |name: &'static str| {
            addresses.iter().find(|(symbol, _)| *symbol == name).map_or(std::ptr::null(), |(_, address)| *address)
        }
    };
    // SAFETY: the addresses are those of the symbols of that name in a driver library, which is never unloaded.
    let driver = unsafe { Driver::resolve(version, Some(library), &mut resolve) }.map_err(|symbol| {
        let needed = "OxiSYCL needs one for CUDA 11.0 or later";
        let meaning = format!("the driver (for CUDA {}) lacks the symbol {symbol}; {needed}", version_text(version));
        LoadFailure::Unusable { call: symbol, code: code::NOT_FOUND, meaning }
    })?;
    // SAFETY: the first call, as the driver API asks for; flags are zero.
    match unsafe { driver.init(0) } {
        Ok(()) => Ok(Arc::new(driver)),
        Err(error) if error.code == code::NO_DEVICE => Err(LoadFailure::Absent("the driver sees no device".to_owned())),
        // The toolkit has a library of the driver's name to link with.
        Err(error) if error.code == code::STUB_LIBRARY => {
            Err(LoadFailure::Absent(format!("{} is a stub, no driver", path.to_string_lossy())))
        }
        Err(error) => {
            let meaning = error.meaning(&driver);
            Err(LoadFailure::Unusable { call: error.call, code: error.code, meaning })
        }
    }
}

fn version(library: &Library) -> Result<c_int, LoadFailure> {
    let mut version = 0;
    // SAFETY: the symbol has this type in the driver API, and may be called before `cuInit`.
    let code = unsafe {
        let function: Result<Symbol<'_, unsafe extern "system" fn(*mut c_int) -> Code>, _> =
            library.get(b"cuDriverGetVersion\0");
        function.map(|function| function(&raw mut version))
    };
    match code {
        Ok(code::SUCCESS) => Ok(version),
        Ok(code) => Err(LoadFailure::Unusable {
            call: "cuDriverGetVersion",
            code,
            meaning: "the driver does not report its version".to_owned(),
        }),
        Err(_) => Err(LoadFailure::Unusable {
            call: "cuDriverGetVersion",
            code: code::NOT_FOUND,
            meaning: "the library lacks the symbol cuDriverGetVersion, so it is no CUDA driver".to_owned(),
        }),
    }
}

fn address(library: &Library, name: &str) -> *const c_void {
    // SAFETY: only the address is taken, of a library that is never unloaded.
    let address = unsafe { library.get::<*const c_void>(name.as_bytes()).map(|symbol| symbol.try_as_raw_ptr()) };
    address.ok().flatten().map_or(std::ptr::null(), <*mut c_void>::cast_const)
}
