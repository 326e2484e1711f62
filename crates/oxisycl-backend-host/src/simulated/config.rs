//! The configuration of simulated devices, by builder methods or by environment variables.

use std::time::Duration;

use oxisycl_backend::UsmKind;
use oxisycl_types::DeviceType;

use super::fault::Fault;

const COUNT_VARIABLE: &str = "OXISYCL_SIMULATED";
const LATENCY_VARIABLE: &str = "OXISYCL_SIMULATED_LATENCY_US";
const MEMORY_VARIABLE: &str = "OXISYCL_SIMULATED_MEMORY";
const FAULTS_VARIABLE: &str = "OXISYCL_SIMULATED_FAULTS";
const MAX_DEVICES: usize = 64;
const DEFAULT_MEMORY: u64 = 1 << 30;

/// The properties of a set of simulated devices.
#[derive(Clone, Debug)]
pub struct SimulatedConfig {
    pub(crate) count: usize,
    pub(crate) device_type: DeviceType,
    pub(crate) usm: Vec<UsmKind>,
    pub(crate) latency: Duration,
    pub(crate) memory: u64,
    pub(crate) peer_copies: bool,
    pub(crate) profiling: bool,
    pub(crate) fp16: bool,
    pub(crate) fp64: bool,
    pub(crate) atomic64: bool,
    pub(crate) images: bool,
    pub(crate) native_kernels: bool,
    pub(crate) waiting_loads: bool,
    pub(crate) seed: Option<u64>,
    pub(crate) faults: Vec<Fault>,
}

impl SimulatedConfig {
    /// A configuration of `count` devices, 1 to 64. They are accelerators with 1 GiB of memory each, all kinds of USM, copies between them,
    /// no latency and no faults. They run ready commands in the order of submission.
    pub fn new(count: usize) -> Self {
        Self {
            count: count.clamp(1, MAX_DEVICES),
            device_type: DeviceType::Accelerator,
            usm: vec![UsmKind::Device, UsmKind::Host, UsmKind::Shared],
            latency: Duration::ZERO,
            memory: DEFAULT_MEMORY,
            peer_copies: true,
            profiling: true,
            fp16: true,
            fp64: true,
            atomic64: true,
            images: true,
            native_kernels: true,
            waiting_loads: false,
            seed: None,
            faults: Vec::new(),
        }
    }

    /// Sets the device type that they report.
    #[must_use]
    pub fn device_type(mut self, device_type: DeviceType) -> Self {
        self.device_type = device_type;
        self
    }

    /// Sets the kinds of USM allocations that they have. Device memory for buffers is always there.
    #[must_use]
    pub fn usm(mut self, kinds: &[UsmKind]) -> Self {
        self.usm = kinds.to_vec();
        self
    }

    /// Sets how long each command takes, beside its work.
    #[must_use]
    pub fn latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Sets the bytes of memory per device.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets whether one device can copy to another directly. If not, copies go through the host.
    #[must_use]
    pub fn peer_copies(mut self, enabled: bool) -> Self {
        self.peer_copies = enabled;
        self
    }

    /// Sets whether they have the aspect `queue_profiling`.
    #[must_use]
    pub fn profiling(mut self, enabled: bool) -> Self {
        self.profiling = enabled;
        self
    }

    /// Sets whether they have the aspect `fp16`. Like `fp64` and `atomic64`, the aspect decides which device images they accept. The
    /// program's own kernels, which they run otherwise, may use what the host has.
    #[must_use]
    pub fn fp16(mut self, enabled: bool) -> Self {
        self.fp16 = enabled;
        self
    }

    /// Sets whether they have the aspect `fp64`.
    #[must_use]
    pub fn fp64(mut self, enabled: bool) -> Self {
        self.fp64 = enabled;
        self
    }

    /// Sets whether they have the aspect `atomic64`.
    #[must_use]
    pub fn atomic64(mut self, enabled: bool) -> Self {
        self.atomic64 = enabled;
        self
    }

    /// Sets whether they have the aspect `image`, which all other devices have.
    #[must_use]
    pub fn images(mut self, enabled: bool) -> Self {
        self.images = enabled;
        self
    }

    /// Whether they run the program's own kernels, like the host device. If not, they are like devices that need an image of
    /// each kernel, made by a device compiler, for the target `host:simulated`. No compiler makes such images: they refuse
    /// every kernel, unless a test registers some. Copies and fills work.
    #[must_use]
    pub fn native_kernels(mut self, enabled: bool) -> Self {
        self.native_kernels = enabled;
        self
    }

    /// Whether they load an image only once no command runs, and begin no command until it is loaded, as NVIDIA's driver does. Only devices that
    /// need [images](Self::native_kernels) load some.
    #[must_use]
    pub fn waiting_loads(mut self, enabled: bool) -> Self {
        self.waiting_loads = enabled;
        self
    }

