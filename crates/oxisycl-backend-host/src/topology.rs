//! The processors that share a NUMA node or a cache.
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
    /// Reads another folder with the same structure as `/sys/devices/system`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn online(&self) -> Vec<usize> {
        read_list(&self.root.join("cpu/online"))
    }

    /// The groups of processors that share the unified or data cache of level `level`.
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

/// A function that tells whether the process may run on the processor with a number.
#[cfg(all(target_os = "linux", not(miri)))]
fn allowed() -> Option<impl Fn(usize) -> bool> {
    // SAFETY: the set is plain data for which all-zero bytes are a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the address and the size are those of `set`; 0 is the calling thread.
    let code = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    // SAFETY: the number is checked against the capacity of the set.
    let test = move |processor| processor < libc::CPU_SETSIZE as usize && unsafe { libc::CPU_ISSET(processor, &set) };
    (code == 0).then_some(test)
}

#[cfg(any(not(target_os = "linux"), miri))]
fn allowed() -> Option<fn(usize) -> bool> {
    None
}

fn read_word(path: &Path) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

fn read_list(path: &Path) -> Vec<usize> {
    parse_list(&read_word(path))
}

/// Parses a list in the kernel's form, such as `0-3,8,10-11`. Invalid parts are left out.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_nonsense_is_left_out() {
        assert_eq!(parse_list("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(parse_list("5"), [5]);
        assert_eq!(parse_list("3-1,x,4-,-7,2,2"), [2]);
        assert!(parse_list("").is_empty());
        assert!(parse_list("0-99999999999").is_empty());
    }

    /// A folder like `/sys/devices/system` that goes away with the value.
    struct Machine(PathBuf);

    impl Machine {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("oxisycl-topology-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().expect("a file in a folder")).expect("a folder");
                fs::write(path, text).expect("a file");
            }
            Self(root)
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn nodes_and_caches_are_found_in_files() {
        let mut files =
            vec![("cpu/online".to_owned(), "0-3\n".to_owned()), ("node/online".to_owned(), "0,2".to_owned())];
        files.push(("node/node0/cpulist".to_owned(), "0-1".to_owned()));
        files.push(("node/node2/cpulist".to_owned(), "2-3".to_owned()));
        for cpu in 0..4 {
            let pair = if cpu < 2 { "0-1" } else { "2-3" };
            for (index, level, kind, shared) in [
                (0, "1", "Data", pair),
                (1, "2", "Instruction", "0-3"),
                (2, "2", "Unified", pair),
                (3, "3", "Unified", "0-3"),
            ] {
                let cache = format!("cpu/cpu{cpu}/cache/index{index}");
                files.push((format!("{cache}/level"), level.to_owned()));
                files.push((format!("{cache}/type"), kind.to_owned()));
                files.push((format!("{cache}/shared_cpu_list"), shared.to_owned()));
            }
        }
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let machine = Machine::new("found", &files);
        let topology = SysfsTopology::at(&machine.0);
        assert_eq!(topology.numa_nodes(), [[0, 1], [2, 3]]);
        assert_eq!(topology.l3_groups(), [[0, 1, 2, 3]]);
        assert_eq!(topology.l2_groups(), [[0, 1], [2, 3]]);
    }

    #[test]
    fn a_machine_without_files_has_no_groups() {
        let topology = SysfsTopology::at("/nonexistent");
        assert!(topology.processors().is_empty() && topology.numa_nodes().is_empty());
        assert!(topology.l3_groups().is_empty() && topology.l2_groups().is_empty());
    }
}
