//! Instruments of a compilation: the time of each pass, and dumps of the module after it.
//!
//! Invariant: instruments change no module. A module is verified in tests of this crate, and wherever a dump is wanted.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::error::CompileError;
use crate::llvm::Module;

/// How long a pass took, summed over its runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassTime {
    /// The pass, or the step between passes.
    pub name: String,
    /// The number of its runs.
    pub runs: u64,
    /// The sum of its times.
    pub time: Duration,
}

/// The times of passes, in the order in which each ran first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct PassTimes(Vec<PassTime>);

impl PassTimes {
    /// Adds runs of one pass.
    pub(crate) fn add(&mut self, name: &str, runs: u64, time: Duration) {
        match self.0.iter_mut().find(|known| known.name == name) {
            Some(known) => {
                known.runs += runs;
                known.time += time;
            }
            None => self.0.push(PassTime { name: name.to_owned(), runs, time }),
        }
    }

    /// Adds the times of another compilation.
    pub(crate) fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|PassTime { name, runs, time }| self.add(&name, runs, time));
    }

    pub(crate) fn into_list(self) -> Vec<PassTime> {
        self.0
    }

    /// The bytes of a job's result: the length of the times, the times, and the answer.
    pub(crate) fn encode_with(&self, answer: &[u8]) -> Vec<u8> {
        let line = |PassTime { name, runs, time }: &PassTime| format!("{name} {runs} {}\n", time.as_nanos());
        let text: String = self.0.iter().map(line).collect();
        [&(text.len() as u64).to_le_bytes(), text.as_bytes(), answer].concat()
    }

    /// Decodes [`encode_with`](Self::encode_with); `None` if the bytes are damaged.
    pub(crate) fn decode_with(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (text, answer) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let mut times = Self::default();
        for line in std::str::from_utf8(text).ok()?.lines() {
            let mut words = line.split(' ');
            let (name, runs, time) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            times.add(name, runs, Duration::from_nanos(time));
        }
        Some((times, answer))
    }
}

/// The instruments of one compilation.
#[derive(Default)]
pub(crate) struct Instruments {
    /// The folder for LLVM assembly after each pass.
    dump: Option<PathBuf>,
    times: RefCell<PassTimes>,
    /// The number of files written, and the text of the last one.
    dumped: RefCell<(u32, String)>,
}

impl Instruments {
    /// Instruments that write dumps to a folder, if one is given.
    pub(crate) fn new(dump: Option<PathBuf>) -> Self {
        Self { dump, ..Self::default() }
    }

    /// Measures a step that is no pass.
    pub(crate) fn time<T>(&self, name: &str, step: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = step();
        self.times.borrow_mut().add(name, 1, start.elapsed());
        result
    }

    /// The times so far.
    pub(crate) fn times(&self) -> PassTimes {
        self.times.borrow().clone()
    }

    /// Verifies a module after the pass `name`, in tests of this crate and if modules are dumped.
    pub(crate) fn verify(&self, name: &str, module: &Module<'_>) -> Result<(), CompileError> {
        if cfg!(test) || self.dump.is_some() { module.verify(name) } else { Ok(()) }
    }

    /// Writes a module's assembly, if dumps are wanted.
    pub(crate) fn dump(&self, name: &str, module: &Module<'_>) -> Result<(), CompileError> {
        if self.dump.is_none() {
            return Ok(());
        }
        let text = module.to_string();
        let (number, last) = &mut *self.dumped.borrow_mut();
        if *last == text {
            return Ok(());
        }
        self.write(&format!("{number:03}-{name}.ll"), || text.clone())?;
        (*number, *last) = (*number + 1, text);
        Ok(())
    }

    /// Writes a file beside the assembly, if dumps are wanted.
    pub(crate) fn write(&self, name: &str, text: impl FnOnce() -> String) -> Result<(), CompileError> {
        let Some(folder) = &self.dump else { return Ok(()) };
        let path = folder.join(name);
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text()));
        written.map_err(|error| CompileError::File { path, error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_summed_by_pass_and_come_back_with_the_answer() {
        let mut times = PassTimes::default();
        times.add("native", 1, Duration::from_nanos(5));
        times.add("x86", 1, Duration::from_nanos(7));
        times.add("native", 2, Duration::from_nanos(6));
        let bytes = times.encode_with(b"answer");
        assert_eq!(PassTimes::decode_with(&bytes), Some((times.clone(), &b"answer"[..])));
        times.merge(times.clone());
        let list: Vec<_> = times.into_list().into_iter().map(|pass| (pass.name, pass.runs, pass.time)).collect();
        let expected =
            [("native".to_owned(), 6, Duration::from_nanos(22)), ("x86".to_owned(), 2, Duration::from_nanos(14))];
        assert_eq!(list, expected);
        for length in 0..bytes.len() - "answer".len() {
            assert_eq!(PassTimes::decode_with(&bytes[..length]), None, "{length} bytes");
        }
    }
}
