//! OpenCL: the loader that programs use, and the drivers that it finds, each loaded as the loader does.
//!
//! Invariant: a driver is loaded in a process of its own, which it may end without ending `doctor`. Asks a driver only for what
//! `cl_khr_icd` promises: its platforms, with name and version. Makes no context and looks at no device.

use std::env;
use std::ffi::{OsString, c_char, c_void};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use libloading::Library;

use super::Finding;
use crate::failure::{Failure, Result};

/// The argument that makes a process of this tool load one driver and say what it is.
pub(crate) const VERB: &str = "__icd";

const LOADER: &str = "libOpenCL.so.1";
const VENDORS: &str = "/etc/OpenCL/vendors";

/// The loader that programs with OpenCL are linked to or load.
pub(super) fn loader() -> Finding {
    // SAFETY: the library is the system's loader, whose initialisers are meant to run in any process.
    match unsafe { Library::new(LOADER) } {
        Ok(_) => Finding::Found(LOADER.to_owned()),
        Err(_) => Finding::Absent(format!(
            "{LOADER} is not there; the package ocl-icd-libopencl1 or ocl-icd has it, to use devices through OpenCL"
        )),
    }
}

/// What was found of each driver; one finding if there is no driver.
pub(super) fn drivers() -> Vec<Finding> {
    let tool = env::current_exe();
    let load = |library: &str| match &tool {
        Ok(tool) => load_apart(tool, library),
        Err(error) => Err(format!("this tool's own path: {error}")),
    };
    let vendors = env::var_os("OCL_ICD_VENDORS").map_or_else(|| PathBuf::from(VENDORS), PathBuf::from);
    find(&vendors, env::var_os("OCL_ICD_FILENAMES"), &load)
}

/// The drivers of a folder of `.icd` files, or of one such file, and of a list of libraries.
fn find(vendors: &Path, libraries: Option<OsString>, load: &dyn Fn(&str) -> Result<String, String>) -> Vec<Finding> {
    let files = if vendors.is_file() { vec![vendors.to_owned()] } else { icd_files(vendors) };
    let named = files.into_iter().map(|file| {
        let text = fs::read_to_string(&file).map_err(|error| error.to_string());
        let library = text.and_then(|text| match text.lines().next().map(str::trim) {
            Some(library) if !library.is_empty() => Ok(library.to_owned()),
            _ => Err("the file names no library".to_owned()),
        });
        (file.display().to_string(), library)
    });
    let listed = env::split_paths(&libraries.unwrap_or_default())
        .filter(|path| !path.as_os_str().is_empty())
        .map(|path| ("OCL_ICD_FILENAMES".to_owned(), Ok(path.display().to_string())))
        .collect::<Vec<_>>();
    let found: Vec<Finding> = named.chain(listed).map(|(origin, library)| finding(&origin, library, load)).collect();
    if !found.is_empty() {
        return found;
    }
    vec![Finding::Absent(format!(
        "no driver in {}; install one from the device's vendor to use its devices through OpenCL",
        vendors.display()
    ))]
}

fn finding(origin: &str, library: Result<String, String>, load: &dyn Fn(&str) -> Result<String, String>) -> Finding {
    match library.and_then(|library| Ok((load(&library).map_err(|why| format!("{library} {why}"))?, library))) {
        Ok((platforms, library)) => Finding::Found(format!("{platforms}, {library} ({origin})")),
        Err(why) => Finding::Absent(format!(
            "{origin}: {why}; install that driver again or remove the file, since programs do not see its devices"
        )),
    }
}

fn icd_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "icd")).collect();
    files.sort();
    files
}

