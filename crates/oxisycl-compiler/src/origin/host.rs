//! Functions that need the operating system of the host or our own runtime: their names in a program, and what a kernel does instead.
//!
//! For messages alone. Devices lack what these functions end in, a system call or a static of the process; users know the functions that
//! they call.

use super::{Origin, is_allocation, of};
use crate::symbols::plain_path;

/// A host function in the call chain from a kernel to a construct that no device has.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct HostFunction {
    /// The function's index in the call chain.
    pub(crate) position: usize,
    /// The name that users know.
    pub(crate) name: String,
    /// Why a kernel cannot call it and what to do instead, if that is known.
    pub(crate) advice: Option<&'static str>,
}

const LOCK: &str = "a work-item waits for no other one; use an `Atomic` accessor, or an element for each work-item";
const ONCE: &str =
    "a kernel keeps nothing for others; compute the value on the host, and capture it or pass it in a buffer";
const PRINT: &str = "a kernel has no standard output; use `oxisycl::println!`";
const PROCESS: &str = "a kernel has no processes; to end a work-item with an error, panic";
const OURS: &str = "queues, buffers and events are the host's; a kernel uses accessors";

/// Modules and functions of the standard library, special ones first, with the advice for each.
const ADVICE: [(&str, &str); 18] = [
    ("std::fs::", "a kernel has no files; read and write them on the host, and pass the data in a buffer"),
    ("std::net::", "a kernel has no network; send and receive on the host, and pass the data in a buffer"),
    ("std::os::unix::net::", "a kernel has no sockets; send and receive on the host, and pass the data in a buffer"),
    ("std::io::stdio::_print", PRINT),
    ("std::io::stdio::_eprint", PRINT),
    (
        "std::io::stdio::Std",
        "a kernel has no standard input and output; read on the host, print by `oxisycl::println!`",
    ),
    (
        "std::io::stdio::std",
        "a kernel has no standard input and output; read on the host, print by `oxisycl::println!`",
    ),
    ("std::io::", "a kernel has no input and output; do it on the host, and pass the data in a buffer"),
    ("std::thread::functions::sleep", "a work-item never sleeps; wait on the host"),
    ("std::thread::", "a kernel has no threads; launch a work-item for each part of the work"),
    ("std::sync::once::", ONCE),
    ("std::sync::once_lock::", ONCE),
    ("std::sync::lazy_lock::", ONCE),
    ("std::sync::", LOCK),
    ("std::hash::random::", "its random keys are the host's; sort the data, and search in it"),
    ("std::time::", "a kernel has no clock; take the time on the host, and capture it"),
    ("std::env::", "a kernel has no environment; read it on the host, and capture the value"),
    ("std::process::", PROCESS),
];

/// The host function that a user's code calls, if that is why the call chain ends in a construct that no device has. It is the first
/// function of `std` or of OxiSYCL's host crates behind the last function of a user's crate, or of an unknown one. `way` has the symbols of
/// the chain, the construct last.
pub(crate) fn host_function(way: &[&str]) -> Option<HostFunction> {
    let start = library_position(way);
    let paths: Vec<(Origin, String)> = way[start..].iter().map(|symbol| (of(symbol), plain_path(symbol))).collect();
    let is_hosts = |(origin, path): &(Origin, String)| match origin {
        Origin::Standard => subject(path).starts_with("std::"),
        origin => *origin == Origin::Facade,
    };
    let position = paths.iter().position(is_hosts)?;
    let (origin, path) = &paths[position];
    let advice = match origin {
        Origin::Facade => Some(OURS),
        _ => paths[position..].iter().find_map(|(_, path)| advice(path)),
    };
    Some(HostFunction { position: start + position, name: user_name(path), advice })
}

/// The index of the first library function in a call chain: one of `core`, `alloc`, `std` or OxiSYCL, behind the last function of other
/// crates.
pub(crate) fn library_position(way: &[&str]) -> usize {
    way.iter().rposition(|symbol| is_of_other_crate(symbol)).map_or(0, |position| position + 1)
}

