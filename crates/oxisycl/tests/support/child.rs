//! Runs the test program itself again, as a process of its own, for what happens when a process begins and ends.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const VARIABLE: &str = "OXISYCL_TEST_CHILD";

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) elapsed: Duration,
}

impl Ended {
    /// The lines on standard error that come from the library.
    pub(crate) fn reports(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("oxisycl:")).collect()
    }

    /// What the child printed after `name=`.
    #[track_caller]
    pub(crate) fn value(&self, name: &str) -> &str {
        let begin = format!("{name}=");
        let line = self.stdout.lines().find_map(|line| line.split_once(&begin).map(|(_, value)| value));
        line.unwrap_or_else(|| panic!("no {name}: {self:#?}"))
    }

    /// The child ended well.
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert!(self.status.success(), "{self:#?}");
        self
    }

    /// The child ended with the status of a panic.
    #[track_caller]
    pub(crate) fn panicked(self) -> Self {
        assert_eq!(self.status.code(), Some(101), "{self:#?}");
        self
    }
}

/// What this process is to do if [`run`] started it.
pub(crate) fn role() -> Option<String> {
    std::env::var(VARIABLE).ok()
}

/// Runs the test `child` of this program with a role and environment variables. Kills it after two minutes.
pub(crate) fn run(role: &str, variables: &[(&str, &str)]) -> Ended {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child", "--exact", "--nocapture", "--test-threads=1"]);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("OXISYCL_") {
            command.env_remove(name);
        }
    }
    command.env("RUST_BACKTRACE", "0").env(VARIABLE, role).envs(variables.iter().copied());
    run_command(command)
}

/// Runs a command. Kills it after two minutes.
pub(crate) fn run_command(mut command: Command) -> Ended {
    let began = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let mut is_killed = false;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > Duration::from_secs(120) {
            is_killed = true;
            child.kill().unwrap();
            break child.wait().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let elapsed = began.elapsed();
    let ended = Ended { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap(), elapsed };
    assert!(!is_killed, "hangs: {ended:#?}");
    ended
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.unwrap().read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
