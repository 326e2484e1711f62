//! What one build is made with: decided once by `cargo sycl`, read by every process below it.
//!
//! Invariant: what is linked depends on the sources and the settings' key, and nothing else; see [`stamps`](crate::stamps).

use std::env;
use std::path::PathBuf;

use oxisycl_compiler::{FloatPolicy, Lanes};
use oxisycl_image::{HostLevel, ImageTarget};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::failure::{Failure, Result};

/// What the text of a target begins with whose images are native code.
pub(crate) const NATIVE: &str = "host:";

/// The compute capabilities of NVIDIA GPUs, times ten, that have the memory model of kernels and that LLVM knows.
const COMPUTE_CAPABILITIES: [u32; 14] = [70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 120, 121];

/// The processors of AMD GPUs whose code is looked at in tests. No backend launches it yet.
const AMD_PROCESSORS: [&str; 3] = ["gfx90a", "gfx942", "gfx1100"];

/// The triple of `host-v3` and `host-v4`, which stand for native code.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// The most work-items that native code runs at once.
const MAX_LANES: u32 = 32;

/// The variable that carries the settings. Not for users: its content is of this tool alone.
pub(crate) const VARIABLE: &str = "CARGO_SYCL_SETTINGS";

/// The settings of a build.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// The hash of this tool.
    pub(crate) tool: String,
    /// The targets of the images, in the order in which they are linked.
    pub(crate) targets: Vec<String>,
    /// Whether the user named them. What a named target cannot run is a warning each.
    pub(crate) are_targets_named: bool,
    /// `strict`, `contract` or `fast`.
    pub(crate) float: String,
    /// How many work-items native code of hosts runs at once: a number, or `auto`. What the user did not say depends on the profile.
    pub(crate) lanes: Option<String>,
    /// Where the compiler writes what it does.
    pub(crate) dump: Option<PathBuf>,
    /// Whether the times of the compiler's passes are shown.
    pub(crate) time_passes: bool,
    /// The folder of this build's stamps.
    pub(crate) stamps: PathBuf,
    /// A wrapper of the user's, such as sccache, for the host's compilations.
    pub(crate) inner: Option<PathBuf>,
    /// NVIDIA's assembler, which looks at new code, if it is there and wanted.
    pub(crate) ptxas: Option<PathBuf>,
    /// Where progress is shown, if the user wants to see it.
    pub(crate) progress: Option<PathBuf>,
    /// Whether the build ends when kernels are checked, without code for any.
    pub(crate) only_checks: bool,
    /// Whether kernels may capture addresses of the host.
    pub(crate) allows_host_captures: bool,
}

impl Settings {
    /// What the processes above left in the environment, if there is something.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn from_environment() -> Result<Option<Self>> {
        let Some(text) = env::var_os(VARIABLE) else { return Ok(None) };
        let settings = serde_json::from_slice(text.as_encoded_bytes());
        settings
            .map(Some)
            .map_err(|error| Failure::new(format!("{VARIABLE} is of another version of this tool: {error}")))
    }

    /// The text for the variable.
    pub(crate) fn to_text(&self) -> String {
        // Text, paths and lists of them always have a JSON form, unless a path is not Unicode, which `parse` refuses.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The targets but those for native code, unless there are no others.
    pub(crate) fn device_targets(&self) -> impl Iterator<Item = &str> {
        let is_native = |target: &String| target.starts_with(NATIVE);
        let has_others = !self.targets.iter().all(is_native);
        self.targets.iter().filter(move |target| !(has_others && is_native(target))).map(String::as_str)
    }

    /// What linked outputs depend on, beside the sources, and the messages about them, which cargo repeats.
    pub(crate) fn key(&self) -> String {
        let dump = self.dump.as_ref().map(|dump| dump.to_string_lossy()).unwrap_or_default();
        let targets = self.targets.join(",");
        let ptxas = self.ptxas.as_ref().map(|ptxas| ptxas.to_string_lossy()).unwrap_or_default();
        let lanes = self.lanes.as_deref().unwrap_or_default();
        let Self { tool, are_targets_named, float, time_passes, .. } = self;
        let text = format!("{tool}\n{targets} {are_targets_named}\n{float} {lanes}\n{dump}\n{ptxas}\n{time_passes}");
        short_hash(text.as_bytes())
    }
}

/// A target that this tool makes images for.
pub(crate) fn parse_target(text: &str) -> Result<ImageTarget> {
    // The version that every device of OpenCL 2.1 and later takes; kernels that need a later one get it.
    let text = if text == "spirv" { "spirv1.2" } else { text };
    let is_named = |level: &HostLevel| text.strip_prefix("host-v").is_some_and(|n| n == level.number().to_string());
    if let Some(level) = HostLevel::ALL.into_iter().find(is_named) {
        return Ok(ImageTarget::Host { triple: HOST.to_owned(), level: Some(level) });
    }
    let target: ImageTarget = text.parse().map_err(|error| Failure::new(format!("--targets: {error}")))?;
    match target {
        ImageTarget::Ptx { sm } if COMPUTE_CAPABILITIES.contains(&sm) => Ok(target),
        ImageTarget::Ptx { sm } => {
            let known = COMPUTE_CAPABILITIES.map(|sm| format!("sm_{sm}")).join(", ");
            Err(Failure::new(format!("--targets: expected one of {known}, found sm_{sm}")))
        }
        ImageTarget::AmdGcn { arch } if AMD_PROCESSORS.contains(&arch.split(':').next().unwrap_or_default()) => {
            Ok(ImageTarget::AmdGcn { arch })
        }
        ImageTarget::AmdGcn { arch } => {
            let known = AMD_PROCESSORS.join(", ");
            Err(Failure::new(format!("--targets: expected one of {known}, found {arch}")))
        }
        ImageTarget::SpirV { major: 1, minor: 2 } => Ok(target),
        ImageTarget::Host { ref triple, level: Some(_) } if triple == HOST => Ok(target),
        other => Err(Failure::new(format!(
            "--targets: expected sm_<number>, gfx<processor>, spirv, host-v3 or host-v4, found {other}: there is no code generator for it"
        ))),
    }
}

