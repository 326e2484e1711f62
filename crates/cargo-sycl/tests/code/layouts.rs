//! The lists of arguments that the program and the image make each for itself: of forty derived types.

use std::collections::BTreeMap;
use std::process::Command;

use crate::program::{build, succeed};

/// The paths and places of each case's arguments. A case is a line of its own. Types are left out: image and program may name them differently.
fn cases(text: &str, name: impl Fn(&str) -> Option<String>) -> BTreeMap<String, Vec<String>> {
    let mut cases: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut case = None;
    for line in text.lines() {
        match line.trim().strip_prefix("argument ") {
            Some(argument) => {
                let case: &String = case.as_ref().expect("a case");
                let (path, rest) = argument.split_once(": ").expect("a path");
                let (_, place) = rest.rsplit_once(", ").expect("a place");
                cases.get_mut(case).expect("a case").push(format!("{path}: {place}"));
            }
            None => {
                if let Some(name) = name(line) {
                    cases.insert(name.clone(), Vec::new());
                    case = Some(name);
                }
            }
        }
    }
    cases
}

#[test]
fn image_and_program_list_the_arguments_of_forty_types_alike() {
    for profile in [&[][..], &["--release"]] {
        let built = build("layouts", profile);
        assert!(!built.messages.contains("warning"), "{}", built.messages);
        let of_program = cases(&succeed(&mut Command::new(&built.binary)).0, |line| Some(line.to_owned()));
        let of_image = cases(&built.kernels, |line| {
            let name = line.trim().strip_prefix("layouts::")?.strip_suffix("::{{closure}}")?;
            (!line.starts_with("    ")).then(|| name.to_owned())
        });
        assert_eq!((of_program.len(), of_image.len()), (40, 40), "{}", built.kernels);
        for (case, arguments) in &of_program {
            assert_eq!(of_image.get(case), Some(arguments), "{case}");
        }
        let paths = |case: &str| {
            let path = |argument: &String| argument.split(": ").next().unwrap().to_owned();
            of_image[case].iter().map(path).collect::<Vec<_>>()
        };
        // Of each kind one, so that equal lists are not both wrong.
        assert_eq!(paths("unit"), ["0"]);
        assert_eq!(paths("around_nothing"), ["0", "1.a", "1.b"]);
        assert_eq!(paths("enum_with_data"), ["0", "1"]);
        assert_eq!(paths("tuples"), ["0", "1.nested.0.0", "1.nested.0.1.0", "1.nested.0.1.1", "1.nested.1", "1.one.0"]);
        assert_eq!(paths("borrowed"), ["0", "1.tag", "1.table"]);
        let deep = paths("deep");
        assert!(
            deep.contains(&"1.tuple.1[1].value.2".to_owned()) && deep.contains(&"1.mixed[0].c".to_owned()),
            "{deep:?}"
        );
        let line = of_image["aligned_to_64"].iter().find(|argument| argument.starts_with("1.line")).unwrap();
        assert!(line.contains("64 bytes at "), "{line}");
    }
}