/// The name that users know for an item, if it is shorter than the item's path.
pub(crate) fn shown_name(symbol: &str) -> String {
    let path = plain_path(symbol);
    if of(symbol) == Origin::Standard && subject(&path).starts_with("std::") {
        return user_name(&path);
    }
    // A thread-local variable is one within a constant.
    path.split("::{{constant}}").next().map_or(path.clone(), str::to_owned)
}

fn advice(path: &str) -> Option<&'static str> {
    let subject = subject(path);
    ADVICE.iter().find(|(start, _)| subject.starts_with(start)).map(|(_, advice)| *advice)
}

/// Whether a call chain ends in a function of another language, called by Rust code of a crate. Rust's own symbols are mangled, and those
/// that begin with an underscore are the toolchain's.
pub(crate) fn is_foreign(way: &[&str]) -> bool {
    let [.., caller, symbol] = way else { return false };
    let is_name = symbol.starts_with(|first: char| first.is_ascii_alphabetic()) && !symbol.contains('.');
    is_name && plain_path(symbol) == *symbol && is_of_other_crate(caller)
}

/// Whether the symbol is an item of a user's crate, or of an unknown one. Functions of the allocator are the toolchain's.
fn is_of_other_crate(symbol: &str) -> bool {
    of(symbol) == Origin::Other && plain_path(symbol).contains("::") && !is_allocation(symbol)
}

/// A path from its first name on. In `<std::fs::File as std::io::Read>::read` that is the type's.
fn subject(path: &str) -> &str {
    path.trim_start_matches(['<', '&'])
}

/// A path of the standard library or of OxiSYCL as programs write it, without private modules: `std::thread::functions::spawn` is
/// `std::thread::spawn`. Methods, also those of traits, are given as the type's.
fn user_name(path: &str) -> String {
    let names = without_types(path);
    let mut names: Vec<&str> = names.split("::").take_while(|name| !name.starts_with('{')).collect();
    match names.last() {
        Some(&"_print") => return "std::println!".to_owned(),
        Some(&"_eprint") => return "std::eprintln!".to_owned(),
        _ => {}
    }
    let n_public = match names.as_slice() {
        ["std", "os", ..] => 4,
        ["std", "sync", "mpsc", ..] => 3,
        ["std", ..] => 2,
        _ => 1,
    };
    let is_type = |name: &&str| name.starts_with(|first: char| first.is_ascii_uppercase());
    let item = names.iter().position(is_type).unwrap_or(names.len().saturating_sub(1)).max(n_public);
    if n_public < item {
        names.drain(n_public..item);
    }
    if let Some(last) = names.last_mut() {
        *last = last.trim_start_matches('_');
    }
    names.join("::")
}

