//! Which processors share a NUMA node or a cache.
//!
//! [`Topology`] is a trait so that partitions can be tested on machines that do not exist. [`SysfsTopology`] reads Linux' files; where
//! there are none, it knows no groups. Does not pin threads.

use std::fs;
use std::path::{Path, PathBuf};

/// Groups of processors, each a list of processor numbers. A level that is not known has no groups.
pub trait Topology: Send + Sync {
    /// Processors that the program may use, in ascending order; empty if unknown.
    fn processors(&self) -> Vec<usize>;

    /// Processors per NUMA node.
    fn numa_nodes(&self) -> Vec<Vec<usize>>;

    /// Processors per level-3 cache.
    fn l3_groups(&self) -> Vec<Vec<usize>>;

    /// Processors per level-2 cache.
    fn l2_groups(&self) -> Vec<Vec<usize>>;
}

/// The topology in `/sys/devices/system`.
#[derive(Clone, Debug)]
pub struct SysfsTopology {
    root: PathBuf,
}

impl Default for SysfsTopology {
    fn default() -> Self {
        Self { root: PathBuf::from("/sys/devices/system") }
    }
}

impl SysfsTopology {
    /// Reads another folder of the same form.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn online(&self) -> Vec<usize> {
        read_list(&self.root.join("cpu/online"))
    }

    /// The groups of processors that share the unified or data cache of that level.
    fn cache_groups(&self, level: &str) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for processor in self.online() {
            let folder = self.root.join(format!("cpu/cpu{processor}/cache"));
            let Ok(caches) = fs::read_dir(folder) else { continue };
            for cache in caches.flatten() {
                let cache = cache.path();
                let kind = read_word(&cache.join("type"));
                if read_word(&cache.join("level")) == level && kind != "Instruction" {
                    let group = read_list(&cache.join("shared_cpu_list"));
                    if !group.is_empty() && !groups.contains(&group) {
                        groups.push(group);
                    }
                }
            }
        }
        groups.sort();
        groups
    }
}

impl Topology for SysfsTopology {
    fn processors(&self) -> Vec<usize> {
        let online = self.online();
        match allowed() {
            Some(allowed) => online.into_iter().filter(|processor| allowed(*processor)).collect(),
            None => online,
        }
    }

    fn numa_nodes(&self) -> Vec<Vec<usize>> {
        let nodes = read_list(&self.root.join("node/online"));
        nodes
            .into_iter()
            .map(|node| read_list(&self.root.join(format!("node/node{node}/cpulist"))))
            .filter(|group| !group.is_empty())
            .collect()
    }

    fn l3_groups(&self) -> Vec<Vec<usize>> {
        self.cache_groups("3")
    }

    fn l2_groups(&self) -> Vec<Vec<usize>> {
        self.cache_groups("2")
    }
}

/// Whether the process may run on a processor, as a function of its number.
#[cfg(target_os = "linux")]
fn allowed() -> Option<impl Fn(usize) -> bool> {
    // SAFETY: the set is plain data for which all-zero bytes are a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the address and the size are those of `set`; 0 is the calling thread.
    let code = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    // SAFETY: the number is checked against the capacity of the set.
    let test = move |processor| processor < libc::CPU_SETSIZE as usize && unsafe { libc::CPU_ISSET(processor, &set) };
    (code == 0).then_some(test)
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Option<fn(usize) -> bool> {
    None
}

fn read_word(path: &Path) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

fn read_list(path: &Path) -> Vec<usize> {
    parse_list(&read_word(path))
}

/// Reads the kernel's form of a list, as in `0-3,8,10-11`. What cannot be read is left out.
fn parse_list(text: &str) -> Vec<usize> {
    const MOST: usize = 1 << 16;
    let mut numbers = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>())
            && last < MOST
        {
            numbers.extend(first..=last);
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
