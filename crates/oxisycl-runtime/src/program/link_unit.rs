//! Which program or library an address lies in, and that the one with the runtime stays.

/// A loaded program or library, by the address it was loaded to. It can be unloaded, and another one be loaded there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LinkUnit(usize);

/// The link unit that holds the address, where the system can tell. Takes the lock of the dynamic linker: not to be called under a
/// lock that a constructor or destructor of a library takes.
pub(super) fn of(address: *const ()) -> Option<LinkUnit> {
    find(address).map(|(unit, _)| unit)
}

/// The link unit that holds the address, where the system can tell, and the file that it was loaded from.
#[cfg(all(unix, not(miri)))]
pub(super) fn find(address: *const ()) -> Option<(LinkUnit, String)> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for; the structure is written to only.
    let found = unsafe { libc::dladdr(address.cast(), info.as_mut_ptr()) };
    if found == 0 {
        return None;
    }
    // SAFETY: zeros are a value of the structure of addresses.
    let info = unsafe { info.assume_init() };
    let name = if info.dli_fname.is_null() {
        String::new()
    } else {
        // SAFETY: the name of a loaded object ends with a NUL byte, and lives as long as the object, which the caller's address is of.
        unsafe { std::ffi::CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned()
    };
    Some((LinkUnit(info.dli_fbase.addr()), name))
}

/// Miri has no dynamic linker.
#[cfg(any(not(unix), miri))]
pub(super) fn find(_address: *const ()) -> Option<(LinkUnit, String)> {
    None
}

/// The program itself, which is never unloaded; `None` where the system does not tell.
pub(super) fn of_program() -> Option<LinkUnit> {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        // SAFETY: the call has no preconditions. It gives the address where the program begins.
        let begin = unsafe { libc::getauxval(libc::AT_ENTRY) };
        of(std::ptr::without_provenance(begin as usize))
    }
    #[cfg(any(not(target_os = "linux"), miri))]
    None
}

/// Whether the function belongs to the executable and not to a library in it; `false` where the system does not tell.
pub(crate) fn lies_in_the_program(function: *const ()) -> bool {
    match (of(function), of_program()) {
        // Without a dynamic linker there is nothing to ask, and no library.
        (None, None) => cfg!(all(target_os = "linux", target_feature = "crt-static")),
        (None, _) => false,
        (unit, program) => unit == program,
    }
}

/// Keeps the library that holds the runtime loaded until the process ends. Threads of the runtime and callbacks of drivers run its code once
/// devices have been listed. They cannot be ended in `dlclose`: destructors run under the dynamic linker's lock, and a kernel may run for ever.
/// Does nothing for the program itself, which stays anyway.
pub(super) fn keep_runtime_loaded() -> Result<(), String> {
    // Miri loads no libraries.
    #[cfg(all(target_os = "linux", not(miri)))]
    if let Some((unit, name)) = find(keep_runtime_loaded as *const ())
        && Some(unit) != of_program()
    {
        let path = std::ffi::CString::new(name.as_str()).map_err(|error| error.to_string())?;
        // SAFETY: the path ends with a NUL byte. The library is loaded, and no code of another one is run by this.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
        if handle.is_null() {
            return Err(format!("the library \"{name}\" cannot be kept loaded"));
        }
        // The handle keeps it loaded by itself, too; only the mark stays.
        // SAFETY: the handle is the one above, and is not used after this.
        unsafe { libc::dlclose(handle) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_one_program_lie_in_one_link_unit() {
        let here = of(functions_of_one_program_lie_in_one_link_unit as *const ());
        assert!(here.is_some());
        assert_eq!(here, of(crate::program::programs as *const ()));
        // A function that no sanitizer brings along, as it does `malloc`.
        assert_ne!(here, of(libc::getppid as *const ()));
        #[cfg(target_os = "linux")]
        {
            assert_eq!(here, of_program());
            assert!(lies_in_the_program(crate::program::programs as *const ()));
        }
        assert!(!lies_in_the_program(libc::getppid as *const ()));
        assert_eq!(of(std::ptr::null()), None);
    }
}
