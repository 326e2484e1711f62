//! The table of `--time-passes`: how long each pass of the device compiler took.

use std::fmt::Write;
use std::time::Duration;

use crate::compile::PassTime;

/// The passes of one target, the slowest first; `None` if none was measured. Kernels are compiled at the same time, so that the sum may be
/// longer than the build.
pub(super) fn table(times: &[PassTime], target: &str, crate_name: &str) -> Option<String> {
    let sum: Duration = times.iter().map(|pass| pass.time).sum();
    if sum.is_zero() {
        return None;
    }
    let mut sorted: Vec<&PassTime> = times.iter().collect();
    sorted.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
    let seconds = sum.as_secs_f64();
    let mut text = format!("passes for {target}, summed over the kernels of crate `{crate_name}`: {seconds:.3} s");
    for PassTime { name, runs, time } in sorted {
        let time = time.as_secs_f64();
        let _ = write!(text, "\n{time:>10.3} s {:>5.1} % {runs:>7} runs  {name}", 100.0 * time / seconds);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_sorted_by_their_times() {
        let pass = |name: &str, runs, milliseconds| PassTime {
            name: name.to_owned(),
            runs,
            time: Duration::from_millis(milliseconds),
        };
        let times = [pass("native", 2, 250), pass("emit", 1, 750), pass("arena", 1, 0)];
        let expected = "passes for sm_70, summed over the kernels of crate `app`: 1.000 s
     0.750 s  75.0 %       1 runs  emit
     0.250 s  25.0 %       2 runs  native
     0.000 s   0.0 %       1 runs  arena";
        assert_eq!(table(&times, "sm_70", "app").as_deref(), Some(expected));
        assert_eq!(table(&[], "sm_70", "app"), None);
    }
}
