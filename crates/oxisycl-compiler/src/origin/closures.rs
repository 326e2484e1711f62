//! Closures in debug information. rustc calls the type of a closure `closure_env`, and its code `closure`; both have a number.

/// The prefix of a closure type's name.
const TYPE: &str = "{closure_env#";
/// The prefix of the name of a closure's code.
const CODE: &str = "{closure#";

/// Whether a type is a closure's, by its name.
pub(crate) fn is_closure_type(name: &str) -> bool {
    name.starts_with(TYPE)
}

/// The path of a type in debug information, for messages. All closures have one name there, as in [`std::any::type_name`].
pub(crate) fn type_path(namespaces: &[String], name: &str) -> String {
    let name = if is_closure_type(name) { "{{closure}}" } else { name };
    namespaces.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("::")
}

/// The name of a closure's code, from the name of its type. Type arguments stay. `None` for other types.
pub(crate) fn closure_code(type_name: &str) -> Option<String> {
    type_name.strip_prefix(TYPE).map(|rest| format!("{CODE}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_closure_has_the_number_and_the_arguments_of_its_type() {
        assert_eq!(closure_code("{closure_env#0}").as_deref(), Some("{closure#0}"));
        assert_eq!(closure_code("{closure_env#12}<u32, app::_env>").as_deref(), Some("{closure#12}<u32, app::_env>"));
    }

    #[test]
    fn the_path_of_a_type_ends_with_its_name_or_says_that_it_is_a_closures() {
        let namespaces = ["app", "main"].map(str::to_owned);
        assert_eq!(type_path(&namespaces, "{closure_env#3}<u32>"), "app::main::{{closure}}");
        assert_eq!(type_path(&namespaces[..1], "Kernel<u32>"), "app::Kernel<u32>");
    }

    #[test]
    fn other_types_are_no_closures() {
        for name in ["closure_env#0", "{closure#0}", "&{closure_env#0}", "{coroutine_env#0}", "{async_fn_env#0}", ""] {
            assert!(!is_closure_type(name) && closure_code(name).is_none(), "{name}");
        }
        assert!(is_closure_type("{closure_env#3}<f32>"));
    }
}
