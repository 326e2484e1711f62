//! Holds what the README says of a GPU's speed against the newest results that are kept of each card, in files named `gpu-DAY-CARD.json`.
//! Compares what the README and the book say of OpenCL with the newest results, in files named `opencl-DAY.md`. Compares what they say
//! beside plain code of the host device with all of them. What they say of vector code is compared with files named `host-KIND-DAY.md`.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value as Json;

use crate::workspace::{Workspace, read};

/// The latest results of the GPU benchmark on each card, with the card's name: `gpu-2026-11-24-h100.json` and its like.
fn newest(workspace: &Workspace) -> Vec<(String, Vec<Json>)> {
    let folder = workspace.root.join("benches/results");
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut latest: BTreeMap<String, String> = BTreeMap::new();
    for (day, card) in names.filter_map(|name| day_and_card(&name)) {
        let of_card = latest.entry(card).or_default();
        *of_card = day.max(std::mem::take(of_card));
    }
    assert!(!latest.is_empty(), "results of the GPU benchmark are kept");
    let read_all = |(card, day): (&String, &String)| {
        let text = read(&folder.join(format!("gpu-{day}-{card}.json"))).unwrap();
        (card.to_uppercase(), serde_json::from_str(&text).unwrap())
    };
    latest.iter().map(read_all).collect()
}

/// What the name of a file with results says of them. Earlier ones name no card.
fn day_and_card(name: &str) -> Option<(String, String)> {
    const DAY: usize = "2026-11-24".len();
    let (day, card) = name.strip_prefix("gpu-")?.strip_suffix(".json")?.split_at_checked(DAY)?;
    Some((day.to_owned(), card.strip_prefix('-')?.to_owned()))
}

/// What the README has to say of a run on a card.
fn sentences(card: &str, results: &[Json]) -> String {
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
        "On an {card} {bars}. There memory streams reach {least:.3} to {greatest:.3} of CUDA C++, n-body {:.3}, and a launch takes {:.2} times as \
         long as a bare one.",
        ratios("gpu.nbody")[0],
        ratios("gpu.launch")[0],
    )
}

/// How many times as fast as the host device a benchmark is in the first table of a page of results. The column `beside` has the other's value. The
/// host device has plain code there: the benchmark is compiled for SPIR-V alone.
fn over_the_host(page: &str, name: &str) -> Option<f64> {
    let row = page.lines().find(|line| line.starts_with(&format!("{name} ")))?;
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let beside = cells.iter().find_map(|cell| cell.strip_suffix(" host device"))?;
    let number = |cell: &str| cell.split(' ').next()?.parse::<f64>().ok();
    Some(number(cells[1])? / number(beside)?)
}

/// The least and the greatest ratio of the kernels that compute much on little data, on all machines.
fn compute_over_the_host(pages: &[String]) -> String {
    let names = ["opencl.nbody", "opencl.mandelbrot"];
    let ratios = pages.iter().flat_map(|page| names.map(|name| over_the_host(page, name).expect("a row of each")));
    let (least, greatest) =
        ratios.fold((f64::MAX, 0.0_f64), |(least, greatest), ratio| (least.min(ratio), greatest.max(ratio)));
    format!("{least:.1} to {greatest:.1} times as fast")
}

/// The rows of a page of results that have a ratio: name, peer, and ratio.
fn rows(page: &str) -> impl Iterator<Item = (&str, &str, f64)> {
    page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let &[name, _, peer, ratio, ..] = cells.as_slice() else { return None };
        Some((name, peer, ratio.split(' ').next()?.parse().ok()?))
    })
}

/// The least and the greatest ratio of vector code to OpenCL C, of the kernels that compute much on little data, on all machines.
fn vector_code_over_opencl_c(pages: &[String]) -> String {
    let chosen = pages.iter().flat_map(|page| rows(page)).filter(|(name, peer, _)| {
        ["host.nbody", "host.mandelbrot"].contains(name) && peer.split(' ').nth(1) == Some("OpenCL")
    });
    let (least, greatest) =
        chosen.fold((f64::MAX, 0.0_f64), |(least, greatest), (_, _, ratio)| (least.min(ratio), greatest.max(ratio)));
    format!("{least:.2} to {greatest:.2} of OpenCL C")
}

