//! Child processes: started in the workspace root, shown while they run, optionally captured.
//!
//! Owns the environment that children see. The tools of this workspace come first in `PATH`, and the variables that `cargo run` set for
//! this program are removed. Owns where their output is shown: on the terminal, or in a [log](log_into). Does not decide what it means; see
//! [`counts`](crate::counts).

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::counts::{last_lines, telling_lines};
use crate::opencl;
use crate::outcome::{Failure, Result};
use crate::text::shortened;
use crate::workspace::Workspace;

/// What a finished child wrote.
#[derive(Debug)]
pub(crate) struct Captured {
    /// The program's standard output.
    pub(crate) stdout: String,
    /// The program's standard error.
    pub(crate) stderr: String,
    /// Whether it exited with status 0.
    pub(crate) success: bool,
    /// The command line, for messages.
    pub(crate) line: String,
}

impl Captured {
    /// `Ok` if the child succeeded, else a failure with the lines that tell why.
    pub(crate) fn succeeded(self) -> Result<Self> {
        if self.success {
            return Ok(self);
        }
        let output = self.output();
        let mut findings = telling_lines(&output);
        if findings.is_empty() {
            findings = last_lines(&output);
        }
        Err(Failure { message: format!("`{}` failed", self.line), findings })
    }

    /// Both streams, standard output first.
    pub(crate) fn output(&self) -> String {
        format!("{}\n{}", self.stdout, self.stderr)
    }
}

/// The cargo that runs this program, started in the workspace root.
pub(crate) fn cargo(workspace: &Workspace) -> Command {
    command(workspace, &env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The nightly cargo behind rustup's proxy; [`has_nightly`] says whether there is one.
pub(crate) fn nightly_cargo(workspace: &Workspace) -> Command {
    of_toolchain(workspace, "nightly", "cargo")
}

/// A program of a toolchain, behind rustup's proxy.
pub(crate) fn of_toolchain(workspace: &Workspace, toolchain: &str, program: &str) -> Command {
    let mut command = command(workspace, &OsString::from(program));
    command.arg(format!("+{toolchain}"));
    // They name the toolchain of this process and would win over the argument in processes that cargo starts.
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    command
}

/// Whether `cargo +nightly` with the given arguments succeeds.
pub(crate) fn has_nightly(workspace: &Workspace, probe: &[&str]) -> bool {
    succeeds(nightly_cargo(workspace).args(probe))
}

/// Whether the nightly toolchain has the sources of the standard library, which builds of it need.
pub(crate) fn has_nightly_sources(workspace: &Workspace) -> bool {
    let sysroot = run_quietly(of_toolchain(workspace, "nightly", "rustc").args(["--print", "sysroot"]))
        .and_then(Captured::succeeded);
    sysroot.is_ok_and(|printed| Path::new(printed.stdout.trim()).join(LIBRARY).is_file())
}

/// Any program, started in the workspace root with the tools of the workspace first in `PATH`.
pub(crate) fn command(workspace: &Workspace, program: &OsString) -> Command {
    let mut command = Command::new(program);
    command.current_dir(&workspace.root);
    let mut path = vec![workspace.tools_directory().join("bin")];
    path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    if let Some((variables, programs)) = opencl::environment(workspace) {
        command.envs(variables);
        // Last: a Python is in there, too.
        path.push(programs);
    }
    if let Ok(path) = env::join_paths(path) {
        command.env("PATH", path);
    }
    for (name, _) in env::vars_os() {
        if set_by_cargo_run(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
    command
}

fn set_by_cargo_run(name: &str) -> bool {
    name.starts_with("CARGO_PKG_")
        || ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_BIN_NAME", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE"]
            .contains(&name)
}

/// The manifest of the standard library in the component `rust-src`.
const LIBRARY: &str = "lib/rustlib/src/rust/library/Cargo.toml";

/// The log that takes what children write, if there is one.
static LOG: Mutex<Option<File>> = Mutex::new(None);
/// How often a line says that a child whose output goes into a log is still running. A run that is silent for long looks like one that
/// hangs.
const STILL_RUNNING: Duration = Duration::from_secs(300);

/// From now on what children write goes into a file instead of to the terminal; its folder is created.
pub(crate) fn log_into(path: &Path) -> Result<()> {
    let create = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        File::create(path)
    };
    let file = create().map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    *LOG.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
    Ok(())
}

/// Writes into the log; `false` if there is none.
fn log(bytes: &[u8]) -> bool {
    let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    // What the log has no room for is read all the same.
    log.as_mut().map(|file| file.write_all(bytes)).is_some()
}

fn has_log() -> bool {
    LOG.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Shows the output of a child that was not shown while it ran.
pub(crate) fn show(captured: &Captured) {
    let text = format!("$ {}\n{}", captured.line, captured.stdout);
    if !log(text.as_bytes()) {
        println!("{text}");
    }
}

/// A standard stream, or the log in its place.
struct Shown<W>(W);

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if log(bytes) { Ok(bytes.len()) } else { self.0.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Runs a child that shares this program's terminal; it must exit with status 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    if has_log() {
        return run_captured(command)?.succeeded().map(drop);
    }
    let line = announce(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(format!("`{line}` failed: {status}"))),
        Err(error) => Err(Failure::new(format!("`{line}` could not be started: {error}"))),
    }
}

/// Runs a child, shows what it writes, and keeps it. `Err` only if it could not be started.
pub(crate) fn run_captured(command: &mut Command) -> Result<Captured> {
    let line = announce(command);
    // Counts are read from the text: no escape sequences in it, whatever the user prefers.
    command.env("CARGO_TERM_COLOR", "never");
    capture(command, line, Echo::Both)
}

/// Runs a child and keeps what it writes without showing it. `Err` only if it could not be started.
pub(crate) fn run_quietly(command: &mut Command) -> Result<Captured> {
    let line = command_line(command);
    capture(command, line, Echo::Nothing)
}

/// Runs a child, shows its standard error, and keeps what it writes. `Err` only if it could not be started.
pub(crate) fn run_for_output(command: &mut Command) -> Result<Captured> {
    let line = announce(command);
    capture(command, line, Echo::Messages)
}

/// Runs a child that may hang, shows its standard error, and keeps what it writes. After `limit` it is ended with all that it has started,
/// which is a failure.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> Result<Captured> {
    let line = announce(command);
    // A group of its own: what it has started ends with it.
    command.process_group(0);
    capture_within(command, line, Echo::Messages, Some(limit))
}

