//! Which program or library an address lies in, and that the one with the runtime stays.

use std::ffi::c_void;
use std::ptr::NonNull;

/// A loaded program or library, by the address it was loaded to. It can be unloaded, and another one be loaded there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LinkUnit(usize);

/// The link unit that holds the address, where the system can tell. Takes the lock of the dynamic linker: not to be called under a
/// lock that a constructor or destructor of a library takes.
pub(crate) fn of(address: *const ()) -> Option<LinkUnit> {
    find(address).map(|(unit, _)| unit)
}

/// The link unit that holds the address, where the system can tell, and the file that it was loaded from.
#[cfg(all(unix, not(miri)))]
pub(crate) fn find(address: *const ()) -> Option<(LinkUnit, String)> {
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
pub(crate) fn find(_address: *const ()) -> Option<(LinkUnit, String)> {
    None
}

/// The program itself, which is never unloaded; `None` where the system does not tell.
pub(crate) fn of_program() -> Option<LinkUnit> {
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

/// The program or library that holds this runtime.
pub(crate) fn of_runtime() -> Option<LinkUnit> {
    of(of_runtime as *const ())
}

/// Whether the table of symbols that the dynamic linker reads has the function.
pub(crate) fn is_in_table_of_symbols(function: *const ()) -> bool {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: any address may be asked for; the structure is written to only.
        let found = unsafe { libc::dladdr(function.cast(), info.as_mut_ptr()) };
        // SAFETY: zeros are a value of the structure of addresses.
        let symbol = unsafe { info.assume_init() }.dli_saddr;
        found != 0 && symbol.addr() == function.addr()
    }
    #[cfg(any(not(target_os = "linux"), miri))]
    {
        let _ = function;
        false
    }
}

/// Keeps the library that holds the runtime loaded until the process ends. Threads of the runtime and callbacks of drivers run its code once
/// devices have been listed. They cannot be ended in `dlclose`: destructors run under the dynamic linker's lock, and a kernel may run for ever.
/// Does nothing for the program itself, which stays anyway.
pub(crate) fn keep_runtime_loaded() -> Result<(), String> {
    // Miri loads no libraries.
    #[cfg(all(target_os = "linux", not(miri)))]
    if let Some((unit, name)) = find(keep_runtime_loaded as *const ())
        && Some(unit) != of_program()
    {
        let handle =
            open(&name, libc::RTLD_NODELETE).ok_or_else(|| format!("the library \"{name}\" cannot be kept loaded"))?;
        // The handle keeps it loaded by itself, too; only the mark stays.
        // SAFETY: the handle is the one above, and is not used after this.
        unsafe { close(handle) };
    }
    Ok(())
}

/// The file of another library `oxisycl-dylib` that was loaded before this one: of another version, of other features, or by another compiler.
pub(crate) fn earlier_shared_runtime() -> Option<String> {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: libc::size_t, found: *mut c_void) -> libc::c_int {
            // SAFETY: the caller passes the vector, and nothing else uses it meanwhile.
            let found = unsafe { &mut *found.cast::<Vec<(usize, String)>>() };
            // SAFETY: the dynamic linker passes a description that is valid for the call.
            let info = unsafe { &*info };
            if !info.dlpi_name.is_null() {
                // SAFETY: the name of a loaded object ends with a NUL byte.
                let name = unsafe { std::ffi::CStr::from_ptr(info.dlpi_name) }.to_string_lossy().into_owned();
                found.push((info.dlpi_addr as usize, name));
            }
            0
        }
        let mut loaded: Vec<(usize, String)> = Vec::new();
        // SAFETY: the function gets the vector that it expects, and does not unwind into the dynamic linker but by a lack of memory.
        unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut loaded).cast()) };
        let own = of_runtime()?;
        // In the order in which they were loaded.
        let before = loaded.into_iter().take_while(|(address, _)| *address != own.0).map(|(_, name)| name);
        let is_one = |name: &str| name.rsplit('/').next().is_some_and(|file| file.starts_with("liboxisycl_dylib"));
        before.into_iter().find(|name| is_one(name))
    }
    #[cfg(any(not(target_os = "linux"), miri))]
    None
}

/// Opens a loaded library of this name once more. `None` if there is none, or the system cannot.
pub(crate) fn open_again(name: &str) -> Option<NonNull<c_void>> {
    #[cfg(all(target_os = "linux", not(miri)))]
    return open(name, 0);
    #[cfg(any(not(target_os = "linux"), miri))]
    {
        let _ = name;
        None
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn open(name: &str, flags: libc::c_int) -> Option<NonNull<c_void>> {
    let path = std::ffi::CString::new(name).ok()?;
    // SAFETY: the path ends with a NUL byte. The library is loaded, and no code of another one is run by this.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | flags) };
    NonNull::new(handle)
}

/// Closes what [`open_again`] gave.
///
/// # Safety
/// The handle is open, and is not used any more.
pub(crate) unsafe fn close(handle: NonNull<c_void>) {
    #[cfg(all(target_os = "linux", not(miri)))]
    // SAFETY: the caller's promise.
    unsafe {
        libc::dlclose(handle.as_ptr())
    };
    #[cfg(any(not(target_os = "linux"), miri))]
    let _ = handle;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_one_program_lie_in_one_link_unit() {
        let here = of(functions_of_one_program_lie_in_one_link_unit as *const ());
        assert!(here.is_some());
        assert_eq!(here, of(crate::plug_ins::is_in_a_library_of_rust as *const ()));
        // A function that no sanitizer brings along, as it does `malloc`.
        assert_ne!(here, of(libc::getppid as *const ()));
        #[cfg(target_os = "linux")]
        {
            assert_eq!(here, of_program());
            assert!(lies_in_the_program(crate::plug_ins::is_in_a_library_of_rust as *const ()));
        }
        assert!(!lies_in_the_program(libc::getppid as *const ()));
        assert_eq!(of(std::ptr::null()), None);
    }
}
