//! Which devices a program sees: the value of `OXISYCL_DEVICE_SELECTOR`.
//!
//! The value has the form that users know from `ONEAPI_DEVICE_SELECTOR`, with the names of our backends. It is a list of
//! terms separated by `;`. A term `backend:device,device` accepts devices. A term with a leading `!` discards devices, wins
//! over every other term, and stands after all terms that accept. If every term discards, all other root devices are
//! accepted. `root.sub` accepts sub-devices, which the program then sees as devices of their own, beside or instead of the
//! root device that they are part of. Discarding a device discards its sub-devices as well.
//!
//! Invariant: a filter is made of at least one pattern; without accepting patterns all root devices are accepted.
//! Does not read the environment, enumerate devices, or partition them.

use std::fmt;
use std::str::FromStr;

use oxisycl_types::{BackendKind, DeviceType};

mod error;
mod parse;

pub use error::FilterError;

/// A parsed `OXISYCL_DEVICE_SELECTOR`.
///
/// Equal filters were written the same way; differently written filters may still accept the same devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceFilter {
    text: String,
    accepted: Vec<Pattern>,
    discarded: Vec<Pattern>,
}

/// One device of one term: which root devices it is about, or which of their sub-devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pattern {
    /// Any backend if `None`.
    backend: Option<BackendKind>,
    root: Root,
    /// The root devices themselves if `None`.
    sub: Option<SubSelection>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Root {
    All,
    Type(DeviceType),
    Index(usize),
}

/// Sub-devices of one device: all of them, or one by its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// Every sub-device.
    All,
    /// The sub-device at this position, from zero. A device may have fewer.
    Index(usize),
}

/// Sub-devices of a root device, or of its sub-devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubSelection {
    /// Among the sub-devices of the root device.
    pub sub: Position,
    /// If present, the selection is not of these sub-devices but of theirs.
    pub sub_sub: Option<Position>,
}

/// What a program sees of one root device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Exposure {
    /// Whether it sees the root device.
    pub root: bool,
    /// The sub-devices that it sees as devices of their own, unless they are hidden. May overlap.
    pub sub: Vec<SubSelection>,
    /// The sub-devices that it does not see, whatever `sub` says. Their own sub-devices are hidden with them.
    pub hidden: Vec<SubSelection>,
}

impl DeviceFilter {
    /// Reads the value of `OXISYCL_DEVICE_SELECTOR`.
    ///
    /// # Errors
    /// If the value does not follow the grammar; an empty value is an error too, because it accepts nothing.
    pub fn parse(value: &str) -> Result<Self, FilterError> {
        parse::parse(value)
    }

    /// Whether the program sees the root device at position `index` among the root devices of its backend.
    pub fn accepts(&self, backend: BackendKind, device_type: DeviceType, index: usize) -> bool {
        let concerns = |pattern: &&Pattern| pattern.sub.is_none() && pattern.concerns(backend, device_type, index);
        let accepted = self.accepted.is_empty() || self.accepted.iter().any(|pattern| concerns(&pattern));
        accepted && !self.discarded.iter().any(|pattern| concerns(&pattern))
    }

    /// What the program sees of the root device at position `index` among the root devices of its backend.
    pub fn exposure(&self, backend: BackendKind, device_type: DeviceType, index: usize) -> Exposure {
        let concerned = |patterns: &[Pattern]| -> Vec<Option<SubSelection>> {
            let of_device = patterns.iter().filter(|pattern| pattern.concerns(backend, device_type, index));
            of_device.map(|pattern| pattern.sub).collect()
        };
        let discarded = concerned(&self.discarded);
        if discarded.contains(&None) {
            return Exposure::default();
        }
        Exposure {
            root: self.accepts(backend, device_type, index),
            sub: concerned(&self.accepted).into_iter().flatten().collect(),
            hidden: discarded.into_iter().flatten().collect(),
        }
    }
}

impl Pattern {
    /// Whether it is about this root device or its sub-devices.
    fn concerns(&self, backend: BackendKind, device_type: DeviceType, index: usize) -> bool {
        let root = match self.root {
            Root::All => true,
            Root::Type(accepted) => accepted == device_type,
            Root::Index(accepted) => accepted == index,
        };
        root && self.backend.is_none_or(|accepted| accepted == backend)
    }
}

impl Position {
    fn holds(self, index: usize) -> bool {
        self == Self::All || self == Self::Index(index)
    }
}

