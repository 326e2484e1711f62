//! `cargo xtask test`: installs what stages need below the target directory, then validates. Tools that only stages need which may be left out are installed by
//! these.

use crate::outcome::{Failure, Outcome, Result};
use crate::tools::TOOLS;
use crate::validate::{Options, may_be_late, run_stages};
use crate::workspace::Workspace;
use crate::{opencl, ptxas};

/// A name for messages, the stages that want it, and what makes sure that it is there.
type Installed = (&'static str, &'static [&'static str], fn(&Workspace) -> Result<()>);

/// What comes from Python's package index.
const FROM_PYTHON: [Installed; 2] =
    [(opencl::NAME, opencl::STAGES, opencl::install), (ptxas::NAME, ptxas::STAGES, ptxas::install)];

/// `cargo xtask test [--install] [--only A,B] [--skip A,B]`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<Outcome> {
    let (mut options, is_strict) = Options::parse(arguments, "install")?;
    options.strict |= is_strict;
    options.installs = true;
    // Those that may be left out install what they need themselves.
    let is_wanted = |stages: &[&str]| stages.iter().any(|stage| options.selects(stage) && !may_be_late(stage));

    let mut missing = Vec::new();
    println!("==> set-up");
    options.start_log(workspace, "set-up")?;
    for tool in TOOLS.iter().filter(|tool| is_wanted(tool.stages)) {
        if let Err(failure) = tool.install(workspace) {
            println!("  {failure}");
            missing.push((tool.name, tool.stages));
        }
    }
    for (name, stages, install) in FROM_PYTHON {
        if stages.iter().any(|stage| options.selects(stage))
            && let Err(failure) = install(workspace)
        {
            println!("  {failure}");
            missing.push((name, stages));
        }
    }
    println!();
    let outcome = run_stages(workspace, &options);
    report(outcome, &missing, options.strict)
}

/// The name of a tool, and the stages that want it.
type Missing = (&'static str, &'static [&'static str]);

/// Adds the tools that could not be installed to the outcome of the stages.
fn report(outcome: Result<Outcome>, missing: &[Missing], strict: bool) -> Result<Outcome> {
    if missing.is_empty() {
        return outcome;
    }
    let tools = missing.iter().map(|(name, stages)| format!("{name} (for {})", stages.join(", ")));
    let note = format!("not installed: {}", tools.collect::<Vec<_>>().join(", "));
    match outcome {
        Ok(Outcome::Passed(stages) | Outcome::Skipped(stages) | Outcome::Late(stages)) if strict => {
            Err(Failure::new(format!("{stages}; {note}")))
        }
        Ok(Outcome::Passed(stages) | Outcome::Skipped(stages) | Outcome::Late(stages)) => {
            Ok(Outcome::Passed(format!("{stages}; {note}")))
        }
        Err(failure) => Err(Failure { message: format!("{note}\n{}", failure.message), ..failure }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_is_missing_fails_only_a_strict_run() {
        let passed = || Ok(Outcome::Passed("16 stages".to_owned()));
        assert_eq!(report(passed(), &[], true), passed());
        let lenient = report(passed(), &[(TOOLS[1].name, TOOLS[1].stages)], false);
        assert_eq!(lenient, Ok(Outcome::Passed("16 stages; not installed: cargo-deny (for deny)".to_owned())));
        assert!(report(passed(), &[(TOOLS[1].name, TOOLS[1].stages)], true).is_err());
    }

    #[test]
    fn failing_stages_stay_the_last_words() {
        let failed = Err(Failure::new("9 seconds; failed: fmt"));
        let message = report(failed, &[(TOOLS[2].name, TOOLS[2].stages)], false).unwrap_err().message;
        assert_eq!(message, "not installed: mdbook (for book)\n9 seconds; failed: fmt");
    }
}
