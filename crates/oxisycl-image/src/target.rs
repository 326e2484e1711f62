use std::error::Error;
use std::fmt;
use std::str::FromStr;

use oxisycl_types::DeviceLaunch;

use crate::ParameterLayout;

/// What a device image was compiled for.
///
/// Prints as `host:x86_64-unknown-linux-gnu`, `host:x86_64-unknown-linux-gnu+x86-64-v3`, `sm_90`, `spirv1.4` or `gfx942`, and parses from
/// exactly these forms.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ImageTarget {
    /// Native code of a host target triple. An image of it holds no code: see [`DeviceImage::native_index`](crate::DeviceImage::native_index).
    Host {
        /// The triple.
        triple: String,
        /// What the code uses beyond what every processor of the triple has; `None` if nothing.
        level: Option<HostLevel>,
    },
    /// NVIDIA PTX.
    Ptx {
        /// Compute capability times ten.
        sm: u32,
    },
    /// SPIR-V.
    SpirV {
        /// Major version.
        major: u32,
        /// Minor version.
        minor: u32,
    },
    /// AMD code object.
    AmdGcn {
        /// Processor, such as `gfx942`.
        arch: String,
    },
}

/// A level of x86-64 that native code may ask for, above the level that every such processor has. The lower level comes first.
///
/// Names and features are those of the psABI of x86-64. A processor of a level has all features of the levels below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum HostLevel {
    /// `x86-64-v3`: AVX2, BMI, FMA and what belongs to them.
    V3,
    /// `x86-64-v4`: also AVX-512 with its parts F, BW, CD, DQ and VL.
    V4,
}

impl HostLevel {
    /// All levels, the lowest first.
    pub const ALL: [Self; 2] = [Self::V3, Self::V4];

    /// The level's name. Compilers know a processor of this name, which has the features of the level and no others.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V3 => "x86-64-v3",
            Self::V4 => "x86-64-v4",
        }
    }

    /// The number in its name.
    pub const fn number(self) -> u32 {
        match self {
            Self::V3 => 3,
            Self::V4 => 4,
        }
    }
}

impl fmt::Display for HostLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for ImageTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { triple, level: None } => write!(f, "host:{triple}"),
            Self::Host { triple, level: Some(level) } => write!(f, "host:{triple}+{level}"),
            Self::Ptx { sm } => write!(f, "sm_{sm}"),
            Self::SpirV { major, minor } => write!(f, "spirv{major}.{minor}"),
            Self::AmdGcn { arch } => f.write_str(arch),
        }
    }
}

impl ImageTarget {
    /// Bytes of all parameters of a kernel of PTX that every driver takes.
    const MAX_PTX_PARAMETERS: usize = 4096;
    /// Bytes of all parameters of a kernel of SPIR-V that every device takes.
    const MAX_SPIRV_PARAMETERS: usize = 1024;

    /// Whether kernels get the address of a copy of their argument block. Otherwise the block is a parameter, behind the launch.
    pub fn passes_by_address(&self, block: ParameterLayout) -> bool {
        let limit = match self {
            Self::Ptx { .. } => Self::MAX_PTX_PARAMETERS,
            Self::SpirV { .. } => Self::MAX_SPIRV_PARAMETERS,
            Self::Host { .. } | Self::AmdGcn { .. } => return false,
        };
        size_of::<DeviceLaunch>().next_multiple_of(block.align).saturating_add(block.size) > limit
    }
}

/// A text that names no [`ImageTarget`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetError {
    text: String,
}

impl Error for TargetError {}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "image target: expected host:<triple>, host:<triple>+<level>, sm_<number>, spirv<major>.<minor> or gfx<processor>, found {:?}",
            self.text
        )
    }
}

