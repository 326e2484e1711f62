//! Environment variables: what wrong values are told, and what right ones do.

#[path = "support/child.rs"]
mod child_process;
#[path = "support/json.rs"]
mod json;
mod support;

use std::path::PathBuf;
use std::time::Duration;

use oxisycl::BackendKind;
use oxisycl::group::Fixed1;
use oxisycl::images::R8Unorm;
use oxisycl::observe;
use oxisycl::operator::Sum;
use oxisycl::prelude::*;
use oxisycl::selector::cpu_selector;
use oxisycl::vector::Float4;

use child_process::{Ended, role, run};
use json::Json;

/// What this program does when one of its tests starts it again.
#[test]
fn child() {
    match role().as_deref() {
        None => {}
        Some("lists_devices") => match Device::all() {
            Ok(devices) => {
                let names: Vec<String> = devices.iter().map(|d| format!("{}:{}", d.backend(), d.name())).collect();
                println!("devices={}", names.join("|"));
            }
            Err(error) => {
                println!("code={:?}", error.code());
                println!("message={}", format!("{error}").replace('\n', "\\n"));
                // The same at every later call, also of others.
                assert_eq!(Queue::default().unwrap_err().to_string(), error.to_string());
                assert_eq!(Buffer::from_vec(vec![1]).unwrap_err().to_string(), error.to_string());
            }
        },
        Some("names_devices") => {
            let platforms = Platform::all().unwrap();
            let seen: Vec<Device> = platforms.iter().flat_map(Platform::devices).collect();
            let hidden = platforms.iter().flat_map(Platform::hidden_devices);
            println!("seen={}", seen.iter().map(|device| device.selector().unwrap()).collect::<Vec<_>>().join(" "));
            println!(
                "hidden={}",
                hidden.map(|(name, info)| format!("{name}={}", info.name)).collect::<Vec<_>>().join("|")
            );
        }
        Some("asks_for_a_device") => println!("error={}", Device::default().unwrap_err()),
        Some("makes_queues") => {
            let batching = |queue: Queue| -> String {
                let text = format!("{queue:?}");
                let (_, rest) = text.split_once("batching: ").unwrap();
                rest.split(',').next().unwrap().to_owned()
            };
            let with = |is_wanted| batching(Queue::builder().batching(is_wanted).build().unwrap());
            println!("batching={} {} {}", batching(Queue::default().unwrap()), with(true), with(false));
        }
        Some("waits_deep") => {
            let ends = Buffer::from_vec(vec![0u32; 8]).unwrap();
            let submitted = Queue::default().unwrap().submit(|cg| {
                let ends = cg.access(&ends, Write);
                cg.parallel_for_nd_range((8, Fixed1::<4>), (), move |mut item, ()| {
                    // More than a stack has by default.
                    let mut own = std::hint::black_box([item.local_linear_id() as u32; 75_000]);
                    item.group().barrier();
                    own[74_999] += 1;
                    ends.set(item.global(), std::hint::black_box(own)[74_999]);
                })
            });
            submitted.unwrap().wait().unwrap();
            println!("ends={:?}", ends.to_vec().unwrap());
        }
        Some("works") => println!("sum={:?}", work().map_err(|error| format!("{error:?}"))),
        Some("works_on_simulated") => {
            let devices = Device::all().unwrap();
            let queue = Queue::new(devices.iter().find(|device| device.has(Aspect::Emulated)).unwrap()).unwrap();
            println!("first={:?}", queue.single_task(|_| {}).unwrap().wait().map_err(|error| format!("{error:?}")));
            println!("second={:?}", queue.single_task(|_| {}).unwrap().wait().map_err(|error| format!("{error:?}")));
        }
        Some("sums") => println!("sums={:x?}", sums()),
        Some("traces_by_call") => trace_by_call(),
        Some("is_killed") => {
            println!("sum={:?}", work().map_err(|error| format!("{error:?}")));
            let killed = std::process::Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
            unreachable!("{killed:?}");
        }
        Some(other) => panic!("no role {other}"),
    }
}

