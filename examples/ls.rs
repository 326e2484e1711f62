//! Lists every device of every platform with its key properties, and what `OXISYCL_DEVICE_SELECTOR` hides.
//!
//! The name in front of a device, such as `host:0`, is what the variable calls it.
//!
//! `cargo run --example ls`

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use oxisycl::prelude::{Aspect, Device, Platform};
use oxisycl::{AffinityDomain, DeviceInfo, LocalMemoryType, PartitionProperty};

const VARIABLE: &str = "OXISYCL_DEVICE_SELECTOR";
/// Columns of the terminal that lists are wrapped to.
const WIDTH: usize = 100;
/// Columns in front of a property's value.
const INDENT: usize = 22;

fn main() -> ExitCode {
    match list(&mut io::stdout().lock()) {
        // The reader of a pipe may have seen enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Output(error)) => {
            eprintln!("error: cannot write the list: {error}");
            ExitCode::FAILURE
        }
        Err(Failure::Devices(error)) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

enum Failure {
    Devices(oxisycl::Error),
    Output(io::Error),
}

impl From<oxisycl::Error> for Failure {
    fn from(error: oxisycl::Error) -> Self {
        Self::Devices(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

fn list(out: &mut impl Write) -> Result<(), Failure> {
    let platforms = Platform::all()?;
    // Without visible devices there is no default device either; that is no failure here.
    let default = Device::default().ok();
    for platform in &platforms {
        let info = platform.info();
        writeln!(out, "{}  {} {}, by {}\n", platform.backend(), info.name, info.version, info.vendor)?;
        for device in platform.devices() {
            let mark = if Some(&device) == default.as_ref() { "  (default)" } else { "" };
            writeln!(out, "  {}  {}{mark}", device.selector().unwrap_or("-"), device.name())?;
            for (property, value) in properties(&device) {
                writeln!(out, "    {property:<width$}{value}", width = INDENT - 4)?;
            }
            writeln!(out)?;
        }
        if platform.devices().is_empty() {
            writeln!(out, "  no visible device\n")?;
        }
    }
    hidden(out, &platforms)
}

/// Says what the environment hides.
fn hidden(out: &mut impl Write, platforms: &[Platform]) -> Result<(), Failure> {
    let Some(value) = env::var_os(VARIABLE) else {
        writeln!(out, "{VARIABLE} is not set: nothing is hidden")?;
        return Ok(());
    };
    let hidden: Vec<(&str, &DeviceInfo)> = platforms.iter().flat_map(Platform::hidden_devices).collect();
    let what = match hidden.len() {
        0 => "nothing",
        1 => "1 device:",
        n => &format!("{n} devices:"),
    };
    writeln!(out, "{VARIABLE}=\"{}\" hides {what}", value.to_string_lossy())?;
    let longest = hidden.iter().map(|(selector, _)| selector.len()).max().unwrap_or(0);
    for (selector, info) in hidden {
        writeln!(out, "  {selector:longest$}  {:11}  {}", info.device_type, info.name)?;
    }
    Ok(())
}

fn properties(device: &Device) -> Vec<(&'static str, String)> {
    let info = device.info();
    let clock =
        if info.max_clock_frequency > 0 { format!(" at {} MHz", info.max_clock_frequency) } else { String::new() };
    let vectors = info.native_vector_width;
    vec![
        ("type", info.device_type.to_string()),
        ("vendor", format!("{} (0x{:04x})", info.vendor, info.vendor_id)),
        ("driver", format!("{} (backend {})", info.driver_version, info.backend_version)),
        ("compute units", format!("{}{clock}", info.max_compute_units)),
        ("global memory", global_memory(info)),
        ("local memory", local_memory(info)),
        ("work-groups", format!("up to {} work-items, sub-groups of {}", info.max_work_group_size, sub_groups(info))),
        ("vector registers", format!("{} x f32, {} x f64", vectors.float, vectors.double)),
        ("kernels", kernels(device)),
        ("aspects", wrapped(info.aspects.iter().map(|&aspect| Aspect::name(aspect)))),
        ("sub-devices", sub_devices(info)),
    ]
}

/// The code that it runs.
fn kernels(device: &Device) -> String {
    match device.image_targets() {
        [] => "the program's own code".to_owned(),
        [only] => format!("images for {only}"),
        [best, .., least] => format!("images for {best}, or for earlier ones down to {least}"),
    }
}

fn global_memory(info: &DeviceInfo) -> String {
    let cache = match info.global_mem_cache_size {
        0 => String::new(),
        size => format!(", behind {} of cache", bytes(size)),
    };
    let whole = bytes(info.global_mem_size);
    match info.max_mem_alloc_size {
        most if most < info.global_mem_size => format!("{whole}, at most {} in one allocation{cache}", bytes(most)),
        _ => format!("{whole}{cache}"),
    }
}

fn local_memory(info: &DeviceInfo) -> String {
    match info.local_mem_type {
        LocalMemoryType::None => "none".to_owned(),
        LocalMemoryType::Local => bytes(info.local_mem_size),
        LocalMemoryType::Global => format!("{}, part of global memory", bytes(info.local_mem_size)),
    }
}

fn sub_groups(info: &DeviceInfo) -> String {
    info.sub_group_sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" or ")
}

fn sub_devices(info: &DeviceInfo) -> String {
    let ways = info.partition_properties.iter().map(|property| match property {
        PartitionProperty::Equally => "equally".to_owned(),
        PartitionProperty::ByCounts => "by counts".to_owned(),
        PartitionProperty::ByAffinityDomain => {
            let domains = info.partition_affinity_domains.iter().map(|&domain| domain_name(domain));
            format!("by {}", domains.collect::<Vec<_>>().join(" or "))
        }
    });
    let ways: Vec<String> = ways.collect();
    match (ways.is_empty(), info.partition_max_sub_devices) {
        (true, _) | (_, 0) => "none".to_owned(),
        (false, most) => format!("up to {most}, {}", ways.join(", ")),
    }
}

fn domain_name(domain: AffinityDomain) -> &'static str {
    match domain {
        AffinityDomain::Numa => "numa node",
        AffinityDomain::L2Cache => "L2 cache",
        AffinityDomain::L3Cache => "L3 cache",
        AffinityDomain::NextPartitionable => "the next domain",
        _ => "another domain",
    }
}

/// Words in lines that fit the terminal, each line but the first indented to the column of the values.
fn wrapped<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    let mut column = INDENT;
    for word in words {
        if column > INDENT && column + 1 + word.len() > WIDTH {
            text.push_str(&format!("\n{:INDENT$}", ""));
            column = INDENT;
        } else if column > INDENT {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.len();
    }
    text
}

/// A size in the largest unit that keeps it at least one.
fn bytes(size: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let exponent = (size.max(1).ilog2() / 10).min(4);
    let value = size as f64 / f64::from(1u32 << 10).powi(exponent as i32);
    let digits = if exponent == 0 || value.fract() < 0.05 { 0 } else { 1 };
    format!("{value:.digits$} {}", units[exponent as usize])
}