impl FromStr for ImageTarget {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        parse(text).ok_or_else(|| TargetError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<ImageTarget> {
    if let Some(triple) = text.strip_prefix("host:") {
        // No triple has a `+`.
        let (triple, level) = match triple.split_once('+') {
            None => (triple, None),
            Some((triple, name)) => (triple, Some(HostLevel::ALL.into_iter().find(|level| level.name() == name)?)),
        };
        return is_word(triple, "-_.").then(|| ImageTarget::Host { triple: triple.to_owned(), level });
    }
    if let Some(sm) = text.strip_prefix("sm_") {
        return Some(ImageTarget::Ptx { sm: number(sm)? });
    }
    if let Some(version) = text.strip_prefix("spirv") {
        let (major, minor) = version.split_once('.')?;
        return Some(ImageTarget::SpirV { major: number(major)?, minor: number(minor)? });
    }
    // Processors carry features after them: `gfx90a:sramecc+:xnack-`.
    is_word(text.strip_prefix("gfx")?, "-_:+").then(|| ImageTarget::AmdGcn { arch: text.to_owned() })
}

/// Not empty, and made of ASCII letters, digits and the given punctuation.
fn is_word(text: &str, punctuation: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || punctuation.contains(letter))
}

/// A decimal number in its only spelling, so that a target has one text.
fn number(text: &str) -> Option<u32> {
    let canonical = text == "0" || !text.starts_with(['0', '+']);
    text.parse().ok().filter(|_| canonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_beyond_what_all_drivers_take_are_passed_by_address() {
        let [ptx, spirv, amd] = ["sm_70", "spirv1.2", "gfx90a"].map(|text| text.parse::<ImageTarget>().unwrap());
        for (size, align, by_address) in [
            (0, 1, [false, false]),
            (920, 8, [false, false]),
            (928, 8, [false, true]),
            (3992, 8, [false, true]),
            (4000, 8, [true, true]),
            // Blocks of packed bytes have any size.
            (919, 1, [false, false]),
            (920, 1, [false, false]),
            (921, 1, [false, true]),
            (3992, 1, [false, true]),
            (3993, 1, [true, true]),
            // The block begins where its alignment has a place.
            (3968, 64, [false, true]),
            (4032, 64, [true, true]),
            (4096, 4096, [true, true]),
            (64 << 10, 8, [true, true]),
        ] {
            let block = ParameterLayout { size, align };
            assert_eq!([&ptx, &spirv].map(|target| target.passes_by_address(block)), by_address, "{block:?}");
            assert!(!amd.passes_by_address(block), "nothing runs its code");
        }
    }

    #[test]
    fn every_target_parses_from_its_print() {
        let host = |triple: &str, level| ImageTarget::Host { triple: triple.to_owned(), level };
        for (text, target) in [
            ("host:x86_64-unknown-linux-gnu", host("x86_64-unknown-linux-gnu", None)),
            ("host:x86_64-unknown-linux-gnu+x86-64-v3", host("x86_64-unknown-linux-gnu", Some(HostLevel::V3))),
            ("host:x86_64-unknown-linux-musl+x86-64-v4", host("x86_64-unknown-linux-musl", Some(HostLevel::V4))),
            ("host:thumbv8m.main-none-eabi", host("thumbv8m.main-none-eabi", None)),
            ("sm_70", ImageTarget::Ptx { sm: 70 }),
            ("sm_120", ImageTarget::Ptx { sm: 120 }),
            ("spirv1.0", ImageTarget::SpirV { major: 1, minor: 0 }),
            ("spirv1.6", ImageTarget::SpirV { major: 1, minor: 6 }),
            ("gfx90a", ImageTarget::AmdGcn { arch: "gfx90a".to_owned() }),
            ("gfx9-4-generic", ImageTarget::AmdGcn { arch: "gfx9-4-generic".to_owned() }),
            ("gfx942:sramecc+:xnack-", ImageTarget::AmdGcn { arch: "gfx942:sramecc+:xnack-".to_owned() }),
        ] {
            assert_eq!(text.parse(), Ok(target.clone()));
            assert_eq!(target.to_string(), text);
        }
    }

    #[test]
    fn levels_are_in_the_order_of_their_numbers() {
        assert!(HostLevel::ALL.is_sorted() && HostLevel::ALL.is_sorted_by_key(|level| level.number()));
        for level in HostLevel::ALL {
            assert_eq!(level.to_string(), format!("x86-64-v{}", level.number()));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "host",
            "host:",
            "host:a b",
            "host:+x86-64-v3",
            "host:x86_64-unknown-linux-gnu+",
            "host:x86_64-unknown-linux-gnu+v3",
            "host:x86_64-unknown-linux-gnu+x86-64-v2",
            "host:x86_64-unknown-linux-gnu+x86-64-V3",
            "host:x86_64-unknown-linux-gnu+x86-64-v3+",
            "host:x86_64-unknown-linux-gnu+x86-64-v3+x86-64-v4",
            "sm_",
            "sm_90a",
            "sm_+90",
            "sm_090",
            "sm_-1",
            "sm_99999999999",
            "SM_90",
            "spirv",
            "spirv1",
            "spirv1.",
            "spirv.1",
            "spirv01.0",
            "spirv1.6.0",
            "gfx",
            "gfx 90a",
            "cuda",
            "x86_64-unknown-linux-gnu",
        ] {
            assert!(text.parse::<ImageTarget>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_error_names_the_forms() {
        assert_eq!(
            "cuda".parse::<ImageTarget>().unwrap_err().to_string(),
            "image target: expected host:<triple>, host:<triple>+<level>, sm_<number>, spirv<major>.<minor> or gfx<processor>, found \"cuda\""
        );
    }
}