/// Kernels, copies, a fill and a host task, named and with dependencies.
fn work() -> oxisycl::Result<i32> {
    let queue = Queue::builder().device(&Device::select(cpu_selector)?).profiling().build()?;
    let (buffer, other) = (Buffer::from_vec(vec![1; 1000])?, Buffer::<i32, 1>::uninit(1000)?);
    // Pending while everything else is submitted, so that the graph has edges.
    let slow = queue.submit(|cg| cg.host_task(|_| std::thread::sleep(Duration::from_millis(20))))?;
    queue.submit(|cg| {
        cg.name("say \"hi\" \\ there");
        cg.depends_on(&slow);
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(1000, move |item| data.update(item, |x| x + 1))
    })?;
    queue.fill(&other, 5)?;
    queue.copy(&buffer, &other)?;
    queue.submit(|cg| {
        let mut data = cg.access_host(&other, ReadWrite);
        cg.host_task(move |scope| data.slice_mut(scope)[0] += 1)
    })?;
    queue.wait()?;
    Ok(other.to_vec()?.iter().sum())
}

#[track_caller]
fn refused(variables: &[(&str, &str)], parts: &[&str]) {
    let ended = run("lists_devices", variables).succeeded();
    assert_eq!(ended.value("code"), "Platform", "{ended:#?}");
    for part in parts {
        assert!(ended.value("message").contains(part), "{part:?} is missing: {ended:#?}");
    }
}

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("settings-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_wrong_device_selector_is_quoted_with_the_grammar() {
    for value in ["cudda:gpu", "host", "host:cpu;", "host:qpu", "host:0.0.0.0", "!", "", "hip:*;;"] {
        let quoted = format!("{value:?}");
        refused(
            &[("OXISYCL_DEVICE_SELECTOR", value)],
            &["OXISYCL_DEVICE_SELECTOR", &quoted, "term;term", "backend:device", "root.sub"],
        );
    }
    refused(&[("OXISYCL_DEVICE_SELECTOR", "cudda:gpu")], &["expected backend", "cuda", "host", "found \"cudda\""]);
}

#[test]
fn the_device_selector_decides_which_devices_there_are() {
    let devices = |value: &str| {
        let variables = [("OXISYCL_SIMULATED", "2"), ("OXISYCL_DEVICE_SELECTOR", value)];
        run("lists_devices", &variables).succeeded().value("devices").to_owned()
    };
    assert_eq!(devices("simulated:1"), "simulated:simulated device 1");
    assert_eq!(devices("*:*").matches("simulated:").count(), 2);
    assert_eq!(devices("*:*;!simulated:0").matches("simulated:").count(), 1);
    assert!(devices("host:*").starts_with("host:"));
    assert_eq!(devices("cuda:*"), "");
}

/// The names of the devices that a program sees, and of those hidden from it, with what these say of themselves.
fn names(selector: Option<&str>) -> (Vec<String>, Vec<(String, String)>) {
    let mut variables = vec![("OXISYCL_SIMULATED", "3")];
    variables.extend(selector.map(|value| ("OXISYCL_DEVICE_SELECTOR", value)));
    let ended = run("names_devices", &variables).succeeded();
    let seen = ended.value("seen").split_whitespace().map(str::to_owned).collect();
    let hidden = ended.value("hidden").split('|').filter_map(|device| device.split_once('='));
    (seen, hidden.map(|(name, info)| (name.to_owned(), info.to_owned())).collect())
}

