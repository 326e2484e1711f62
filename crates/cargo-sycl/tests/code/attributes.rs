//! What kernel functions state is in their code and in what is said of them.

use std::process::Command;

use crate::program::{build, succeed};

#[test]
fn what_a_kernel_states_is_in_its_code_and_what_it_forgets_is_warned_of() {
    let built = build("attributes", &[]);
    let warnings: Vec<&str> = built.messages.lines().filter(|line| line.starts_with("warning: kernel ")).collect();
    let [refused, incomplete] = warnings[..] else { panic!("{}", built.messages) };
    assert!(refused.starts_with("warning: kernel `attributes::in_sixteens"), "{refused}");
    assert!(refused.contains("cannot run on sm_70: it states sub-groups of 16 work-items"), "{refused}");
    let what = "states aspects, and not all: it needs the aspect fp64, which its `device_has` does not state (at \
                src/bin/attributes.rs:13:";
    assert!(incomplete.starts_with("warning: kernel `attributes::incomplete"), "{incomplete}");
    assert!(incomplete.contains(what), "{incomplete}");

    let of = |name: &str| {
        let lines = built.kernels.lines().skip_while(|line| !line.contains(&format!("attributes::{name}::")));
        lines.skip(1).take_while(|line| line.starts_with("    ")).map(str::trim).collect::<Vec<_>>()
    };
    let stated = of("stated");
    for line in ["needs fp64", "states fp64", "work-groups of [4, 8] work-items", "sub-groups of 32 work-items"] {
        assert!(stated.contains(&line), "{line}: {stated:?}");
    }
    let incomplete = of("incomplete");
    assert!(incomplete.contains(&"needs fp64, queue_profiling"), "{incomplete:?}");
    assert!(
        incomplete.iter().any(|line| line.starts_with("does not state: it needs the aspect fp64")),
        "{incomplete:?}"
    );
    assert!(!of("of_groups_alone").iter().any(|line| line.contains("state")), "{}", built.kernels);

    let sizes = |name: &str| {
        let entry = built
            .code
            .split(".visible .entry ")
            .find(|entry| entry.split('(').next().unwrap().contains(&format!("attributes_{name}_")));
        let head = entry.unwrap().split('{').next().unwrap();
        head.lines().find_map(|line| line.strip_prefix(".reqntid ")).map(str::to_owned)
    };
    assert_eq!(built.code.matches(".visible .entry ").count(), 3, "{}", built.code);
    assert_eq!(sizes("stated").as_deref(), Some("8, 4, 1"));
    assert_eq!(sizes("of_groups_alone").as_deref(), Some("64, 1, 1"));
    assert_eq!(sizes("incomplete"), None);
    assert_eq!(succeed(&mut Command::new(&built.binary)).0, "[5.0, 5.0, 5.0, 5.0]\n");
}
