//! Names of Rust items, from their symbols.

/// The path of the item behind a symbol, without hashes and type arguments: `core::panicking::panic_fmt`,
/// `<oxisycl_device::kernel::RangeForm<_> as oxisycl_device::kernel::DescribeKernel>::entry`. The symbol itself if it is not Rust's.
///
/// Legacy and v0 symbols of the same item can differ in the type arguments of an `impl`; they agree in what the compiler looks for.
///
/// If a symbol of that name exists already, LLVM appends a number to it: after a dot on hosts, and without one on GPUs. It is no part of
/// the path.
pub(crate) fn path(symbol: &str) -> String {
    if !symbol.starts_with("_ZN") && !symbol.starts_with("_R") {
        return symbol.to_owned();
    }
    let mut rest = without_numbers(symbol);
    loop {
        if let Ok(name) = rustc_demangle::try_demangle(rest) {
            let name = format!("{name:#}");
            // The older mangling has no sign for the first half of the arrow in the type of a function, and writes a dot.
            return if rest.starts_with("_ZN") { name.replace(".>", "->") } else { without_brackets(name) };
        }
        // Mangled names say how long their parts are, so digits too many make them invalid.
        match rest.strip_suffix(|last: char| last.is_ascii_digit()) {
            Some(shorter) => rest = without_numbers(shorter),
            None => return symbol.to_owned(),
        }
    }
}

/// Removes the brackets around a method's type, which the v0 mangling has and the legacy one lacks: `<core::fmt::Formatter>::pad`. Types
/// without a path are in brackets in both.
fn without_brackets(name: String) -> String {
    let Some(end) = closing(&name) else { return name };
    let (item, rest) = (&name[1..end], &name[end + 1..]);
    let is_path = item.split_once(':').is_some_and(|(first, _)| first.chars().all(is_of_name));
    // That of a trait's implementation names the trait, too.
    if is_path && !item.contains(" as ") { format!("{item}{rest}") } else { name }
}

/// Whether names may contain the character: an ASCII letter or digit, `_`, or any character beyond ASCII.
pub(crate) fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || !letter.is_ascii()
}

/// The position of the bracket that closes the one at the beginning of a text. The arrow in a function type closes none.
pub(crate) fn closing(text: &str) -> Option<usize> {
    if !text.starts_with('<') {
        return None;
    }
    let mut depth = 0_usize;
    text.char_indices().find_map(|(at, letter)| {
        match letter {
            '<' => depth += 1,
            '>' if !text[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// The symbol without numbers behind dots.
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
        let arguments = &rest[position + 2..];
        rest = closing(arguments).map_or("", |end| &arguments[end + 1..]);
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
    fn the_type_of_a_method_has_brackets_in_neither_mangling() {
        for symbol in
            ["_RNvMsa_NtCs1234_4core3fmtNtB5_9Formatter3pad", "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"]
        {
            assert_eq!(path(symbol), "core::fmt::Formatter::pad", "{symbol}");
        }
        let kept = |name: &str| assert_eq!(without_brackets(name.to_owned()), name);
        ["<u32>::pow", "<[u8]>::len", "<a::B as c::D>::e", "<fn(a::B) -> c::D>::e", "<&a::B>::c", "a::b"]
            .iter()
            .for_each(|name| kept(name));
        assert_eq!(without_brackets("<a::B<c::D>>::e".to_owned()), "a::B<c::D>::e");
    }

    #[test]
    fn the_arrow_of_a_function_is_whole_in_both_manglings() {
        let legacy = "_ZN78_$LT$fn$LP$core..cmp..Ordering$RP$$u20$.$GT$$u20$u32$u20$as$u20$arrow1..Tr$GT$18precondition_check17h17403bd248699db3E";
        assert_eq!(path(legacy), "<fn(core::cmp::Ordering) -> u32 as arrow1::Tr>::precondition_check");
    }

    #[test]
    fn type_arguments_are_left_out() {
        assert_eq!(
            without_arguments("core::panicking::assert_failed::<u32, <u8 as T>::X>"),
            "core::panicking::assert_failed"
        );
        assert_eq!(without_arguments("a::<b::<c>>::d::<e>"), "a::d");
        assert_eq!(without_arguments("<a as b>::c"), "<a as b>::c");
        assert_eq!(without_arguments("a::<fn(u8) -> b>::c::<fn() -> d>"), "a::c");
    }
}
