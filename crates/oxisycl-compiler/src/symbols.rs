//! Names of Rust items out of their symbols.

/// The path of the item behind a symbol, without hashes and type arguments: `core::panicking::panic_fmt`,
/// `<oxisycl_device::kernel::RangeForm<_> as oxisycl_device::kernel::DescribeKernel>::entry`. The symbol itself if it is not Rust's.
///
/// Legacy and v0 symbols of the same item can differ in the type arguments of an `impl`; they agree in what the compiler looks for.
pub(crate) fn path(symbol: &str) -> String {
    let symbol = without_number(symbol);
    match rustc_demangle::try_demangle(symbol) {
        Ok(name) => format!("{name:#}"),
        Err(_) => symbol.to_owned(),
    }
}

/// Less the number that LLVM appends to a symbol when another one of that name is there already.
fn without_number(symbol: &str) -> &str {
    match symbol.rsplit_once('.') {
        Some((first, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => without_number(first),
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
        ] {
            assert_eq!(path(symbol), "oxisycl_device::builtin::is_device_code", "{symbol}");
        }
        assert_eq!(path("memcpy"), "memcpy");
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
