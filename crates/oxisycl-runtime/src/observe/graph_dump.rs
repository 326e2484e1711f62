//! The graph dump: command groups and their dependencies as a DOT file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::ids::NodeId;

/// Collects nodes and edges while it is on.
#[derive(Debug, Default)]
pub struct GraphDump {
    on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    path: Option<PathBuf>,
    nodes: Vec<(NodeId, String, String)>,
    edges: Vec<(NodeId, NodeId)>,
}

impl GraphDump {
    /// Whether nodes are collected.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Starts collecting. With a path, the dump is written there when the process ends. The file is created at once, so
    /// that a path that cannot be written is an error now.
    pub fn start(&self, path: Option<&Path>) -> std::io::Result<()> {
        if let Some(path) = path {
            std::fs::File::create(path)?;
        }
        self.state.lock().path = path.map(Path::to_owned);
        self.on.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Adds a node that depends on earlier ones.
    pub fn record(&self, node: NodeId, label: &str, device: &str, dependencies: impl Iterator<Item = NodeId>) {
        let mut state = self.state.lock();
        state.nodes.push((node, label.to_owned(), device.to_owned()));
        state.edges.extend(dependencies.map(|earlier| (earlier, node)));
    }

    /// The graph so far in DOT. Edges to nodes that had already ended when they were needed are not there.
    pub fn render(&self) -> String {
        let state = self.state.lock();
        let mut out = String::from("digraph oxisycl {\n  node [shape=box];\n");
        for (node, label, device) in &state.nodes {
            let label = label.replace('\\', "\\\\").replace('"', "\\\"");
            let device = device.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(out, "  n{node} [label=\"{node}: {label}\\n{device}\"];");
        }
        for (earlier, later) in &state.edges {
            let _ = writeln!(out, "  n{earlier} -> n{later};");
        }
        out.push_str("}\n");
        out
    }

    /// Stops collecting and forgets everything. Returns what [`render`](Self::render) would have.
    pub fn stop(&self) -> String {
        let text = self.render();
        self.on.store(false, Ordering::Relaxed);
        *self.state.lock() = State::default();
        text
    }

    /// Writes the dump to the path given to [`start`](Self::start), if there is one.
    pub fn write(&self) -> std::io::Result<()> {
        let path = self.state.lock().path.clone();
        path.map_or(Ok(()), |path| std::fs::write(path, self.render()))
    }
}

/// The process's graph dump.
pub fn graph_dump() -> &'static GraphDump {
    static DUMP: std::sync::LazyLock<GraphDump> = std::sync::LazyLock::new(GraphDump::default);
    &DUMP
}