/// A policy for floating-point arithmetic.
pub(crate) fn parse_float(text: &str) -> Result<FloatPolicy> {
    match text {
        "strict" => Ok(FloatPolicy::Strict),
        "contract" => Ok(FloatPolicy::Contract),
        "fast" => Ok(FloatPolicy::Fast),
        _ => Err(Failure::new(format!("--float: expected strict, contract or fast, found {text:?}"))),
    }
}

/// A number of work-items that native code runs at once.
pub(crate) fn parse_lanes(text: &str) -> Result<Lanes> {
    if text == "auto" {
        return Ok(Lanes::Auto);
    }
    let lanes = text.parse().ok().filter(|lanes: &u32| lanes.is_power_of_two() && *lanes <= MAX_LANES);
    let refused = || Failure::new(format!("--lanes: expected auto, 1, 2, 4, 8, 16 or 32, found {text:?}"));
    lanes.map(Lanes::Number).ok_or_else(refused)
}

/// The name of the error that a kernel captures an address of the host.
pub(crate) const HOST_CAPTURE: &str = "host_capture";

/// An error that a build can do without.
pub(crate) fn parse_allowed(text: &str) -> Result<()> {
    match text {
        HOST_CAPTURE => Ok(()),
        _ => Err(Failure::new(format!("expected {HOST_CAPTURE:?}, found {text:?}"))),
    }
}

/// Enough of a hash to tell builds apart.
pub(crate) fn short_hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)[..16])
}

/// The digits of a hash.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn settings() -> Settings {
        Settings {
            tool: "t".to_owned(),
            targets: vec!["sm_70".to_owned()],
            are_targets_named: true,
            float: "contract".to_owned(),
            lanes: None,
            dump: None,
            time_passes: false,
            stamps: "/t/stamps".into(),
            inner: None,
            ptxas: None,
            progress: None,
            only_checks: false,
            allows_host_captures: false,
        }
    }

    #[test]
    fn settings_come_back_from_their_text() {
        let settings = Settings { dump: Some("/a b/\"c\"".into()), inner: Some("sccache".into()), ..settings() };
        assert_eq!(serde_json::from_str::<Settings>(&settings.to_text()).unwrap(), settings);
    }

    #[test]
    fn the_key_is_of_what_changes_outputs_and_messages() {
        let key = settings().key();
        assert_ne!(Settings { tool: "u".to_owned(), ..settings() }.key(), key);
        assert_ne!(Settings { targets: vec!["sm_90".to_owned()], ..settings() }.key(), key);
        assert_ne!(Settings { are_targets_named: false, ..settings() }.key(), key);
        assert_ne!(Settings { time_passes: true, ..settings() }.key(), key);
        assert_ne!(Settings { float: "fast".to_owned(), ..settings() }.key(), key);
        assert_ne!(Settings { lanes: Some("8".to_owned()), ..settings() }.key(), key);
        assert_ne!(Settings { dump: Some("d".into()), ..settings() }.key(), key);
        assert_ne!(Settings { ptxas: Some("p".into()), ..settings() }.key(), key);
        assert_eq!(Settings { inner: Some("sccache".into()), ..settings() }.key(), key);
        assert_eq!(Settings { progress: Some("/p".into()), ..settings() }.key(), key);
    }

    #[test]
    fn targets_without_a_code_generator_are_refused() {
        assert_eq!(parse_target("sm_90"), Ok(ImageTarget::Ptx { sm: 90 }));
        assert_eq!(parse_target("spirv"), Ok(ImageTarget::SpirV { major: 1, minor: 2 }));
        for (text, level) in [("host-v3", HostLevel::V3), ("host-v4", HostLevel::V4)] {
            let target = ImageTarget::Host { triple: "x86_64-unknown-linux-gnu".to_owned(), level: Some(level) };
            assert_eq!(parse_target(&target.to_string()), Ok(target.clone()));
            assert_eq!(parse_target(text), Ok(target));
        }
        assert_eq!(parse_target("gfx90a:xnack-"), Ok(ImageTarget::AmdGcn { arch: "gfx90a:xnack-".to_owned() }));
        let hosts = ["host:x86_64-unknown-linux-gnu", "host:x86_64-unknown-linux-musl+x86-64-v3", "host-v2", "host-v"];
        for text in ["sm_60", "sm_71", "spirv1.4", "gfx803", "cuda", "host-v03", ""].into_iter().chain(hosts) {
            let error = parse_target(text).unwrap_err().to_string();
            assert!(error.starts_with("--targets: "), "{error}");
        }
    }
}