#[test]
fn each_name_of_a_device_selects_it_and_hides_the_others() {
    let (all, hidden) = names(None);
    assert!(all.starts_with(&["host:0".to_owned()]) && all.ends_with(&["simulated:2".to_owned()]), "{all:?}");
    // There may be devices of drivers between these.
    assert!(all.len() >= 4 && hidden.is_empty(), "{all:?}, {hidden:?}");
    for name in &all {
        let (seen, hidden) = names(Some(name));
        assert_eq!(seen, std::slice::from_ref(name));
        let expected: Vec<&String> = all.iter().filter(|other| *other != name).collect();
        assert_eq!(hidden.iter().map(|(name, _)| name).collect::<Vec<_>>(), expected);
        for (name, info) in &hidden {
            let Some(index) = name.strip_prefix("simulated:") else { continue };
            assert_eq!(*info, format!("simulated device {index}"));
        }
    }
    let (seen, hidden) = names(Some("*:*;!simulated:1"));
    assert!(seen.iter().eq(all.iter().filter(|name| *name != "simulated:1")), "{seen:?}");
    assert_eq!(hidden, [("simulated:1".to_owned(), "simulated device 1".to_owned())]);
    // A device of which only parts can be seen is hidden itself.
    let (parts, hidden) = names(Some("host:0.*"));
    assert!(parts.iter().enumerate().all(|(i, name)| *name == format!("host:0.{i}")), "{parts:?}");
    assert!(hidden.iter().any(|(name, _)| name == "host:0") && hidden.len() == all.len(), "{hidden:?}");
    for part in &parts {
        assert_eq!(names(Some(part)).0, std::slice::from_ref(part));
    }
}

#[test]
fn wrong_numbers_name_the_variable_the_value_and_what_it_may_be() {
    for value in ["0", "-1", "many", "65", "", "2x", "99999999999999999999"] {
        refused(&[("OXISYCL_SIMULATED", value)], &[&format!("OXISYCL_SIMULATED={value:?}"), "from 1 to 64"]);
    }
    for (variable, value, expected) in [
        ("OXISYCL_SIMULATED_LATENCY_US", "soon", "microseconds"),
        ("OXISYCL_SIMULATED_MEMORY", "1T", "followed by k, M or G"),
        ("OXISYCL_SIMULATED_MEMORY", "99999999999G", "followed by k, M or G"),
        ("OXISYCL_SIMULATED_FAULTS", "launch", "operation:count"),
        ("OXISYCL_SIMULATED_FAULTS", "launch:0", "count from 1"),
        ("OXISYCL_SIMULATED_FAULTS", "copy:1@7", "device below 2"),
    ] {
        let variables = [("OXISYCL_SIMULATED", "2"), (variable, value)];
        refused(&variables, &[&format!("{variable}={value:?}"), expected]);
    }
    for value in ["", "v2", "x86-64-v3", "Plain"] {
        refused(
            &[("OXISYCL_HOST_CODE", value)],
            &[&format!("OXISYCL_HOST_CODE={value:?}: expected auto, plain, v3 or v4")],
        );
    }
    for value in ["0", "-1", "all", "", "1.5", "1025", "99999999999999999999"] {
        let expected = format!("OXISYCL_HOST_THREADS={value:?}: expected a number of threads from 1 to 1024");
        refused(&[("OXISYCL_HOST_THREADS", value)], &[&expected]);
    }
}

/// The bits of 50 sums of floats, whose seed the parent chose. Among the values are zeros, infinities, and what is no number.
fn sums() -> Vec<u64> {
    let mut state: u64 = std::env::var("OXISYCL_TEST_SEED").unwrap().parse().unwrap();
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let queue = Queue::default().unwrap();
    let mut sums = Vec::new();
    for number in 0..50 {
        let size = 1 + random() as usize % [100, 5_000, 70_000][number % 3];
        let mut values: Vec<f64> = (0..size).map(|_| random() as f64 * f64::from(random() as u32) - 2.0e18).collect();
        let special = [-0.0, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE / 8.0];
        match number % 10 {
            kind @ 0..4 => values[random() as usize % size] = special[kind],
            4 => values.fill(-0.0),
            _ => {}
        }
        let singles: Vec<f32> = values.iter().map(|value| *value as f32).collect();
        let of_doubles = queue.reduce(&Buffer::from_vec(values).unwrap(), Sum).unwrap();
        let of_singles = queue.reduce(&Buffer::from_vec(singles).unwrap(), Sum).unwrap();
        sums.extend([of_doubles.get().unwrap().to_bits(), u64::from(of_singles.get().unwrap().to_bits())]);
    }
    sums
}

#[test]
fn sums_of_floats_have_the_same_bits_with_any_number_of_threads() {
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos().to_string();
    println!("seed {seed}");
    let of_threads = |threads| {
        let ended = run("sums", &[("OXISYCL_HOST_THREADS", threads), ("OXISYCL_TEST_SEED", &seed)]).succeeded();
        ended.value("sums").to_owned()
    };
    let of_one = of_threads("1");
    assert_eq!(of_one.split(',').count(), 100, "{of_one}");
    assert_eq!(of_threads("2"), of_one);
    assert_eq!(of_threads("7"), of_one);
}

