//! Names of environment variables that nothing reads: mostly misspelt settings, which would be ignored without a word.

use std::env;

/// All settings of the runtime and its backends; the book's page on settings says what each does.
const KNOWN: [&str; 21] = [
    "OXISYCL_BATCHING",
    "OXISYCL_CACHE_DIR",
    "OXISYCL_CACHE_SIZE",
    "OXISYCL_CALL_STACK",
    "OXISYCL_COMPILE_LIMIT",
    "OXISYCL_COUNTERS",
    "OXISYCL_DEVICE_SELECTOR",
    "OXISYCL_EXIT_CODE",
    "OXISYCL_GRAPH",
    "OXISYCL_HOST_CODE",
    "OXISYCL_HOST_THREADS",
    "OXISYCL_ITEM_STACK",
    "OXISYCL_LOAD",
    "OXISYCL_PRINT_BUFFER",
    "OXISYCL_SIMULATED",
    "OXISYCL_SIMULATED_FAULTS",
    "OXISYCL_SIMULATED_LATENCY_US",
    "OXISYCL_SIMULATED_MEMORY",
    "OXISYCL_SPECIALIZE",
    "OXISYCL_TARGETS",
    "OXISYCL_TRACE",
];
const PREFIX: &str = "OXISYCL_";
/// Programs may have variables of their own that begin so. Those of OxiSYCL's tests do.
const FOR_TESTS: &str = "OXISYCL_TEST_";
/// More letters than these are another name, and no slip.
const MAX_SLIPS: usize = 3;

/// Prints a line for each unknown variable whose name begins as those of settings do. Called once.
pub(crate) fn report_unknown() {
    let mut names: Vec<String> = env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    names.sort();
    for line in names.iter().filter_map(|name| report(name)) {
        eprintln!("{line}");
    }
}

fn report(name: &str) -> Option<String> {
    if !name.starts_with(PREFIX) || name.starts_with(FOR_TESTS) || KNOWN.contains(&name) {
        return None;
    }
    let (slips, nearest) = KNOWN.iter().map(|known| (strsim::damerau_levenshtein(known, name), known)).min()?;
    let hint = if slips <= MAX_SLIPS { format!(": did you mean {nearest}?") } else { String::new() };
    Some(format!("oxisycl: the environment variable {name} is no setting, and is ignored{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_settings_are_reported_with_the_right_name() {
        let reported = |rest: &str| report(&format!("{PREFIX}{rest}"));
        let misspelt = reported("DEVICE_SELECTR").expect("a report");
        assert!(misspelt.ends_with("_SELECTR is no setting, and is ignored: did you mean OXISYCL_DEVICE_SELECTOR?"));
        let other = reported("COLOUR_OF_THE_SKY").expect("a report");
        assert!(!other.contains("did you mean"), "{other}");
        for name in ["OXISYCL_TRACE", &format!("{FOR_TESTS}CASES"), "PATH", "OXISYCLE"] {
            assert_eq!(report(name), None, "{name}");
        }
    }

    #[test]
    fn the_settings_are_those_of_the_book() {
        let page = include_str!("../../../book/src/settings.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `OXISYCL_")?.split('`').next());
        let mut listed: Vec<String> =
            rows.map(|rest| format!("{PREFIX}{}", rest.split('=').next().unwrap_or(rest))).collect();
        listed.sort();
        assert_eq!(listed, KNOWN);
    }
}
