use crate::workspace::Package;

/// The normal dependencies that each crate of this workspace may have on the others, and no more.
///
/// Development dependencies are free: a test may see anything.
const ALLOWED: &[(&str, &[&str])] = &[
    ("oxisycl-types", &[]),
    ("oxisycl-macros", &[]),
    ("oxisycl-image", &["oxisycl-types"]),
    ("oxisycl-device", &["oxisycl-types", "oxisycl-macros", "oxisycl-builtins"]),
    ("oxisycl-builtins", &[]),
    ("oxisycl-cache", &[]),
    ("oxisycl-compiler", &["oxisycl-types", "oxisycl-image"]),
    ("oxisycl-backend", &["oxisycl-types", "oxisycl-image"]),
    ("oxisycl-backend-testing", &["oxisycl-types", "oxisycl-image", "oxisycl-backend"]),
    ("oxisycl-backend-host", &["oxisycl-types", "oxisycl-image", "oxisycl-backend"]),
    ("oxisycl-backend-cuda", &["oxisycl-types", "oxisycl-image", "oxisycl-backend"]),
    ("oxisycl-backend-opencl", &["oxisycl-types", "oxisycl-image", "oxisycl-backend"]),
    ("oxisycl-runtime", &["oxisycl-types", "oxisycl-image", "oxisycl-backend", "oxisycl-cache"]),
    (
        "oxisycl",
        &[
            "oxisycl-types",
            "oxisycl-device",
            "oxisycl-macros",
            "oxisycl-image",
            "oxisycl-backend",
            "oxisycl-backend-cuda",
            "oxisycl-backend-host",
            "oxisycl-backend-opencl",
            "oxisycl-builtins",
            "oxisycl-runtime",
        ],
    ),
    ("oxisycl-dylib", &["oxisycl"]),
    ("oxisycl-examples", &[]),
    ("oxisycl-kernel-suite", &[]),
    ("oxisycl-ui-tests", &[]),
    ("cargo-sycl", &["oxisycl", "oxisycl-cache", "oxisycl-image", "oxisycl-compiler"]),
    ("xtask", &[]),
];

/// Crates that depend on nothing at all, outside crates included.
const WITHOUT_DEPENDENCIES: &[&str] = &["oxisycl-types"];

/// Findings for the dependencies of one package.
pub(super) fn check(package: &Package) -> Vec<String> {
    let name = package.name.as_str();
    let Some((_, allowed)) = ALLOWED.iter().find(|(from, _)| *from == name) else {
        return vec![format!(
            "{name}: the list of allowed dependencies (xtask/src/tidy/edges.rs) does not know this crate"
        )];
    };
    let mut findings = Vec::new();
    for dependency in &package.dependencies {
        let ours = ALLOWED.iter().any(|(crate_name, _)| crate_name == dependency) || dependency.starts_with("oxisycl");
        if ours && !allowed.contains(&dependency.as_str()) {
            findings.push(format!("{name}: may not depend on {dependency} (allowed: {})", list(allowed)));
        } else if !ours && WITHOUT_DEPENDENCIES.contains(&name) {
            findings.push(format!("{name}: may not depend on anything, found {dependency}"));
        }
    }
    findings
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        let dependencies = dependencies.iter().map(|&dependency| dependency.to_owned()).collect();
        Package { name: name.to_owned(), dependencies, ..Package::default() }
    }

    #[test]
    fn allowed_and_outside_dependencies_pass() {
        assert!(check(&package("oxisycl-runtime", &["oxisycl-backend", "parking_lot"])).is_empty());
    }

    #[test]
    fn the_runtime_may_not_see_a_concrete_backend() {
        let findings = check(&package("oxisycl-runtime", &["oxisycl-backend-host"]));
        assert_eq!(
            findings,
            [
                "oxisycl-runtime: may not depend on oxisycl-backend-host (allowed: oxisycl-types, oxisycl-image, oxisycl-backend, oxisycl-cache)"
            ]
        );
    }

    #[test]
    fn a_crate_of_ours_that_the_list_does_not_know_is_a_finding_on_both_ends() {
        assert_eq!(check(&package("oxisycl-new", &[])).len(), 1);
        assert_eq!(check(&package("oxisycl", &["oxisycl-new"])).len(), 1);
    }

    #[test]
    fn the_types_depend_on_nothing() {
        assert_eq!(check(&package("oxisycl-types", &["libc"])).len(), 1);
    }
}
