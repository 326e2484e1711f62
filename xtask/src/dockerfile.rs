//! The book's Dockerfile for users' CI: which of its lines run here, and why the others do not.

use crate::opencl;
use crate::outcome::{Failure, Result};

/// The file's place in the repository.
pub(crate) const PATH: &str = "book/docker/Dockerfile";

/// A `RUN` line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// Cargo in the user's package, with variables.
    Cargo { variables: Vec<(&'a str, &'a str)>, arguments: Vec<&'a str> },
    /// What is not run again, and why.
    Elsewhere { line: &'a str, reason: &'static str },
}

/// The `RUN` lines in their order. A line that nothing here knows is a failure, and so is a driver of another version than the tests have.
pub(crate) fn steps(text: &str) -> Result<Vec<Step<'_>>> {
    text.lines().filter_map(|line| line.strip_prefix("RUN ")).map(step).collect()
}

fn step(line: &str) -> Result<Step<'_>> {
    let elsewhere = |reason| Ok(Step::Elsewhere { line, reason });
    if line.contains("pip install") {
        let packages: Vec<&str> = line.split_whitespace().filter(|word| word.contains("==")).collect();
        return match packages.iter().all(|package| opencl::PACKAGES.contains(package)) && !packages.is_empty() {
            true => elsewhere("the set-up has installed these packages"),
            false => Err(Failure::new(format!("{PATH}: {line:?} has other versions than {:?}", opencl::PACKAGES))),
        };
    }
    if line.starts_with("apt-get ") {
        return elsewhere("it is the container's own system");
    }
    if line.starts_with("mkdir /opt/opencl/vendors ") {
        return elsewhere("the set-up has written the same file elsewhere");
    }
    if line.starts_with("cargo install --path ") {
        return elsewhere("the tool was installed from its package");
    }
    let mut words = line.split_whitespace().peekable();
    let mut variables = Vec::new();
    while let Some(variable) = words.peek().and_then(|word| word.split_once('=')) {
        variables.push(variable);
        words.next();
    }
    match words.next() {
        Some("cargo") => Ok(Step::Cargo { variables, arguments: words.collect() }),
        _ => Err(Failure::new(format!("{PATH}: nothing tests {line:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_run_or_has_a_reason() {
        let text = include_str!("../../book/docker/Dockerfile");
        let steps = steps(text).unwrap();
        let ran: Vec<&Step<'_>> = steps.iter().filter(|step| matches!(step, Step::Cargo { .. })).collect();
        assert_eq!((steps.len(), ran.len()), (7, 3));
        let last =
            Step::Cargo { variables: vec![("OXISYCL_DEVICE_SELECTOR", "opencl:cpu")], arguments: vec!["sycl", "test"] };
        assert_eq!(*ran[2], last);
    }

    #[test]
    fn what_nothing_knows_is_a_failure() {
        assert!(steps("FROM x\nRUN make\n").is_err());
        assert!(steps("RUN pip install intel-opencl-rt==1.0\n").is_err());
        assert_eq!(steps("# RUN make\nCOPY a b\n"), Ok(Vec::new()));
    }
}
