//! The reference's process, which answers one line with another.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) struct Reference {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Reference {
    pub(crate) fn start(program: &str, seed: u64) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(program);
        command.args(["--seed", &seed.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|error| format!("{program}: {error}"))?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("the reference has no pipes".into());
        };
        Ok(Self { process, to, from: BufReader::new(from) })
    }

    /// The numbers of the answer.
    fn ask(&mut self, question: &str) -> Result<Vec<f64>, Box<dyn Error>> {
        writeln!(self.to, "{question}")?;
        let mut line = String::new();
        if self.from.read_line(&mut line)? == 0 {
            return Err(format!("the reference ended at \"{question}\": {}", self.process.wait()?).into());
        }
        Ok(line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
    }

    /// 10^9 pixels in a second.
    pub(crate) fn rate(&mut self, name: &str) -> Result<f64, Box<dyn Error>> {
        let answer = self.ask(&format!("rate {name}"))?;
        answer.first().copied().ok_or_else(|| "the reference told no rate".into())
    }

    /// A pixel of what the figure was measured with last.
    pub(crate) fn pixel(&mut self, name: &str, [y, x]: [usize; 2]) -> Result<[f64; 4], Box<dyn Error>> {
        let answer = self.ask(&format!("pixel {name} {y} {x}"))?;
        answer.try_into().map_err(|answer| format!("the reference told {answer:?} of a pixel").into())
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // Its input ends, and so does the process. One that does not is ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
