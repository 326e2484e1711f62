//! Holds what the README says of a GPU's speed against the newest results that are kept.

use std::fs;

use serde_json::Value as Json;

use crate::workspace::{Workspace, read};

/// The results of the GPU benchmark with the latest date in their name.
fn newest(workspace: &Workspace) -> Vec<Json> {
    let folder = workspace.root.join("benches/results");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let is_wanted = |name: &str| name.starts_with("gpu-") && name.ends_with(".json");
    let kept = files.filter(|path| path.file_name().is_some_and(|name| is_wanted(&name.to_string_lossy())));
    let newest = kept.max().expect("results of the GPU benchmark are kept");
    serde_json::from_str(&read(&newest).unwrap()).unwrap()
}

/// What the README has to say.
fn sentences(results: &[Json]) -> String {
    let verdicts = |wanted: &str| results.iter().filter(|result| result["verdict"] == wanted).count();
    let ratios = |name: &str| -> Vec<f64> {
        let chosen = results.iter().filter(|result| result["name"].as_str().is_some_and(|own| own.starts_with(name)));
        chosen.map(|result| result["ratio"].as_f64().expect("a ratio")).collect()
    };
    let mut bars = format!("{} of {} bars hold", verdicts("holds"), results.len());
    for verdict in ["within noise", "MISSED"] {
        match verdicts(verdict) {
            0 => {}
            n => bars += &format!(", {n} {verdict}"),
        }
    }
    let streams = ratios("gpu.stream.");
    let (least, greatest) =
        streams.iter().fold((f64::MAX, 0.0_f64), |(least, greatest), &ratio| (least.min(ratio), greatest.max(ratio)));
    format!(
        "In the last one of the GPU {bars}. Memory streams reach {least:.3} to {greatest:.3} of CUDA C++, n-body {:.3}, and a launch takes \
         {:.2} times as long as a bare one.",
        ratios("gpu.nbody")[0],
        ratios("gpu.launch")[0],
    )
}

#[test]
fn the_readme_quotes_the_newest_results_of_the_gpu_benchmark() {
    let workspace = Workspace::load().unwrap();
    let readme = read(&workspace.root.join("README.md")).unwrap();
    let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = sentences(&newest(&workspace));
    assert!(readme.contains(&expected), "the README must say: {expected}");
}

#[test]
fn bars_that_do_not_hold_are_told() {
    let result =
        |name: &str, ratio: f64, verdict: &str| serde_json::json!({"name": name, "ratio": ratio, "verdict": verdict});
    let results = [
        result("gpu.stream.copy", 1.0904, "holds"),
        result("gpu.stream.triad", 0.9891, "within noise"),
        result("gpu.nbody", 0.9, "MISSED"),
        result("gpu.launch", 1.1849, "holds"),
        result("gpu.launch.out_of_order", 2.0, "holds"),
    ];
    assert_eq!(
        sentences(&results),
        "In the last one of the GPU 3 of 5 bars hold, 1 within noise, 1 MISSED. Memory streams reach 0.989 to 1.090 of CUDA C++, n-body 0.900, \
         and a launch takes 1.18 times as long as a bare one."
    );
}