/// The path of an item without brackets: `<A<B> as C>::f` is `A::f`.
fn without_types(path: &str) -> String {
    let inner = path.strip_prefix('<').map_or(path, |inner| inner.trim_start_matches('&'));
    let is_of_type = inner.len() < path.len();
    let mut plain = String::new();
    // In `<A as B>::f` the end of the outer brackets is met at this depth.
    let mut depth = 0_i32;
    let mut is_trait = false;
    for (at, letter) in inner.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if depth == 0 => is_trait = false,
            '>' => depth -= 1,
            _ if depth == 0 && is_of_type && inner[at..].starts_with(" as ") => is_trait = true,
            _ if depth == 0 && !is_trait => plain.push(letter),
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_host_are_called_what_programs_call_them() {
        for (path, name) in [
            ("std::fs::read", "std::fs::read"),
            ("std::thread::functions::spawn", "std::thread::spawn"),
            ("std::io::stdio::_print", "std::println!"),
            ("std::env::_var", "std::env::var"),
            ("std::time::Instant::now", "std::time::Instant::now"),
            ("std::collections::hash::map::HashMap<K,V>::new", "std::collections::HashMap::new"),
            ("std::sync::poison::mutex::Mutex<T>::lock", "std::sync::Mutex::lock"),
            ("std::sync::mpsc::channel", "std::sync::mpsc::channel"),
            ("std::os::unix::net::stream::UnixStream::connect", "std::os::unix::net::UnixStream::connect"),
            ("<std::fs::File as std::io::Read>::read", "std::fs::File::read"),
            ("<&std::fs::File as std::io::Write>::write", "std::fs::File::write"),
            ("<std::time::Instant>::now", "std::time::Instant::now"),
            (
                "<std::collections::hash::map::HashMap<K,V,S> as core::iter::traits::collect::FromIterator<(K,V)>>::from_iter",
                "std::collections::HashMap::from_iter",
            ),
            ("std::thread::lifecycle::spawn_unchecked::{closure#0}::MIN", "std::thread::spawn_unchecked"),
            ("oxisycl::queue::Queue::submit", "oxisycl::Queue::submit"),
        ] {
            assert_eq!(user_name(path), name, "{path}");
        }
    }

    #[test]
    fn the_function_that_the_users_code_calls_is_named_with_what_to_do() {
        let standard = "_ZN3std2fs4read17h0123456789abcdefE";
        let inner = "_ZN3std3sys2fs4unix4File4open17h0123456789abcdefE";
        let user = "_ZN3app4load17h0123456789abcdefE";
        let core = "_ZN4core6option6Option3map17h0123456789abcdefE";
        let found = host_function(&[user, core, standard, inner, "open64"]).expect("a function");
        assert_eq!((found.position, found.name.as_str()), (2, "std::fs::read"));
        assert!(found.advice.expect("advice").starts_with("a kernel has no files;"));
        // If the host's function calls a user's function, the message names the calls of the latter.
        let time = "_ZN3std4time7Instant3now17h0123456789abcdefE";
        let found = host_function(&[user, standard, user, time, "clock_gettime"]).expect("a function");
        assert_eq!((found.position, found.name.as_str()), (3, "std::time::Instant::now"));
        assert_eq!(host_function(&[user, core, "getpid"]), None);
        let allocates = "_RNvCs1234_7___rustc12___rust_alloc";
        let found = host_function(&[user, standard, allocates]).expect("a function");
        assert_eq!((found.position, library_position(&[user, core, allocates])), (1, 1));
        assert_eq!(host_function(&[user, standard, "_ZN3app7COUNTER17h0123456789abcdefE"]), None, "a user's static");
        assert_eq!(host_function(&["_ZN3app3std2fs4read17h0123456789abcdefE", "open64"]), None, "a user's module");
        let ours = "_ZN7oxisycl5queue5Queue6submit17h0123456789abcdefE";
        let found = host_function(&[user, ours, standard, "open64"]).expect("a function");
        assert_eq!((found.position, found.advice), (1, Some(OURS)));
    }

    #[test]
    fn what_is_computed_once_has_other_advice_than_locks() {
        for path in ["std::sync::once::Once::call", "std::sync::once_lock::OnceLock<T>::initialize"] {
            assert_eq!(advice(path), Some(ONCE), "{path}");
        }
        assert_eq!(advice("<std::sync::lazy_lock::LazyLock<T,F> as core::ops::deref::Deref>::deref"), Some(ONCE));
        assert_eq!(advice("std::sync::poison::mutex::Mutex<T>::lock"), Some(LOCK));
    }

    #[test]
    fn foreign_functions_are_told_from_those_of_rust_and_of_the_toolchain() {
        let user = "_ZN3app4load17h0123456789abcdefE";
        let standard = "_ZN3std2fs4read17h0123456789abcdefE";
        assert!(is_foreign(&[user, "getpid"]));
        for other in [standard, "__udivti3", "_Unwind_Resume", "llvm.x86.sse2.pause"] {
            assert!(!is_foreign(&[user, other]), "{other}");
        }
        assert!(!is_foreign(&[standard, "getpid"]) && !is_foreign(&["getpid"]));
    }
}