/// What the README has to say of vector code beside plain code.
fn vector_code_sentence(page: &str) -> String {
    let ratios: Vec<f64> =
        rows(page).filter(|(_, peer, _)| peer.ends_with("plain entry")).map(|(_, _, ratio)| ratio).collect();
    let (least, greatest) =
        ratios.iter().fold((f64::MAX, 0.0_f64), |(least, greatest), &ratio| (least.min(ratio), greatest.max(ratio)));
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    format!(
        "In the {} cases of the benchmark `host` that code is {least:.2} to {greatest:.2} times as fast as plain code, {mean:.2} times in the \
         geometric mean.",
        ratios.len()
    )
}

/// The kept pages of results whose names begin so, sorted by name.
fn pages_of(workspace: &Workspace, beginning: &str) -> Vec<String> {
    let beginning = format!("benches/results/{beginning}");
    let mut pages = workspace.files(&["md"]).unwrap();
    pages.retain(|file| file.path.starts_with(&beginning));
    assert!(!pages.is_empty(), "pages {beginning}* are kept");
    pages.into_iter().map(|file| file.text).collect()
}

/// The text of a page, with a space between words.
fn one_line(workspace: &Workspace, page: &str) -> String {
    workspace.read(page).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_pages_quote_the_ranges_of_opencl_and_of_vector_code() {
    let workspace = Workspace::load().unwrap();
    let opencl = compute_over_the_host(&pages_of(&workspace, "opencl-"));
    let vector_code = vector_code_over_opencl_c(&pages_of(&workspace, "host-"));
    for page in ["README.md", "book/src/quickstart.md", "book/src/from-cpp-sycl.md", "book/src/from-rayon.md"] {
        let text = one_line(&workspace, page);
        for expected in [&opencl, &vector_code] {
            assert!(text.contains(expected), "{page} must say: {expected}");
        }
    }
}

#[test]
fn the_readme_quotes_the_newest_results_of_default_vector_code() {
    let workspace = Workspace::load().unwrap();
    let pages = pages_of(&workspace, "host-default-level-");
    let expected = vector_code_sentence(pages.last().expect("a page"));
    assert!(one_line(&workspace, "README.md").contains(&expected), "the README must say: {expected}");
}

#[test]
fn vector_code_is_compared_with_the_peer_of_each_row() {
    let page = "case | ours (min..max) | peer | ours / peer | A/A\n\
                host.nbody | 40 (1..2) runs/s | 10 plain entry | 4.00 (3.9..4.1) | 1.00\n\
                host.nbody | 40 (1..2) M/s | 50 OpenCL C, groups of 64 x 1 | 0.80 (0.7..0.9) | 1.00\n\
                host.mandelbrot | 40 (1..2) M/s | 30 OpenCL C, the driver's groups | 1.33 (1.2..1.4) | 1.00\n\
                host.mandelbrot.hand | 40 (1..2) M/s | 4 AVX2 by hand | 10.0 (9..11) | 1.00\n\
                plain.stencil | 10 (1..2) runs/s | 10 plain entry | 1.00 (0.9..1.1) | 1.00\n\
                host.blur | 10 (1..2) M/s | 100 OpenCL C, groups of 64 x 1 | 0.10 (0.1..0.1) | 1.00\n";
    let other = "host.nbody | 1 (1..2) M/s | 2 OpenCL C, groups of 64 x 1 | 0.50 (0.5..0.5) | 1.00 | 1 / 2 ms | MISSED";
    assert_eq!(vector_code_over_opencl_c(&[page.to_owned(), other.to_owned()]), "0.50 to 1.33 of OpenCL C");
    assert_eq!(
        vector_code_sentence(page),
        "In the 2 cases of the benchmark `host` that code is 1.00 to 4.00 times as fast as plain code, 2.00 times in the geometric mean."
    );
}

/// What the README has to say of a page with results of the OpenCL benchmark.
fn opencl_sentence(page: &str) -> String {
    let rows = page.lines().filter(|line| line.starts_with("opencl.") || line.starts_with("memory."));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split('|').map(str::trim).collect()).collect();
    let verdicts = |wanted: &str| rows.iter().filter(|row| row.last() == Some(&wanted)).count();
    let [holds, noise, missed] = ["holds", "within noise", "MISSED"].map(verdicts);
    let mut bars = format!("{holds} of {} bars hold", holds + noise + missed);
    for (count, verdict) in [(noise, "within noise"), (missed, "MISSED")] {
        if count > 0 {
            bars += &format!(", {count} {verdict}");
        }
    }
    let ratios = |name: &str| -> Vec<f64> {
        let chosen = rows.iter().filter(|row| row[0].starts_with(name));
        chosen.map(|row| row[3].split(' ').next().expect("a ratio").parse().expect("a number")).collect()
    };
    let streams = ratios("opencl.stream.");
    let (least, greatest) =
        streams.iter().fold((f64::MAX, 0.0_f64), |(least, greatest), &ratio| (least.min(ratio), greatest.max(ratio)));
    format!(
        "On a CPU through OpenCL {bars}. There memory streams reach {least:.2} to {greatest:.2} of the host device, n-body {:.2} and Mandelbrot \
         {:.2} of OpenCL C, and a launch takes {:.2} times as long as a bare one.",
        ratios("opencl.nbody")[0],
        ratios("opencl.mandelbrot")[0],
        ratios("opencl.launch")[0],
    )
}

