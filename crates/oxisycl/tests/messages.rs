//! What the first mistakes say at run time: the texts of the book's page on errors, which includes the files of `tests/messages`.
//!
//! `BLESS=1` writes the files anew. Places of this file are `main.rs:12:34` in them, and what differs between machines is left out.

#[path = "support/child.rs"]
mod child_process;
mod support;

use std::path::Path;

use oxisycl::prelude::*;

use child_process::{role, run};
use support::{eventually, simulated, watchdog};

/// Compares an error with its file.
#[track_caller]
fn says(name: &str, error: &Error) {
    is_kept(name, &format!("{error:?}"));
}

/// Compares a text with its file.
#[track_caller]
fn is_kept(name: &str, text: &str) {
    let text = normalised(text);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages").join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{text}\n")).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected.trim_end(), "{}", path.display());
}

/// The text with places of this file as `main.rs:12:34`, and numbers of buffers as 1.
fn normalised(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find(file!()) {
        shown.push_str(&rest[..begin]);
        shown.push_str("main.rs:12:34");
        rest = &rest[begin + file!().len()..];
        for _ in ["line", "column"] {
            rest = rest.strip_prefix(':').unwrap_or(rest).trim_start_matches(|c: char| c.is_ascii_digit());
        }
    }
    shown.push_str(rest);
    let mut words: Vec<String> = shown.split(' ').map(str::to_owned).collect();
    for i in 1..words.len() {
        if words[i - 1].ends_with("buffer") && words[i].chars().all(|c| c.is_ascii_digit()) {
            "1".clone_into(&mut words[i]);
        }
    }
    words.join(" ")
}

fn queue() -> Queue {
    Queue::new(&simulated(1).0[0]).unwrap()
}

#[test]
fn an_index_beyond_the_end() {
    let _watchdog = watchdog();
    let (weights, result) =
        (Buffer::from_vec(vec![1.0f32; 8]).unwrap().named("weights"), Buffer::from_vec(vec![0.0f32; 16]).unwrap());
    let event = queue().submit(|cg| {
        let (weights, result) = (cg.access(&weights, Read), cg.access(&result, Write));
        cg.parallel_for(16, move |item| result.set(item, weights.view(item)[item.index()]))
    });
    says("index", &event.unwrap().wait().unwrap_err());
}

#[test]
fn a_range_that_is_larger_than_the_buffer() {
    let _watchdog = watchdog();
    let result = Buffer::from_vec(vec![0.0f32; 8]).unwrap().named("result");
    let event = queue().submit(|cg| {
        let result = cg.access(&result, Write);
        cg.parallel_for(16, move |item| result.set(item, 1.0))
    });
    says("range", &event.unwrap().wait().unwrap_err());
}

#[test]
fn two_accessors_of_the_same_data() {
    let _watchdog = watchdog();
    let data = Buffer::from_vec(vec![0.0f32; 8]).unwrap().named("data");
    let refused = queue().submit(|cg| {
        let (old, new) = (cg.access(&data, Read), cg.access(&data, Write));
        cg.parallel_for(8, move |item| new.set(item, old.get(item)))
    });
    says("overlap", &refused.unwrap_err());
}

#[test]
fn data_that_a_failed_kernel_was_to_write() {
    let _watchdog = watchdog();
    let data = Buffer::from_vec(vec![0u32; 8]).unwrap().named("data");
    let event = queue().submit(|cg| {
        let data = cg.access(&data, ReadWrite);
        cg.parallel_for(8, move |item| data.update(item, |x| 100 / x))
    });
    says("panic", &event.unwrap().wait().unwrap_err());
    says("lost", &data.to_vec().unwrap_err());
}

#[test]
fn a_wait_that_could_never_end() {
    let _watchdog = watchdog();
    let queue = queue();
    let data = Buffer::from_vec(vec![0u32; 8]).unwrap().named("data");
    let held = data.host_access(Read).unwrap();
    let event = queue.submit(|cg| {
        let data = cg.access(&data, Write);
        cg.parallel_for(8, move |item| data.set(item, 1))
    });
    says("never", &event.unwrap().wait().unwrap_err());
    drop(held);
}

#[test]
fn a_length_that_is_not_the_range() {
    says("length", &Buffer::from_vec_nd(vec![0u32; 8], [3, 3]).unwrap_err());
}

/// What this program does when one of its tests starts it again.
#[test]
fn child() {
    match role().as_deref() {
        None => {}
        Some("asks_for_a_device") => println!("error={:?}", Device::default().unwrap_err()),
        Some("panics_unseen") => {
            let data = Buffer::from_vec(vec![0u32; 8]).unwrap();
            let event = queue().submit(|cg| {
                let data = cg.access(&data, ReadWrite);
                cg.parallel_for(8, move |item| data.update(item, |x| 100 / x))
            });
            let event = event.unwrap();
            eventually("it ends", || event.is_complete());
        }
        Some(other) => panic!("no role {other}"),
    }
}

#[test]
fn a_selector_that_hides_all_devices() {
    let ended = run("asks_for_a_device", &[("OXISYCL_DEVICE_SELECTOR", "cuda:99")]).succeeded();
    let error = ended.value("error");
    // Machines have different devices, and those are told.
    let (before, list) = error.split_once("which are ").unwrap_or_else(|| panic!("{error}"));
    let (list, after) = list.split_once("; ").unwrap_or_else(|| panic!("{error}"));
    assert!(list.contains("host:0 \""), "{error}");
    is_kept("hidden", &format!("{before}which are host:0 \"the processor\"; {after}"));
}

#[test]
fn an_unknown_variable() {
    let ended = run("asks_for_a_device", &[("OXISYCL_DEVICE_SELECTR", "cuda:99"), ("OXISYCL_DEVICE_SELECTOR", "!*")]);
    is_kept("unknown", ended.reports()[0]);
}

#[test]
fn a_panic_that_nothing_has_asked_for_when_the_program_ends() {
    let ended = run("panics_unseen", &[]).panicked();
    let reports = ended.reports();
    assert_eq!(reports.len(), 1, "{ended:#?}");
    is_kept("unseen", reports[0]);
}
