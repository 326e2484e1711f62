//! The table against what is written by hand: stubs, assembly, and the book.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use oxisycl_image::ImageTarget;

use super::*;
use crate::codegen;
use crate::llvm::{Attribute, Module};
use crate::passes::tests::context;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

impl Scalar {
    fn of_rust(text: &str) -> Self {
        match text {
            "bool" => Self::Bool,
            "u32" | "MaybeUninit<u32>" => Self::U32,
            "u64" => Self::U64,
            "u128" => Self::U128,
            "f32" => Self::F32,
            "f64" => Self::F64,
            _ if text.starts_with('*') => Self::Address,
            other => panic!("a type that is not in the table: {other}"),
        }
    }

    fn in_llvm(self) -> &'static str {
        match self {
            Self::Bool => "i1",
            Self::U32 => "i32",
            Self::U64 => "i64",
            Self::U128 => "i128",
            Self::F32 => "float",
            Self::F64 => "double",
            Self::Address => "ptr",
        }
    }
}

/// The functions of `oxisycl_device::builtin`, in their order, with those that its macros make.
fn stubs() -> Vec<(String, Signature)> {
    let leak = |scalars: Vec<Scalar>| -> &'static [Scalar] { scalars.leak() };
    let mut found = Vec::new();
    let mut within = "";
    for line in read("crates/oxisycl-device/src/builtin.rs").lines() {
        let code = line.trim();
        match code {
            "positions! {" | "native! {" => within = code,
            "}" if line == "}" => within = "",
            _ if code.starts_with("//") => {}
            _ if within == "positions! {" => {
                found.push((code.trim_end_matches(',').to_owned(), POSITION));
            }
            _ if within == "native! {" => {
                let (name, rest) = code.split_once('(').expect("a function");
                let n_parameters = rest.split(')').next().expect("parameters").split(',').count();
                let parameters = leak(vec![Scalar::F32; n_parameters]);
                found.push((name.to_owned(), Signature::Plain(parameters, Some(Scalar::F32))));
            }
            _ => {
                let code = code.strip_prefix("pub ").unwrap_or(code);
                let code = code.strip_prefix("unsafe ").unwrap_or(code);
                let Some((name, rest)) = code.strip_prefix("fn ").and_then(|code| code.split_once('(')) else {
                    continue;
                };
                if name.starts_with('$') {
                    continue;
                }
                if rest.contains("impl Fn(usize, usize, usize)") {
                    found.push((name.to_owned(), Signature::Nest));
                    continue;
                }
                if rest.contains("impl Fn(usize)") {
                    found.push((name.to_owned(), Signature::Loop));
                    continue;
                }
                let (parameters, result) = rest.rsplit_once(')').expect("parameters");
                let result = result.trim().trim_end_matches("{}").trim_end_matches(['{', ';']).trim();
                let result = result.strip_prefix("-> ");
                let signature = match result {
                    Some("!") => Signature::Never,
                    Some("T") => Signature::LoadOfAny,
                    _ => {
                        let types = parameters.split(", ").filter_map(|parameter| Some(parameter.split_once(": ")?.1));
                        Signature::Plain(leak(types.map(Scalar::of_rust).collect()), result.map(Scalar::of_rust))
                    }
                };
                found.push((name.split('<').next().unwrap_or_default().to_owned(), signature));
            }
        }
    }
    found
}

#[test]
fn the_device_library_has_a_stub_for_each_builtin_and_no_other() {
    let table: Vec<_> = BUILTINS.iter().map(|builtin| (builtin.name.to_owned(), builtin.signature)).collect();
    assert_eq!(stubs(), table);
}