impl Exposure {
    /// Whether the program sees neither the root device nor, unless they are hidden, sub-devices of it.
    pub fn is_empty(&self) -> bool {
        !self.root && self.sub.is_empty()
    }

    /// Whether the program sees the sub-device at position `sub` of the root device.
    pub fn exposes_sub(&self, sub: usize) -> bool {
        let selected = |selection: &SubSelection| selection.sub_sub.is_none() && selection.sub.holds(sub);
        self.sub.iter().any(selected) && !self.hidden.iter().any(selected)
    }

    /// Whether the program sees the sub-device at position `sub_sub` of the sub-device at position `sub`.
    pub fn exposes_sub_sub(&self, sub: usize, sub_sub: usize) -> bool {
        let inner = |selection: &SubSelection| selection.sub_sub.map(|position| position.holds(sub_sub));
        let selected = |selection: &SubSelection| selection.sub.holds(sub) && inner(selection) == Some(true);
        let hidden = |selection: &SubSelection| selection.sub.holds(sub) && inner(selection) != Some(false);
        self.sub.iter().any(selected) && !self.hidden.iter().any(hidden)
    }
}

impl FromStr for DeviceFilter {
    type Err = FilterError;
    fn from_str(value: &str) -> Result<Self, FilterError> {
        Self::parse(value)
    }
}

