//! Names of Rust items out of their symbols.

/// The path of the item behind a symbol, without hashes and type arguments: `core::panicking::panic_fmt`,
/// `<oxisycl_device::kernel::RangeForm<_> as oxisycl_device::kernel::DescribeKernel>::entry`. The symbol itself if it is not Rust's.
///
/// Legacy and v0 symbols of the same item can differ in the type arguments of an `impl`; they agree in what the compiler looks for.
///
/// LLVM appends a number to a symbol when another one of that name is there already, after a dot on hosts, and without one on GPUs. It
/// is no part of the path.
pub(crate) fn path(symbol: &str) -> String {
    if !symbol.starts_with("_ZN") && !symbol.starts_with("_R") {
        return symbol.to_owned();
    }
    let mut rest = without_numbers(symbol);
    loop {
        if let Ok(name) = rustc_demangle::try_demangle(rest) {
            return format!("{name:#}");
        }
        // Mangled names say how long their parts are, so digits too many make them invalid.
        match rest.strip_suffix(|last: char| last.is_ascii_digit()) {
            Some(shorter) => rest = without_numbers(shorter),
            None => return symbol.to_owned(),
        }
    }
}

/// Less numbers behind dots.
pub(crate) fn without_numbers(symbol: &str) -> &str {
    match symbol.rsplit_once('.') {
        Some((first, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => without_numbers(first),
        _ => symbol,
    }
}

/// The path without type arguments: `core::panicking::assert_failed::<u32, u32>` becomes `core::panicking::assert_failed`.
pub(crate) fn plain_path(symbol: &str) -> String {
    without_arguments(&path(symbol))
}

fn without_arguments(path: &str) -> String {
    // Paths of impls begin with `<`, and what follows `::<` are arguments.
    let mut plain = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(position) = rest.find("::<") {
        plain.push_str(&rest[..position]);
        let mut depth = 0_usize;
        let after = rest[position + 2..].char_indices().find(|&(_, letter)| {
            match letter {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        rest = after.map_or("", |(end, _)| &rest[position + 2 + end + 1..]);
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_manglings_give_the_path() {
        for symbol in [
            "_ZN14oxisycl_device7builtin14is_device_code17hd37baa6394757393E",
            "_RNvNtCs1234_14oxisycl_device7builtin14is_device_code",
            "_ZN14oxisycl_device7builtin14is_device_code17hd37baa6394757393E.20",
            "_RNvNtCs1234_14oxisycl_device7builtin14is_device_code.3.14",
            "_ZN14oxisycl_device7builtin14is_device_code17hd37baa6394757393E86",
            "_RNvNtCs1234_14oxisycl_device7builtin14is_device_code861",
        ] {
            assert_eq!(path(symbol), "oxisycl_device::builtin::is_device_code", "{symbol}");
        }
        for symbol in ["memcpy", "sin.12", "log10", "oxisycl.atan2"] {
            assert_eq!(path(symbol), symbol);
        }
    }

    #[test]
    fn type_arguments_are_left_out() {
        assert_eq!(
            without_arguments("core::panicking::assert_failed::<u32, <u8 as T>::X>"),
            "core::panicking::assert_failed"
        );
        assert_eq!(without_arguments("a::<b::<c>>::d::<e>"), "a::d");
        assert_eq!(without_arguments("<a as b>::c"), "<a as b>::c");
    }
}