#[test]
fn each_target_has_exactly_the_bodies_of_the_table() {
    let context = context();
    for (name, family) in [("sm_70", Family::Nvptx), ("gfx90a", Family::Amdgcn), ("spirv1.2", Family::SpirV)] {
        let image_target: ImageTarget = name.parse().expect("a target");
        let bodies = codegen::of(&image_target).expect("a target").builtins();
        assert_eq!(bodies.family, family, "{name}");
        let module = Module::from_text(&context, bodies.text, name).expect("assembly");
        let defined = module.functions().into_iter().filter(|function| !function.is_declaration());
        let defined: BTreeSet<String> = defined.map(|function| function.name().to_owned()).collect();
        let with_body: Vec<_> = BUILTINS.iter().filter(|builtin| builtin.lowering(family) == Body).collect();
        assert_eq!(defined, with_body.iter().map(|builtin| builtin.symbol()).collect(), "{name}");
        for builtin in with_body {
            let function = module.function(&builtin.symbol()).expect("it is defined");
            let (parameters, result) = match builtin.signature {
                Signature::Plain(parameters, result) => (parameters, result),
                Signature::Never => (&[][..], None),
                _ => panic!("{name}: {}: a body of no certain type", builtin.name),
            };
            let parameters: Vec<_> = parameters.iter().map(|scalar| scalar.in_llvm()).collect();
            let result = result.map_or("void", Scalar::in_llvm);
            let text = format!("declare {result} @expected({})", parameters.join(", "));
            let expected = Module::from_text(&context, &text, "expected").expect("a declaration");
            let expected = expected.function("expected").expect("it is there").held_type();
            assert!(function.held_type() == expected, "{name}: {}: expected {text}", builtin.name);
            let is_convergent = function.has_attribute(Attribute::FUNCTION, "convergent");
            assert_eq!(is_convergent, builtin.effects == Effects::Convergent, "{name}: {}", builtin.name);
        }
    }
}

/// The table in the book's words.
fn page() -> String {
    let mut text = "| builtin | signature | effects | NVIDIA | AMD | OpenCL |\n|---|---|---|---|---|---|\n".to_owned();
    let scalar = |scalar: &Scalar| match scalar {
        Scalar::Bool => "bool",
        Scalar::U32 => "u32",
        Scalar::U64 => "u64",
        Scalar::F32 => "f32",
        Scalar::F64 => "f64",
        Scalar::U128 => "u128",
        Scalar::Address => "address",
    };
    for builtin in BUILTINS {
        let signature = match builtin.signature {
            Signature::Plain(parameters, result) => {
                let parameters: Vec<_> = parameters.iter().map(scalar).collect();
                let result = result.as_ref().map(|result| format!(" -> {}", scalar(result))).unwrap_or_default();
                format!("({}){result}", parameters.join(", "))
            }
            Signature::LoadOfAny => "(address) -> T".to_owned(),
            Signature::Loop => "(u64, F)".to_owned(),
            Signature::Nest => "(u64, u64, u64, F)".to_owned(),
            Signature::Never => "() -> !".to_owned(),
        };
        let effects = match builtin.effects {
            Effects::None => "none",
            Effects::Marker => "marks a place",
            Effects::Memory => "memory",
            Effects::Convergent => "meets work-items",
            Effects::Ends => "ends the work-item",
        };
        let lowering = |family| match builtin.lowering(family) {
            OwnBody => "stub".to_owned(),
            ConstantLoads => "constant loads".to_owned(),
            Body | Atomic => "instructions".to_owned(),
            Number(number) | Answer(number) => number.to_string(),
            HasReductions => "0 or 1".to_owned(),
            Later => "a pass".to_owned(),
        };
        let [nvptx, amdgcn, spirv] = [Family::Nvptx, Family::Amdgcn, Family::SpirV].map(lowering);
        let name = builtin.name;
        let _ = writeln!(text, "| `{name}` | `{signature}` | {effects} | {nvptx} | {amdgcn} | {spirv} |");
    }
    text
}

#[test]
fn the_book_has_the_table() {
    const PAGE: &str = "book/src/builtins.md";
    let (found, table) = (read(PAGE), page());
    let start = found.find("| builtin |").unwrap_or_else(|| panic!("{PAGE}: there is no table"));
    let length = found[start..].find("\n\n").map_or(found.len() - start, |end| end + 1);
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        let text = format!("{}{table}{}", &found[..start], &found[start + length..]);
        std::fs::write(workspace().join(PAGE), text).unwrap_or_else(|error| panic!("{PAGE}: {error}"));
        return;
    }
    assert!(
        found[start..start + length] == table,
        "{PAGE}: expected\n{table}\nBLESS=1 cargo test -p oxisycl-compiler book"
    );
}