    /// Makes them run ready commands in an order that the seed determines, instead of the order of submission.
    #[must_use]
    pub fn shuffled(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Adds a fault.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Reads the environment. `None` if `OXISYCL_SIMULATED` is not set. The error names the variable and its possible values.
    pub fn from_env() -> Result<Option<Self>, String> {
        Self::from_variables(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// Reads the variables that `get` returns, as [`from_env`](Self::from_env) reads the environment's.
    pub(crate) fn from_variables(get: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let Some(text) = get(COUNT_VARIABLE) else { return Ok(None) };
        let count = text.trim().parse().ok().filter(|count| (1..=MAX_DEVICES).contains(count)).ok_or_else(|| {
            format!("{COUNT_VARIABLE}=\"{text}\": expected a number of devices from 1 to {MAX_DEVICES}")
        })?;
        let mut config = Self::new(count);
        if let Some(text) = get(LATENCY_VARIABLE) {
            let microseconds = text
                .trim()
                .parse()
                .map_err(|_| format!("{LATENCY_VARIABLE}=\"{text}\": expected a whole number of microseconds"))?;
            config.latency = Duration::from_micros(microseconds);
        }
        if let Some(text) = get(MEMORY_VARIABLE) {
            config.memory = parse_bytes(&text).ok_or_else(|| {
                format!("{MEMORY_VARIABLE}=\"{text}\": expected bytes, or a number followed by k, M or G")
            })?;
        }
        if let Some(text) = get(FAULTS_VARIABLE) {
            for part in text.split(',').filter(|part| !part.trim().is_empty()) {
                let fault = Fault::parse(part).filter(|fault| fault.device.is_none_or(|device| device < count));
                config.faults.push(fault.ok_or_else(|| {
                    format!(
                        "{FAULTS_VARIABLE}=\"{text}\": \"{part}\" is not operation:count or operation:count@device with an operation \
                         of launch, copy, fill, allocate, other, a count from 1 and a device below {count}"
                    )
                })?);
            }
        }
        Ok(Some(config))
    }
}

/// Parses a number of bytes with an optional binary suffix.
fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 10),
        'm' | 'M' => (&text[..text.len() - 1], 20),
        'g' | 'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use oxisycl_backend::Operation;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<SimulatedConfig>, String> {
        SimulatedConfig::from_variables(|name| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn without_the_variable_there_are_no_devices() {
        assert!(read(&[]).expect("no error").is_none());
        assert!(read(&[(MEMORY_VARIABLE, "nonsense")]).expect("no error").is_none());
    }

    #[test]
    fn all_variables_are_read() {
        let config = read(&[
            (COUNT_VARIABLE, "3"),
            (LATENCY_VARIABLE, "250"),
            (MEMORY_VARIABLE, "16M"),
            (FAULTS_VARIABLE, "copy:3, launch:1@1,allocate:2"),
        ]);
        let config = config.expect("no error").expect("devices");
        assert_eq!((config.count, config.latency, config.memory), (3, Duration::from_micros(250), 16 << 20));
        let expected = [(Operation::Copy, 3, None), (Operation::Launch, 1, Some(1)), (Operation::Allocate, 2, None)];
        let expected = expected.map(|(operation, count, device)| Fault { operation, count, device });
        assert_eq!(config.faults, expected);
    }

    #[test]
    fn a_wrong_value_is_an_error_that_quotes_it() {
        for (name, text) in [
            (COUNT_VARIABLE, "0"),
            (COUNT_VARIABLE, "65"),
            (COUNT_VARIABLE, "some"),
            (LATENCY_VARIABLE, "-1"),
            (MEMORY_VARIABLE, ""),
            (MEMORY_VARIABLE, "12T"),
            (MEMORY_VARIABLE, "99999999999999G"),
            (FAULTS_VARIABLE, "copy"),
            (FAULTS_VARIABLE, "copy:0"),
            (FAULTS_VARIABLE, "jump:1"),
            (FAULTS_VARIABLE, "copy:1@2"),
            (FAULTS_VARIABLE, "copy:1@x"),
        ] {
            let mut variables = vec![(name, text)];
            if name != COUNT_VARIABLE {
                variables.push((COUNT_VARIABLE, "2"));
            }
            let error = read(&variables).expect_err(text);
            assert!(error.starts_with(&format!("{name}=\"{text}\": ")), "{error}");
        }
    }

    #[test]
    fn bytes_have_binary_suffixes() {
        assert_eq!(parse_bytes("7"), Some(7));
        assert_eq!(parse_bytes("2k"), Some(2048));
        assert_eq!(parse_bytes("3 G"), Some(3 << 30));
    }
}