#[test]
fn a_cache_that_cannot_be_used_is_an_error_at_once() {
    for (variable, value, expected) in [
        ("OXISYCL_CACHE_SIZE", "much", "expected bytes, or a number and k, M or G"),
        ("OXISYCL_CACHE_DIR", "here", "expected an absolute path"),
        ("OXISYCL_CACHE_DIR", "/dev/null", "cannot be used"),
    ] {
        refused(&[(variable, value)], &[&format!("{variable}={value:?}"), expected]);
    }
    let folder = folder().join("cache");
    let ended =
        run("works", &[("OXISYCL_CACHE_DIR", folder.to_str().unwrap()), ("OXISYCL_CACHE_SIZE", "1M")]).succeeded();
    assert_eq!(ended.value("sum"), "Ok(2001)");
    assert!(folder.is_dir());
}

#[test]
fn the_size_of_print_buffers_is_a_number_of_bytes() {
    for value in ["", "lots", "2G", "-1"] {
        let expected = format!("OXISYCL_PRINT_BUFFER={value:?}: expected bytes up to 1G");
        refused(&[("OXISYCL_PRINT_BUFFER", value)], &[&expected]);
    }
    assert_eq!(run("works", &[("OXISYCL_PRINT_BUFFER", "64k")]).succeeded().value("sum"), "Ok(2001)");
}

#[test]
fn batching_is_off_on_or_always_and_a_queue_can_only_turn_it_off() {
    for value in ["", "2", "off", "ALWAYS"] {
        let expected = format!("OXISYCL_BATCHING={value:?}: expected 0, 1 or always");
        refused(&[("OXISYCL_BATCHING", value)], &[&expected]);
    }
    let seen = |variables: &[(&str, &str)]| run("makes_queues", variables).succeeded().value("batching").to_owned();
    assert_eq!(seen(&[]), "On On Off");
    for (value, expected) in [("0", "Off Off Off"), ("1", "On On Off"), ("always", "Always Always Off")] {
        assert_eq!(seen(&[("OXISYCL_BATCHING", value)]), expected, "{value}");
    }
}

#[test]
fn the_stack_for_calls_on_gpus_is_a_number_of_bytes_that_they_can_have() {
    for value in ["", "deep", "4k", "1M", "-1"] {
        let expected = format!("OXISYCL_CALL_STACK={value:?}: expected bytes from 8k to 512k");
        refused(&[("OXISYCL_CALL_STACK", value)], &[&expected]);
    }
    assert_eq!(run("works", &[("OXISYCL_CALL_STACK", "64k")]).succeeded().value("sum"), "Ok(2001)");
}

#[test]
fn any_number_of_host_threads_works() {
    for threads in ["1", "2", "3", "33"] {
        let ended = run("works", &[("OXISYCL_HOST_THREADS", threads)]).succeeded();
        assert_eq!(ended.value("sum"), "Ok(2001)", "{threads}: {ended:#?}");
    }
}

#[test]
fn faults_of_simulated_devices_can_be_set_from_outside() {
    let variables = [("OXISYCL_SIMULATED", "1"), ("OXISYCL_SIMULATED_FAULTS", "launch:1")];
    let ended = run("works_on_simulated", &variables).succeeded();
    assert!(ended.value("first").contains("injected fault in launch number 1"), "{ended:#?}");
    assert_eq!(ended.value("second"), "Ok(())");
}

#[test]
fn files_that_cannot_be_written_are_errors_at_once() {
    let missing = folder().join("no such folder").join("file.json");
    let missing = missing.to_str().unwrap();
    for variable in ["OXISYCL_TRACE", "OXISYCL_GRAPH"] {
        refused(&[(variable, missing)], &[variable, &format!("cannot write \"{missing}\"")]);
        refused(&[(variable, "")], &[variable, "cannot write \"\""]);
        refused(&[(variable, "/")], &[variable, "cannot write \"/\""]);
    }
    let error = observe::start_trace(missing).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
    assert!(error.to_string().contains(missing), "{error}");
}