/// Whether a child exits with status 0; nothing is shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    run_quietly(command).is_ok_and(|captured| captured.success)
}

#[derive(Clone, Copy, PartialEq)]
enum Echo {
    Both,
    /// Standard error alone.
    Messages,
    Nothing,
}

fn capture(command: &mut Command, line: String, echo: Echo) -> Result<Captured> {
    capture_within(command, line, echo, None)
}

/// With a limit, the command leads a process group.
fn capture_within(command: &mut Command, line: String, echo: Echo, limit: Option<Duration>) -> Result<Captured> {
    let failure = |error: io::Error| Failure::new(format!("`{line}` could not be started: {error}"));
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failure)?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Failure::new(format!("`{line}` has no output streams")));
    };
    let (stdout, stderr, status) = thread::scope(|scope| {
        let of_stdout = if echo == Echo::Messages { Echo::Nothing } else { echo };
        let stdout = scope.spawn(move || tee(stdout, Shown(io::stdout()), of_stdout));
        let stderr = scope.spawn(move || tee(stderr, Shown(io::stderr()), echo));
        let status = match limit {
            Some(limit) => wait_within(&mut child, limit),
            None if has_log() => wait_aloud(&mut child, &line).map(Some),
            None => child.wait().map(Some),
        };
        (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default(), status)
    });
    match status.map_err(failure)? {
        Some(status) => Ok(Captured { stdout, stderr, success: status.success(), line }),
        None => {
            let last = stdout.lines().next_back().unwrap_or("nothing").to_owned();
            let limit = limit.unwrap_or_default().as_secs();
            let message = format!("`{line}` was ended at its limit of {limit} s; it had written last:");
            Err(Failure { message, findings: vec![last] })
        }
    }
}

/// Waits for a child that leads a process group. At the limit all of the group is ended; then `None`.
pub(crate) fn wait_within(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            // If the group cannot be ended, its first process still is.
            let _ = Command::new("kill").args(["-9", "--", &format!("-{}", child.id())]).status();
            let _ = child.kill();
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Waits, and says now and then that the child still runs.
fn wait_aloud(child: &mut Child, line: &str) -> io::Result<ExitStatus> {
    let (start, mut next) = (Instant::now(), STILL_RUNNING);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if start.elapsed() > next {
            println!("  {} s: {}", next.as_secs(), shortened(line, 40));
            next += STILL_RUNNING;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Reads a stream to its end; shows each line at once if asked to. A stream that cannot be shown is still read.
fn tee(source: impl Read, mut sink: impl Write, echo: Echo) -> String {
    let mut source = BufReader::new(source);
    let mut text = String::new();
    let mut line = Vec::new();
    while matches!(source.read_until(b'\n', &mut line), Ok(n) if n > 0) {
        if echo != Echo::Nothing {
            let _ = sink.write_all(&line).and_then(|()| sink.flush());
        }
        text.push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
    text
}

fn announce(command: &Command) -> String {
    let line = command_line(command);
    if !log(format!("$ {line}\n").as_bytes()) {
        println!("$ {line}");
    }
    line
}

fn command_line(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut line = program.to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_this_very_package_are_not_passed_on() {
        assert!(set_by_cargo_run("CARGO_PKG_NAME"));
        assert!(set_by_cargo_run("CARGO_MANIFEST_DIR"));
        assert!(!set_by_cargo_run("CARGO_TARGET_DIR"));
        assert!(!set_by_cargo_run("CARGO_HOME"));
    }

    #[test]
    fn a_stream_is_read_to_its_end_even_if_it_is_not_text() {
        let mut shown = Vec::new();
        assert_eq!(tee(&b"one\n\xff\nlast"[..], &mut shown, Echo::Both), "one\n\u{fffd}\nlast");
        assert_eq!(shown, b"one\n\xff\nlast");
    }

    #[test]
    fn a_program_that_hangs_ends_at_its_limit_with_what_it_started() {
        let start = Instant::now();
        let mut hangs = Command::new("sh");
        let failure = run_within(hangs.args(["-c", "echo begun; sleep 60 & wait"]), Duration::from_millis(300));
        let failure = failure.expect_err("it was ended");
        assert!(failure.message.contains("its limit of 0 s") && failure.findings == ["begun"], "{failure}");
        assert!(start.elapsed() < Duration::from_secs(30), "what it had started kept its streams open");
        let quick = run_within(Command::new("echo").arg("done"), Duration::from_secs(60)).expect("it ends");
        assert!(quick.success && quick.stdout == "done\n");
    }

    #[test]
    fn command_lines_name_the_program_without_its_folder() {
        assert_eq!(command_line(Command::new("/usr/bin/cargo").args(["test", "-q"])), "cargo test -q");
    }
}
