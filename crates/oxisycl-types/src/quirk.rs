//! Faults of drivers and compilers as data: each crate that works around some has a table of them.

use core::fmt;

/// A fault of a driver, what is done about it, and the test that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirk {
    /// The quirk's name in the book, and in the variable by which tests switch it off.
    pub name: &'static str,
    /// The driver that has the fault.
    pub driver: &'static str,
    /// The versions of the driver that it was seen with.
    pub seen: &'static str,
    /// The first version without the fault. `None` if no such version is known.
    pub fixed: Option<&'static str>,
    /// What goes wrong, in one sentence.
    pub fault: &'static str,
    /// What the code does about it, and for which devices.
    pub switch: &'static str,
    /// What shows the fault.
    pub reproducer: Reproducer,
}

/// What shows that a driver still has a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reproducer {
    /// The name of a unit test of the same crate, which passes, and fails where the quirk is switched off.
    /// For drivers of GPUs, the name of a test in the crate's `tests/gpu`, which shows the fault by the driver's own calls.
    Test(&'static str),
    /// There is none, for this reason.
    Without(&'static str),
}

impl Quirk {
    /// Whether a version of the driver has the fault. Numbers in it are compared, from the left; what is no number counts as zero.
    #[must_use]
    pub fn concerns(&self, version: &str) -> bool {
        let Some(fixed) = self.fixed else { return true };
        let numbers = |text| str::split(text, '.').map(|part| part.parse::<u32>().unwrap_or(0));
        numbers(version).lt(numbers(fixed))
    }
}

/// A row of the book's table.
impl fmt::Display for Quirk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, driver, seen, fixed, fault, switch, reproducer } = self;
        write!(f, "| `{name}` | {driver} | {seen}")?;
        if let Some(fixed) = fixed {
            write!(f, ", not from {fixed} on")?;
        }
        write!(f, " | {fault} | {switch} | ")?;
        match reproducer {
            Reproducer::Test(test) => write!(f, "`{test}` |"),
            Reproducer::Without(reason) => write!(f, "none: {reason} |"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;

    use super::*;

    const QUIRK: Quirk = Quirk {
        name: "a",
        driver: "D",
        seen: "2.1",
        fixed: None,
        fault: "It fails.",
        switch: "always",
        reproducer: Reproducer::Without("it is rare"),
    };

    #[test]
    fn versions_before_the_repaired_one_have_the_fault() {
        assert!(QUIRK.concerns("99.1") && QUIRK.concerns(""));
        let repaired = Quirk { fixed: Some("2026.30"), ..QUIRK };
        assert!(repaired.concerns("2026.22.10.0") && repaired.concerns("2025.40") && repaired.concerns("?"));
        assert!(!repaired.concerns("2026.30") && !repaired.concerns("2026.30.1") && !repaired.concerns("2027"));
    }

    #[test]
    fn a_quirk_is_a_row_of_a_table() {
        assert_eq!(QUIRK.to_string(), "| `a` | D | 2.1 | It fails. | always | none: it is rare |");
        let tested = Quirk { fixed: Some("3"), reproducer: Reproducer::Test("it_fails"), ..QUIRK };
        assert_eq!(tested.to_string(), "| `a` | D | 2.1, not from 3 on | It fails. | always | `it_fails` |");
    }
}