/// The value as it was written.
impl fmt::Display for DeviceFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BackendKind::{Cuda, Host, OpenCl, Simulated};
    use DeviceType::{Accelerator, Cpu, Gpu};

    /// The root devices of an imaginary machine.
    const MACHINE: [(BackendKind, DeviceType, usize); 7] = [
        (Host, Cpu, 0),
        (Simulated, Accelerator, 0),
        (Simulated, Gpu, 1),
        (Cuda, Gpu, 0),
        (Cuda, Gpu, 1),
        (OpenCl, Cpu, 0),
        (OpenCl, Gpu, 1),
    ];

    fn filter(value: &str) -> DeviceFilter {
        DeviceFilter::parse(value).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The accepted root devices, in the form `cuda:1 opencl:0`.
    fn roots(value: &str) -> String {
        let filter = filter(value);
        let accepted = MACHINE.iter().filter(|(backend, device_type, index)| {
            let accepts = filter.accepts(*backend, *device_type, *index);
            assert_eq!(filter.exposure(*backend, *device_type, *index).root, accepts, "{value}");
            accepts
        });
        accepted.map(|(backend, _, index)| format!("{backend}:{index}")).collect::<Vec<_>>().join(" ")
    }

    /// All devices that are seen of `cuda:0`, a GPU with two sub-devices with two sub-devices each.
    fn seen(value: &str) -> String {
        let exposure = filter(value).exposure(Cuda, Gpu, 0);
        let mut seen = Vec::new();
        if exposure.root {
            seen.push("0".to_owned());
        }
        for sub in 0..2 {
            if exposure.exposes_sub(sub) {
                seen.push(format!("0.{sub}"));
            }
            let inner = (0..2).filter(|sub_sub| exposure.exposes_sub_sub(sub, *sub_sub));
            seen.extend(inner.map(|sub_sub| format!("0.{sub}.{sub_sub}")));
        }
        seen.join(" ")
    }

    const EVERYTHING: &str = "host:0 simulated:0 simulated:1 cuda:0 cuda:1 opencl:0 opencl:1";

    #[test]
    fn root_devices_are_accepted_by_backend_type_and_index() {
        for (value, expected) in [
            ("*:*", EVERYTHING),
            ("cuda:*", "cuda:0 cuda:1"),
            ("*:gpu", "simulated:1 cuda:0 cuda:1 opencl:1"),
            ("opencl:gpu", "opencl:1"),
            ("opencl:gpu,cpu", "opencl:0 opencl:1"),
            ("*:accelerator", "simulated:0"),
            ("*:custom", ""),
            ("*:1", "simulated:1 cuda:1 opencl:1"),
            ("cuda:0,1,7", "cuda:0 cuda:1"),
            ("host:gpu", ""),
            ("host:cpu;cuda:1", "host:0 cuda:1"),
            ("cuda:gpu;opencl:gpu", "cuda:0 cuda:1 opencl:1"),
            ("CUDA:GPU;OpenCL:Cpu", "cuda:0 cuda:1 opencl:0"),
            (" host : * ; cuda : 0 , 1 ", "host:0 cuda:0 cuda:1"),
            ("cuda:00001", "cuda:1"),
        ] {
            assert_eq!(roots(value), expected, "{value}");
        }
    }

    #[test]
    fn discarding_terms_win() {
        for (value, expected) in [
            ("*:gpu;!cuda:*", "simulated:1 opencl:1"),
            ("opencl:*;!opencl:0", "opencl:1"),
            ("opencl:*;!*:cpu", "opencl:1"),
            ("*:*;!*:*", ""),
            ("cuda:*;!opencl:*", "cuda:0 cuda:1"),
            ("*:*;!cuda:0;! opencl:gpu,0", "host:0 simulated:0 simulated:1 cuda:1"),
        ] {
            assert_eq!(roots(value), expected, "{value}");
        }
    }

    #[test]
    fn without_accepting_terms_all_other_root_devices_are_accepted() {
        assert_eq!(roots("!*:cpu"), "simulated:0 simulated:1 cuda:0 cuda:1 opencl:1");
        assert_eq!(roots("!host:*;!simulated:*;!opencl:*"), "cuda:0 cuda:1");
        assert_eq!(roots("!*:custom"), EVERYTHING);
        assert_eq!(seen("!host:*"), "0");
    }

    #[test]
    fn sub_devices_are_seen_instead_of_their_root() {
        for (value, expected) in [
            ("cuda:0.1", "0.1"),
            ("cuda:0.*", "0.0 0.1"),
            ("*:*.*", "0.0 0.1"),
            ("*:gpu.0", "0.0"),
            ("*:cpu.0", ""),
            ("cuda:1.*", ""),
            ("cuda:0.1.0", "0.1.0"),
            ("cuda:0.1.*", "0.1.0 0.1.1"),
            ("cuda:0.*.1", "0.0.1 0.1.1"),
            ("cuda:*.*.*", "0.0.0 0.0.1 0.1.0 0.1.1"),
            ("cuda:0.5", ""),
            ("cuda:*,*.*", "0 0.0 0.1"),
            ("cuda:0;cuda:0.0,0.1.1", "0 0.0 0.1.1"),
            ("cuda:0.0,0.0,0.*", "0.0 0.1"),
        ] {
            assert_eq!(seen(value), expected, "{value}");
        }
    }

    #[test]
    fn accepting_sub_devices_accepts_no_root_device() {
        assert_eq!(roots("*:*.*"), "");
        assert_eq!(roots("cuda:0.*,1"), "cuda:1");
    }

    #[test]
    fn a_discarded_device_takes_its_sub_devices_with_it() {
        for (value, expected) in [
            ("*:*.*;!cuda:0", ""),
            ("*:*,*.*;!*:gpu", ""),
            ("*:*.*;!cuda:1", "0.0 0.1"),
            ("*:*,*.*;!cuda:0.0", "0 0.1"),
            ("*:*,*.*;!cuda:*.*", "0"),
            ("*:*.*.*;!cuda:0.0", "0.1.0 0.1.1"),
            ("*:*.*.*;!cuda:*.*.1", "0.0.0 0.1.0"),
            ("*:*.*,*.*.*;!cuda:0.1.1", "0.0 0.0.0 0.0.1 0.1 0.1.0"),
            ("!cuda:0.0", "0"),
        ] {
            assert_eq!(seen(value), expected, "{value}");
        }
    }

    #[test]
    fn exposure_tells_whether_partitioning_is_needed() {
        let filter = filter("cuda:0.*;host:*;!opencl:*");
        assert_eq!(filter.exposure(Cuda, Gpu, 0).sub, [SubSelection { sub: Position::All, sub_sub: None }]);
        assert!(filter.exposure(Host, Cpu, 0).sub.is_empty());
        assert!(!filter.exposure(Host, Cpu, 0).is_empty());
        assert!(filter.exposure(Simulated, Gpu, 1).is_empty());
        assert_eq!(filter.exposure(OpenCl, Gpu, 1), Exposure::default());
    }

    #[test]
    fn a_filter_prints_as_it_was_written() {
        assert_eq!(filter("cuda:0 ; !*:1").to_string(), "cuda:0 ; !*:1");
        assert_eq!("cuda:0".parse(), DeviceFilter::parse("cuda:0"));
    }
}