#[test]
fn the_readme_quotes_the_newest_results_of_the_opencl_benchmark() {
    let workspace = Workspace::load().unwrap();
    let pages = pages_of(&workspace, "opencl-");
    let expected = opencl_sentence(pages.last().expect("a page"));
    assert!(one_line(&workspace, "README.md").contains(&expected), "the README must say: {expected}");
}

#[test]
fn the_first_table_of_a_page_has_the_ratio_to_the_host_device() {
    let page = |nbody: &str, mandelbrot: &str| {
        format!(
            "case | ours | peer | beside\nopencl.nbody | {nbody} (1..2) G/s | 5 OpenCL C | 0.50 (0.4..0.5) host device\n\
             opencl.mandelbrot | {mandelbrot} (1..2) G/s | 5 OpenCL C | 0.50 (0.4..0.5) host device\n"
        )
    };
    let first = page("4.00", "2.50") + &page("99.0", "99.0");
    assert_eq!(compute_over_the_host(&[first, page("4.50", "5.10")]), "5.0 to 10.2 times as fast");
    assert_eq!(over_the_host("opencl.nbody | 4.00 G/s | 5 OpenCL C | - |", "opencl.nbody"), None);
}

#[test]
fn the_readme_quotes_the_newest_results_of_the_gpu_benchmark() {
    let workspace = Workspace::load().unwrap();
    let readme = one_line(&workspace, "README.md");
    for (card, results) in newest(&workspace) {
        let expected = sentences(&card, &results);
        assert!(readme.contains(&expected), "the README must say: {expected}");
    }
}

#[test]
fn names_of_results_have_the_day_and_the_card() {
    let named = |name: &str| day_and_card(name).map(|(day, card)| format!("{day} {card}"));
    assert_eq!(named("gpu-2026-11-24-h100.json").as_deref(), Some("2026-11-24 h100"));
    for other in ["gpu-2026-11-24-h100.md", "gpu-2026-11-23.json", "gpu-1.json", "opencl-2026-11-24-h100.json"] {
        assert_eq!(named(other), None, "{other}");
    }
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
        sentences("H100", &results),
        "On an H100 3 of 5 bars hold, 1 within noise, 1 MISSED. There memory streams reach 0.989 to 1.090 of CUDA C++, n-body 0.900, and a launch \
         takes 1.18 times as long as a bare one."
    );
}
