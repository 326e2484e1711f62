use super::*;

/// The graph of a crate with these files.
fn graph(files: &[(&str, &str)]) -> Graph {
    let files: BTreeMap<String, String> =
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    let root = files.keys().find(|path| path.ends_with("lib.rs")).expect("a root").clone();
    Graph::of(&root, &|path| Ok(files.get(path).cloned())).expect("a crate")
}

fn cycle(files: &[(&str, &str)]) -> Vec<String> {
    graph(files).largest_cycle()
}

const ROOT: &str = "mod a; mod b; mod c;";

#[test]
fn paths_in_expressions_and_signatures_tie_files() {
    let files = [
        ("s/lib.rs", ROOT),
        ("s/a.rs", "fn f() { crate::b::g() }"),
        ("s/b.rs", "pub fn g(x: super::c::C) {}"),
        ("s/c.rs", "use crate::{b::{self, Other}, a::{Inner as Name}}; struct C;"),
    ];
    assert_eq!(cycle(&files), ["s/a.rs", "s/b.rs", "s/c.rs"]);
}

#[test]
fn arrows_in_one_direction_are_no_cycle() {
    let files = [
        ("s/lib.rs", ROOT),
        ("s/a.rs", "use crate::b::B; use super::c;"),
        ("s/b.rs", "use crate::c::C;"),
        ("s/c.rs", "pub(in crate::a) struct C; pub(super) struct D; pub(crate) struct E; use core::fmt;"),
    ];
    assert_eq!(cycle(&files).len(), 1);
    assert_eq!(graph(&files).edges.iter().map(BTreeSet::len).sum::<usize>(), 3);
}

#[test]
fn tests_and_documentation_tie_nothing() {
    let files = [
        ("s/lib.rs", ROOT),
        ("s/a.rs", "use crate::b::B;"),
        (
            "s/b.rs",
            "/// As `crate::a::A`.\nstruct B;\n#[cfg(test)]\nmod tests { use crate::a::A; }\n#[cfg(test)]\nmod missing;\n",
        ),
        ("s/c.rs", ""),
    ];
    assert_eq!(cycle(&files).len(), 1);
}

#[test]
fn modules_in_folders_in_braces_and_at_named_paths_are_found() {
    let files = [
        (
            "s/lib.rs",
            "mod a;\n#[cfg_attr(loom, path = \"model.rs\")]\n#[cfg_attr(not(loom), path = \"other.rs\")]\npub mod b;\nmod inline { mod deep; }",
        ),
        ("s/a/mod.rs", "mod part; mod own { use super::super::b::B; }"),
        ("s/a/part.rs", "use super::super::inline::deep::D;"),
        ("s/other.rs", "use super::a::part::P;"),
        ("s/inline/deep.rs", "use super::super::b;"),
    ];
    assert_eq!(cycle(&files), ["s/a/part.rs", "s/inline/deep.rs", "s/other.rs"]);
}

#[test]
fn a_name_that_a_module_re_exports_belongs_to_its_file() {
    let files = [
        ("s/lib.rs", "mod a; mod graph; use graph::Node as Knot;"),
        ("s/a.rs", "use crate::graph::{Hold, start}; fn f(x: crate::graph::Knot, y: crate::Knot) {}"),
        (
            "s/graph/mod.rs",
            "mod node; mod hold;\npub use self::hold::{Hold, Other}; pub(crate) use node::{self, Node as Knot};\nfn start() {}",
        ),
        ("s/graph/node.rs", "use super::Hold;"),
        ("s/graph/hold.rs", "use crate::a::A;"),
    ];
    assert_eq!(cycle(&files), ["s/a.rs", "s/graph/hold.rs", "s/graph/node.rs"]);
}

#[test]
fn what_is_declared_must_be_there() {
    let failure = Graph::of("s/lib.rs", &|path| Ok((path == "s/lib.rs").then(|| "mod gone;".to_owned())));
    assert_eq!(failure.expect_err("no file").message, "s/lib.rs: there is no file for the module gone");
}

#[test]
fn only_the_largest_of_several_cycles_counts() {
    let edges = [&[1][..], &[0], &[3], &[4], &[2, 0], &[5]].map(|to| to.iter().copied().collect());
    let mut sizes: Vec<usize> = Components::of(&edges).iter().map(Vec::len).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 2, 3]);
}

#[test]
fn a_ceiling_is_what_is_measured() {
    let cycle = |n: usize| vec![String::from("f.rs"); n];
    let found = |n, ceiling| findings("x", &cycle(n), ceiling);
    assert!(found(8, None).is_empty() && found(20, Some(20)).is_empty());
    assert!(found(9, None)[0].starts_with("x: a module cycle has 9 files, at most 8: f.rs, f.rs"));
    assert!(found(21, Some(20))[0].contains("21 files, at most 20"));
    assert!(found(19, Some(20))[0].ends_with("lower the ceiling of 20 to that"));
    assert!(found(8, Some(20))[0].ends_with("remove the row of CEILINGS"));
    assert!(found(5, Some(7))[0].ends_with("remove the row of CEILINGS"));
}