/// Has a process load a driver. Gives its platforms, or why there are none.
fn load_apart(tool: &Path, library: &str) -> Result<String, String> {
    let output = Command::new(tool).args([VERB, library]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot be tried: {}: {error}", tool.display()))?;
    described(output.status, &String::from_utf8_lossy(&output.stdout), &String::from_utf8_lossy(&output.stderr))
}

/// What the answer of such a process means. The last line counts: drivers may print, too.
fn described(status: ExitStatus, stdout: &str, stderr: &str) -> Result<String, String> {
    let last = |text: &str| text.trim().lines().last().unwrap_or_default().to_owned();
    match (status.success(), status.signal()) {
        (true, _) => Ok(last(stdout)),
        (false, Some(signal)) => Err(format!("ends the process that loads it: signal {signal}")),
        (false, None) => Err(last(stderr).trim_start_matches("error: ").to_owned()),
    }
}

/// The other side: loads the driver and prints what it is.
pub(crate) fn serve(arguments: &[OsString]) -> Result<ExitCode> {
    let [library] = arguments else { return Err(Failure::new(format!("{VERB}: expected the path of a driver"))) };
    println!("{}", platforms(library).map_err(Failure::new)?);
    Ok(ExitCode::SUCCESS)
}

type Code = i32;
type Handle = *mut c_void;
type GetFunction = unsafe extern "system" fn(*const c_char) -> *mut c_void;
type GetPlatforms = unsafe extern "system" fn(u32, *mut Handle, *mut u32) -> Code;
type GetPlatformInfo = unsafe extern "system" fn(Handle, u32, usize, *mut c_void, *mut usize) -> Code;

/// `CL_SUCCESS`.
const SUCCESS: Code = 0;
/// `CL_PLATFORM_NOT_FOUND_KHR`.
const NO_PLATFORM: Code = -1001;
/// `CL_PLATFORM_VERSION`.
const PLATFORM_VERSION: u32 = 0x0901;
/// `CL_PLATFORM_NAME`.
const PLATFORM_NAME: u32 = 0x0902;
/// More than any driver has.
const MAX_PLATFORMS: u32 = 16;

/// The platforms of a driver, by the functions that `cl_khr_icd` asks of it.
fn platforms(library: &OsString) -> Result<String, String> {
    // SAFETY: the system names it as an OpenCL driver, which any program with OpenCL loads; this process does nothing else.
    let library = unsafe { Library::new(library) }.map_err(|error| format!("does not load: {error}"))?;
    // It may have threads of its own, which unloading would leave without code.
    let library = std::mem::ManuallyDrop::new(library);
    // SAFETY: the type is that of `cl.h`.
    let get_function = unsafe { library.get::<GetFunction>(b"clGetExtensionFunctionAddress\0") };
    let get_function = get_function.map_err(|_| "is no driver of OpenCL: it has no clGetExtensionFunctionAddress")?;
    // SAFETY: a function of the driver, and names that end with a zero.
    let (get_platforms, get_info) =
        unsafe { (get_function(c"clIcdGetPlatformIDsKHR".as_ptr()), get_function(c"clGetPlatformInfo".as_ptr())) };
    if get_platforms.is_null() {
        return Err("is no driver for the loader: it has no clIcdGetPlatformIDsKHR".to_owned());
    }
    // SAFETY: functions that are not null, and have these types by `cl_khr_icd` and `cl.h`.
    let (get_platforms, get_info) = unsafe {
        let get_info = match get_info.is_null() {
            false => Some(std::mem::transmute::<*mut c_void, GetPlatformInfo>(get_info)),
            // Intel's driver gives this one as a symbol only.
            true => library.get::<GetPlatformInfo>(b"clGetPlatformInfo\0").ok().map(|symbol| *symbol),
        };
        (std::mem::transmute::<*mut c_void, GetPlatforms>(get_platforms), get_info)
    };
    let get_info = get_info.ok_or("is no driver of OpenCL: it has no clGetPlatformInfo")?;
    let mut handles = [std::ptr::null_mut(); MAX_PLATFORMS as usize];
    let mut n_platforms = 0;
    // SAFETY: room for as many handles as are asked for.
    let code = unsafe { get_platforms(MAX_PLATFORMS, handles.as_mut_ptr(), &raw mut n_platforms) };
    let platforms = match code {
        SUCCESS => &handles[..n_platforms.min(MAX_PLATFORMS) as usize],
        NO_PLATFORM => &[],
        _ => return Err(format!("loads, and fails: clIcdGetPlatformIDsKHR gives error {code}")),
    };
    if platforms.is_empty() {
        return Err(
            "loads, and finds no platform: its devices are not there, or not accessible to this user".to_owned()
        );
    }
    let text = |platform: Handle, what: u32| {
        let mut bytes = [0u8; 256];
        let mut size = 0;
        // SAFETY: a handle that the driver gave, and room for 256 bytes.
        let code = unsafe { get_info(platform, what, bytes.len(), bytes.as_mut_ptr().cast(), &raw mut size) };
        let size = if code == SUCCESS { size.min(bytes.len()) } else { 0 };
        String::from_utf8_lossy(&bytes[..size]).trim_end_matches('\0').trim().to_owned()
    };
    let names = platforms.iter().map(|&platform| {
        let [name, version] = [PLATFORM_NAME, PLATFORM_VERSION].map(|what| text(platform, what));
        format!("{name}, {version}")
    });
    Ok(names.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;

    #[test]
    fn each_driver_is_named_with_its_file_and_whether_it_loads() {
        let scratch = Scratch::new("icd");
        let load = |library: &str| match library {
            "libgood.so" => Ok("Good, OpenCL 3.0".to_owned()),
            _ => Err("does not load: gone".to_owned()),
        };
        let find = |vendors: &Path, libraries: Option<&str>| find(vendors, libraries.map(OsString::from), &load);
        assert!(matches!(&find(scratch.path(), None)[..], [Finding::Absent(why)] if why.contains("no driver in ")));
        for (name, text) in
            [("a.icd", "libgood.so\n"), ("b.icd", " libbad.so"), ("c.icd", "\n"), ("readme.txt", "no driver")]
        {
            fs::write(scratch.path().join(name), text).unwrap();
        }
        let folder = scratch.path().display();
        let absent = |why: &str| {
            Finding::Absent(format!(
                "{why}; install that driver again or remove the file, since programs do not see its devices"
            ))
        };
        let good = Finding::Found(format!("Good, OpenCL 3.0, libgood.so ({folder}/a.icd)"));
        assert_eq!(
            find(scratch.path(), None),
            [
                good,
                absent(&format!("{folder}/b.icd: libbad.so does not load: gone")),
                absent(&format!("{folder}/c.icd: the file names no library")),
            ]
        );
        assert_eq!(find(&scratch.path().join("a.icd"), Some("libbad.so")).len(), 2);
    }

    #[test]
    fn what_a_driver_prints_is_not_taken_for_the_answer() {
        let (ok, failed, aborted) = (ExitStatus::from_raw(0), ExitStatus::from_raw(1 << 8), ExitStatus::from_raw(6));
        assert_eq!(described(ok, "hello\nGood, OpenCL 3.0\n", "warning"), Ok("Good, OpenCL 3.0".to_owned()));
        assert_eq!(described(failed, "", "hello\nerror: does not load: x\n"), Err("does not load: x".to_owned()));
        assert_eq!(described(aborted, "", "x"), Err("ends the process that loads it: signal 6".to_owned()));
    }

    #[test]
    fn a_library_that_is_no_driver_is_said_to_be_none() {
        assert!(platforms(&"/no/such/library.so".into()).unwrap_err().starts_with("does not load: "));
        let library = if cfg!(target_os = "linux") { "libc.so.6" } else { "libSystem.dylib" };
        let why = platforms(&library.into()).unwrap_err();
        assert!(why.starts_with("is no driver of OpenCL: "), "{why}");
    }
}