/// The spans of a trace file, by name, with their category.
fn spans(text: &str) -> Vec<(String, String)> {
    let trace = Json::parse(text).unwrap_or_else(|error| panic!("{error} in {text}"));
    let events = trace.get("traceEvents").list();
    let mut found = Vec::new();
    for event in events {
        assert!(event.get("pid").number().is_some() && !event.get("name").text().is_empty(), "{event:?}");
        match event.get("ph").text() {
            "X" => {
                let [ts, dur, tid] = ["ts", "dur", "tid"].map(|name| event.get(name).number().unwrap());
                assert!(ts >= 0.0 && dur >= 0.0 && tid >= 1.0, "{event:?}");
                found.push((event.get("name").text().to_owned(), event.get("cat").text().to_owned()));
            }
            "M" => assert!(!event.get("args").get("name").text().is_empty(), "{event:?}"),
            other => panic!("an event of kind {other:?}"),
        }
    }
    found
}

#[track_caller]
fn assert_traced(ended: &Ended, text: &str) {
    let spans = spans(text);
    let count = |category: &str| spans.iter().filter(|(_, found)| found == category).count();
    assert_eq!(
        (count("kernel"), count("fill"), count("copy"), count("host_task")),
        (1, 1, 1, 2),
        "{spans:?} {ended:#?}"
    );
    assert!(spans.contains(&("say \"hi\" \\ there".to_owned(), "kernel".to_owned())), "{spans:?}");
}

#[test]
fn a_trace_file_is_json_with_every_command() {
    let path = folder().join("trace.json");
    let ended = run("works", &[("OXISYCL_TRACE", path.to_str().unwrap())]).succeeded();
    assert_eq!(ended.value("sum"), "Ok(2001)");
    assert_traced(&ended, &std::fs::read_to_string(path).unwrap());
}

#[test]
#[cfg(unix)]
fn a_killed_process_leaves_a_trace_of_what_has_finished() {
    use std::os::unix::process::ExitStatusExt;
    let path = folder().join("killed.json");
    let ended = run("is_killed", &[("OXISYCL_TRACE", path.to_str().unwrap())]);
    assert_eq!(ended.status.signal(), Some(9), "{ended:#?}");
    assert_eq!(ended.value("sum"), "Ok(2001)");
    assert_traced(&ended, &std::fs::read_to_string(path).unwrap());
}

fn trace_by_call() {
    let path = folder().join("by_call.json");
    observe::start_trace(&path).unwrap();
    work().unwrap();
    observe::stop_trace().unwrap();
    // Nothing more is recorded, and stopping twice is harmless.
    work().unwrap();
    observe::stop_trace().unwrap();
    println!("path={}", path.display());
    let path = folder().join("function.json");
    observe::start_trace(&path).unwrap();
    let numbers = Buffer::from_vec(vec![1u32; 4]).unwrap();
    Queue::default().unwrap().launch_call(4, doubled(numbers.update())).unwrap().wait().unwrap();
    observe::stop_trace().unwrap();
    println!("function={}", path.display());
    let path = folder().join("image.json");
    observe::start_trace(&path).unwrap();
    let (queue, levels) = (Queue::default().unwrap(), UnsampledImage::uninit(R8Unorm, [4, 6]).unwrap());
    queue.fill_image(&levels, Float4::splat(1.0)).unwrap();
    queue.parallel_for_with([4, 6], levels.update(), |item, levels| levels.update(item, |x: Float4| 0.2 * x)).unwrap();
    let bytes = queue.copy_image_to_host(&levels, vec![0u8; 24]).unwrap().wait().unwrap();
    observe::stop_trace().unwrap();
    println!("image={}", path.display());
    assert_eq!(bytes, [51; 24]);
}

#[kernel]
fn doubled(item: Item<1>, numbers: Accessor<u32, 1, ReadWrite>) {
    numbers.update(item, |n| 2 * n);
}

