//! A kernel that panics in a program with `panic = "abort"`.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::child_process::run_command;

/// A program of its own, since a test cannot be built with `panic = "abort"`. Its kernel panics.
const ABORTING: &str = r#"
fn main() -> oxisycl::Result<()> {
    let queue = oxisycl::Queue::default()?;
    let submitted = queue.submit(|cg| {
        cg.name("fatal");
        let way = std::env::args().nth(1);
        let items = oxisycl::NdRange::new([4, 6].into(), [2, 3].into());
        match way.as_deref() {
            // Another work-item has run between the beginning of the one that panics and its panic.
            Some("barrier") => return cg.parallel_for_nd_range(items, (), |mut item, ()| {
                item.group().barrier();
                assert!(item.global_id() != oxisycl::Id::from([3, 4]), "as it must")
            }),
            Some("divergent") => return cg.parallel_for_nd_range(items, (), |mut item, ()| {
                let parts = item.global_id() == oxisycl::Id::from([1, 1]);
                // SAFETY: not sound on devices. The host finds out that not all come.
                if !parts { unsafe { item.unchecked().barrier() } }
            }),
            _ => {}
        }
        if way.is_some() {
            return cg.parallel_for_work_group([2, 3], oxisycl::group::Fixed2::<2, 2>, (), |mut group, ()| {
                group.for_each((), |item, ()| assert!(item.global().id() != oxisycl::Id::from([2, 5]), "as it must"))
            });
        }
        cg.parallel_for([4, 5], |item| assert!(item.id() != oxisycl::Id::from([2, 3]), "as it must"))
    });
    submitted?.wait()
}
"#;

#[test]
fn with_panic_abort_kernel_and_work_item_are_printed_first() {
    static N_BUILDS: AtomicUsize = AtomicUsize::new(0);
    assert_eq!(N_BUILDS.fetch_add(1, Ordering::SeqCst), 0);
    let library = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("abort");
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let manifest = format!(
        "[package]\nname = \"aborting\"\nedition = \"2024\"\n[workspace]\n[profile.dev]\npanic = \"abort\"\ndebug = false\ndebug-assertions = false\n\
         [dependencies]\noxisycl = {{ path = {library:?}, default-features = false }}\n"
    );
    // Once, and whole or not at all: another run of this test may be building the same.
    let write = |name: &str, text: &str| {
        if std::fs::read_to_string(folder.join(name)).is_ok_and(|old| old == text) {
            return;
        }
        let unfinished = folder.join(format!("{name}.{}", std::process::id()));
        std::fs::write(&unfinished, text).unwrap();
        std::fs::rename(&unfinished, folder.join(name)).unwrap();
    };
    write("Cargo.toml", &manifest);
    write("src/main.rs", ABORTING);
    // The same versions as everywhere, so that nothing needs to be fetched.
    write("Cargo.lock", &std::fs::read_to_string(library.join("../../Cargo.lock")).unwrap());
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--offline", "--quiet"]).current_dir(&folder).env("CARGO_TARGET_DIR", folder.join("target"));
    run_command(build).succeeded();
    let mut program = Command::new(folder.join("target/debug/aborting"));
    program.env("RUST_BACKTRACE", "0");
    let ended = run_command(program);
    assert!(ended.status.code().is_none(), "ends with a signal: {ended:#?}");
    let reports = ended.reports();
    assert_eq!(reports.len(), 1, "{ended:#?}");
    assert!(reports[0].contains("panic in kernel \"fatal\""), "{ended:#?}");
    // Where the row is cut depends on how the threads share the launch.
    let columns: Vec<u32> = reports[0].split("[2, ").skip(1).map(|text| text[..1].parse().unwrap()).collect();
    assert!(columns.first() <= Some(&3) && columns.last() >= Some(&3), "{ended:#?}");
    let position = |text: &str| ended.stderr.find(text).unwrap_or_else(|| panic!("{text}: {ended:#?}"));
    assert!(position("oxisycl:") < position("as it must"), "{ended:#?}");
    // Over groups, the work-item is exact.
    let reported = |way: &str| {
        let mut program = Command::new(folder.join("target/debug/aborting"));
        program.env("RUST_BACKTRACE", "0").arg(way);
        let ended = run_command(program);
        assert!(ended.status.code().is_none(), "{way} ends with a signal: {ended:#?}");
        ended
    };
    for (way, item) in [("groups", "[2, 5]"), ("barrier", "[3, 4]")] {
        let ended = reported(way);
        let reports = ended.reports();
        let expected = format!("\"fatal\", work-item {item}");
        assert!(matches!(&reports[..], [report] if report.contains(&expected)), "{way}: {reports:?}");
    }
    // The message comes before any stack is unwound, which would end the process.
    let ended = reported("divergent");
    assert!(ended.stderr.contains("all work-items of a group come to the same barriers"), "{ended:#?}");
    assert!(ended.stderr.contains("main.rs:") && ended.stderr.contains("\"fatal\""), "{ended:#?}");
}
