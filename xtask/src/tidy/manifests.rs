use crate::outcome::Result;
use crate::workspace::{Package, parse_toml};

/// Keys of `[package]` that come from the root manifest.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license"];

/// Findings for one manifest: what it must inherit, and what a published crate must say about itself.
pub(super) fn check(package: &Package, manifest: &str) -> Result<Vec<String>> {
    let name = &package.name;
    let manifest = parse_toml(&format!("the manifest of {name}"), manifest)?;
    let mut findings = Vec::new();
    if !inherits(manifest.get("lints")) {
        findings.push(format!("{name}: does not inherit the lints of the workspace"));
    }
    for key in INHERITED {
        if !inherits(manifest.get("package").and_then(|table| table.get(key))) {
            findings.push(format!("{name}: does not inherit `{key}` from the workspace"));
        }
    }
    // A place that can be visited is named when there is one; until then any name would be untrue.
    if package.repository.is_some() {
        findings.push(format!("{name}: names a repository, and there is none to visit"));
    }
    if package.publish {
        let present = [
            ("a description", package.description.is_some()),
            ("a licence", package.license.is_some()),
            ("categories", !package.categories.is_empty()),
            ("a `package.metadata.docs.rs` table", package.has_docs_rs),
        ];
        let missing = present.iter().filter(|(_, present)| !present);
        findings.extend(missing.map(|(what, _)| format!("{name}: its manifest lacks {what}")));
    }
    Ok(findings)
}

/// Findings for packages without a README.md beside their manifest, also those of other workspaces in the repository.
pub(super) fn check_readmes(paths: &[&str]) -> Vec<String> {
    let manifests = paths.iter().filter(|path| path.split('/').next_back() == Some("Cargo.toml"));
    let readmes = manifests.map(|path| path.replace("Cargo.toml", "README.md"));
    let missing = readmes.filter(|readme| !paths.contains(&readme.as_str()));
    missing.map(|readme| format!("{readme}: there is none, and each package has one")).collect()
}

/// Whether a value of a manifest is `{ workspace = true }`.
pub(crate) fn inherits(value: Option<&toml::Value>) -> bool {
    value.and_then(|value| value.get("workspace")).and_then(toml::Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nversion.workspace = true\nedition.workspace = true\nrust-version.workspace = true\n\
                            license.workspace = true\n[lints]\nworkspace = true\n";

    fn package() -> Package {
        Package {
            name: "p".to_owned(),
            publish: true,
            description: Some("d".to_owned()),
            license: Some("MIT".to_owned()),
            categories: vec!["science".to_owned()],
            has_docs_rs: true,
            ..Package::default()
        }
    }

    #[test]
    fn a_complete_manifest_passes() {
        assert_eq!(check(&package(), MANIFEST), Ok(Vec::new()));
    }

    #[test]
    fn what_is_not_inherited_is_named() {
        let manifest = MANIFEST.replace("edition.workspace = true", "edition = \"2024\"");
        assert_eq!(
            check(&package(), &manifest),
            Ok(vec!["p: does not inherit `edition` from the workspace".to_owned()])
        );
        let manifest = MANIFEST.replace("[lints]\nworkspace = true", "[lints.rust]\nmissing_docs = \"allow\"");
        assert_eq!(check(&package(), &manifest).unwrap(), ["p: does not inherit the lints of the workspace"]);
    }

    #[test]
    fn a_repository_that_does_not_exist_is_not_named() {
        let named = Package { repository: Some("https://example.org/p".to_owned()), ..package() };
        assert_eq!(check(&named, MANIFEST).unwrap(), ["p: names a repository, and there is none to visit"]);
    }

    #[test]
    fn only_published_crates_need_metadata() {
        let bare = Package { description: None, has_docs_rs: false, ..package() };
        assert_eq!(check(&bare, MANIFEST).unwrap().len(), 2);
        assert_eq!(check(&Package { publish: false, ..bare }, MANIFEST), Ok(Vec::new()));
    }

    #[test]
    fn a_package_without_a_readme_is_found() {
        let paths = ["Cargo.toml", "README.md", "crates/a/Cargo.toml", "crates/a/README.md", "suite/Cargo.toml"];
        assert_eq!(check_readmes(&paths), ["suite/README.md: there is none, and each package has one"]);
        assert_eq!(check_readmes(&["crates/a/src/lib.rs", "book/book.toml"]), [""; 0]);
    }

    #[test]
    fn a_manifest_that_is_no_toml_is_a_failure_with_its_name() {
        let failure = check(&package(), "[package").unwrap_err();
        assert!(failure.message.starts_with("the manifest of p: "), "{failure}");
    }
}