#[test]
fn a_trace_can_be_taken_of_a_part_of_the_program() {
    let ended = run("traces_by_call", &[]).succeeded();
    assert_traced(&ended, &std::fs::read_to_string(ended.value("path")).unwrap());
    let spans = spans(&std::fs::read_to_string(ended.value("function")).unwrap());
    assert!(spans.iter().any(|(name, category)| name.ends_with("doubled") && category == "kernel"), "{spans:?}");
    let text = std::fs::read_to_string(ended.value("image")).unwrap();
    let spans = self::spans(&text);
    assert!(spans.iter().map(|(_, category)| &category[..]).eq(["fill", "kernel", "copy"]), "{spans:?}");
    assert!(text.contains("UnsampledImageAccessor"), "{text}");
}

#[test]
fn the_graph_is_written_as_dot() {
    let path = folder().join("graph.dot");
    run("works", &[("OXISYCL_GRAPH", path.to_str().unwrap())]).succeeded();
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    assert_eq!((lines.next(), lines.next_back()), (Some("digraph oxisycl {"), Some("}")), "{text}");
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for line in lines.filter(|line| !line.contains("node [")) {
        let line = line.trim().strip_suffix(';').unwrap_or_else(|| panic!("{line}"));
        match line.split_once(" -> ") {
            Some((from, to)) => edges.push((from, to)),
            None => nodes.push(line.split_once(" [label=\"").unwrap_or_else(|| panic!("{line}"))),
        }
    }
    assert!(nodes.len() >= 6 && !edges.is_empty(), "{text}");
    let is_node = |name: &str| nodes.iter().any(|(node, _)| *node == name);
    assert!(edges.iter().all(|(from, to)| is_node(from) && is_node(to)), "{text}");
    let node = |label: &str| nodes.iter().find(|(_, text)| text.contains(label)).unwrap_or_else(|| panic!("{text}")).0;
    assert!(edges.contains(&(node("host task"), node("say \\\"hi\\\" \\\\ there"))), "{text}");
}

#[test]
fn counters_are_printed_when_asked_for() {
    let ended = run("works", &[("OXISYCL_COUNTERS", "1")]).succeeded();
    assert!(ended.stderr.contains("kernels: 1") && ended.stderr.contains("host_tasks: 2"), "{ended:#?}");
}

#[test]
fn a_selector_that_leaves_no_device_is_told_with_what_there_is() {
    // A machine may have what the second one asks for.
    let has_gpu = Device::all().unwrap().iter().any(|device| device.backend() == BackendKind::Cuda);
    for selector in ["cuda:99", "cuda:gpu"].into_iter().take(if has_gpu { 1 } else { 2 }) {
        let ended = run("asks_for_a_device", &[("OXISYCL_DEVICE_SELECTOR", selector)]);
        let error = ended.value("error");
        for part in [
            &format!("no device is visible: OXISYCL_DEVICE_SELECTOR={selector:?} fits none of the devices, which are "),
            "host:0 \"",
            "; `cargo sycl doctor` says why a device is missing",
        ] {
            assert!(error.contains(part), "{part:?} is not in {error:?}");
        }
    }
}

#[test]
fn an_unknown_variable_is_reported_once_and_ignored() {
    let ended = run("works", &[("OXISYCL_DEVICE_SELECTR", "cuda:99")]).succeeded();
    let report = "oxisycl: the environment variable OXISYCL_DEVICE_SELECTR is no setting, and is ignored: did you mean \
                  OXISYCL_DEVICE_SELECTOR?";
    assert_eq!(ended.reports(), [report], "{ended:#?}");
}

#[test]
fn work_items_that_wait_have_stacks_of_the_size_that_is_set() {
    let seen = run("waits_deep", &[("OXISYCL_ITEM_STACK", "3M")]).succeeded().value("ends").to_owned();
    assert_eq!(seen, "[1, 2, 3, 4, 1, 2, 3, 4]");
    for value in ["0", "63k", "2G", "deep"] {
        let expected = "expected bytes from 64k to 1024M, or a number and k or M (powers of 1024)";
        refused(&[("OXISYCL_ITEM_STACK", value)], &[&format!("OXISYCL_ITEM_STACK={value:?}: {expected}")]);
    }
}
