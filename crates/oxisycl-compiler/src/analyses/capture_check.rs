//! Checks what a kernel captures, by its debug type (soundness rule 2).
//!
//! `Copy + Send + Sync` lets references, function pointers and trait objects through, which are addresses of the host. A captured value
//! may consist of scalars, and of addresses inside types of OxiSYCL, which the runtime fills in for the device. Anything else, and
//! anything that cannot be understood, keeps the kernel on the host. For messages, the variable that the closure captured is found by the
//! debug information of the closure's code.

use crate::analyses::definitions::Definitions;
use crate::analyses::source_location;
use crate::kernel::{CaptureFault, CapturedVariable, ELEMENT, RefusedCapture, path_text};
use crate::llvm::{Node, NodeKind, Value, tag};
use crate::origin;

/// The captures for which a kernel must stay on the host. None if all of them may leave it. `entry` is the kernel's entry, before anything
/// removed debug information.
pub(crate) fn refused<'c>(entry: Value<'c>, definitions: &Definitions<'c>) -> Vec<RefusedCapture> {
    let unknown = || {
        let reason =
            "its captures cannot be checked: the type of the kernel is not in the debug information".to_owned();
        vec![RefusedCapture { reason, path: Vec::new(), fault: None, closure: None, variable: None }]
    };
    let Some(kernel) = kernel_type(entry) else { return unknown() };
    let mut walk = Walk {
        path: Vec::new(),
        closures: Vec::new(),
        seen: Vec::new(),
        is_trusted: false,
        n_values: 0,
        found: Vec::new(),
    };
    walk.check(kernel);
    // Something is captured, and nothing of it was seen: the nodes are not laid out as this code believes.
    if walk.found.is_empty() && kernel.size_in_bits() > 0 && walk.n_values == 0 {
        return unknown();
    }
    walk.found.into_iter().map(|found| found.with_places(entry, definitions)).collect()
}

/// The type of the kernel with this entry.
fn kernel_type(entry: Value<'_>) -> Option<Node<'_>> {
    let parameters = Node::of_function(entry)?.operands().into_iter().map(Node::operands);
    parameters.flatten().find(|node| node.kind() == NodeKind::TemplateType)?.template_type()
}

/// The name of the kernel with this entry, for messages: that of its type.
pub(crate) fn kernel_name(entry: Value<'_>) -> String {
    match kernel_type(entry) {
        Some(kernel) => origin::type_path(&namespaces(kernel), &kernel.name()),
        None => entry.name().to_owned(),
    }
}

/// A part of a capture that must not leave the host.
struct Found<'c> {
    reason: String,
    /// The path from the innermost closure on, or from the kernel.
    path: Vec<String>,
    fault: Option<CaptureFault>,
    /// The closures around it, the innermost one last. Each has the path from its captured variable on.
    closures: Vec<(Node<'c>, Vec<String>)>,
}

impl<'c> Found<'c> {
    fn with_places(self, entry: Value<'c>, definitions: &Definitions<'c>) -> RefusedCapture {
        let Self { reason, path, fault, closures } = self;
        let code = |closure: &Node<'c>| source_location::code_of_closure(entry, *closure, definitions);
        let innermost = closures.last().and_then(|(closure, _)| source_location::of_code(code(closure)?));
        // A closure that the kernel does not call has no code. Then the variable is the one that holds the closure.
        let variable = closures.iter().rev().find_map(|(closure, path)| {
            let place = source_location::of_variable(code(closure)?, path.first()?)?;
            Some(CapturedVariable { path: path.clone(), place })
        });
        RefusedCapture { reason, path, fault, closure: innermost, variable }
    }
}

struct Walk<'c> {
    /// The names of the members that lead to the type.
    path: Vec<String>,
    /// The closures among the types on that path, and the length of the path that leads to each.
    closures: Vec<(Node<'c>, usize)>,
    /// The types that were visited without a finding, and whether this was inside a trusted type.
    seen: Vec<(Node<'c>, bool)>,
    /// Whether the type is a part of a trusted type.
    is_trusted: bool,
    /// The number of scalars and trusted types found so far.
    n_values: usize,
    found: Vec<Found<'c>>,
}

impl<'c> Walk<'c> {
    /// Checks a type and its parts.
    fn check(&mut self, node: Node<'c>) {
        match node.kind() {
            NodeKind::BasicType => self.n_values += 1,
            // Safe code cannot send a raw pointer to another thread, and so to no kernel.
            NodeKind::DerivedType if is_address(node.tag()) && self.is_trusted && node.name().starts_with('*') => {
                self.n_values += 1;
            }
            // A function item, which rustc describes as a pointer without size.
            NodeKind::DerivedType if is_address(node.tag()) && node.size_in_bits() == 0 => {}
            NodeKind::DerivedType if is_address(node.tag()) => self.refuse_address(node),
            NodeKind::DerivedType if node.tag() == tag::MEMBER => {
                // Function items and the like: nothing is passed.
                if node.size_in_bits() == 0 {
                    return;
                }
                self.path.push(node.name());
                match node.base() {
                    Some(base) => self.check(base),
                    None => self.refuse(node, "of a type that is not known", None),
                }
                self.path.pop();
            }
            NodeKind::DerivedType => node.base().into_iter().for_each(|base| self.check(base)),
            NodeKind::CompositeType => self.check_composite(node),
            _ => self.refuse(node, "of a type that is not understood", None),
        }
    }

    fn check_composite(&mut self, node: Node<'c>) {
        if node.tag() == tag::ENUMERATION {
            self.n_values += 1;
            return;
        }
        if !self.is_trusted && is_trusted(node) {
            self.is_trusted = true;
            self.check_composite(node);
            self.is_trusted = false;
            return;
        }
        if self.seen.contains(&(node, self.is_trusted)) {
            return;
        }
        let (n_seen, n_found) = (self.seen.len(), self.found.len());
        self.seen.push((node, self.is_trusted));
        // References to slices and to trait objects, which consist of two values.
        if node.name().starts_with(['&', '*']) {
            self.refuse_address(node);
        } else {
            self.check_parts(node);
        }
        // Another capture of the same type is another finding.
        if self.found.len() > n_found {
            self.seen.truncate(n_seen);
        }
    }

    fn check_parts(&mut self, node: Node<'c>) {
        let is_closure = origin::is_closure_type(&node.name());
        if is_closure {
            self.closures.push((node, self.path.len()));
        }
        // The elements of an array have one type.
        if let Some(base) = node.base() {
            self.path.push(ELEMENT.to_owned());
            self.check(base);
            self.path.pop();
        }
        for element in node.elements() {
            match element.kind() {
                NodeKind::DerivedType | NodeKind::CompositeType => self.check(element),
                // Lengths of arrays, and values of enumerations.
                _ => {}
            }
        }
        if is_closure {
            self.closures.pop();
        }
    }

    fn refuse_address(&mut self, node: Node<'c>) {
        let what = "an address of the host's memory";
        self.refuse(node, what, Some(CaptureFault { what, type_name: node.name() }));
    }

    fn refuse(&mut self, node: Node<'c>, what: &str, fault: Option<CaptureFault>) {
        let path = path_text(&readable(&self.path));
        let name = node.name();
        let start = self.closures.last().map_or(0, |(_, start)| *start);
        let capture = if path.is_empty() { "what it captures".to_owned() } else { format!("its capture `{path}`") };
        let reason =
            if name.is_empty() { format!("{capture} is {what}") } else { format!("{capture} is {what}, `{name}`") };
        let within = |(closure, start): &(Node<'c>, usize)| (*closure, readable(&self.path[*start..]));
        let closures = self.closures.iter().map(within).collect();
        self.found.push(Found { reason, path: readable(&self.path[start..]), fault, closures });
    }
}

/// The names of members as programs write them: the first field of a tuple is `__0` in debug information.
fn readable(path: &[String]) -> Vec<String> {
    let is_position = |name: &str| !name.is_empty() && name.bytes().all(|digit| digit.is_ascii_digit());
    let name = |name: &String| match name.strip_prefix("__") {
        Some(position) if is_position(position) => position.to_owned(),
        // A variable that is captured by reference.
        _ => name.strip_prefix("_ref__").unwrap_or(name).to_owned(),
    };
    path.iter().map(name).collect()
}

fn is_address(tag: u16) -> bool {
    [tag::POINTER, tag::REFERENCE, tag::RVALUE_REFERENCE].contains(&tag)
}

fn is_trusted(node: Node<'_>) -> bool {
    origin::may_hold_addresses(&namespaces(node))
}

/// The names of the namespaces that a type is in, the crate's first.
pub(crate) fn namespaces(node: Node<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let mut scope = node.scope();
    while let Some(namespace) = scope.filter(|scope| scope.kind() == NodeKind::Namespace) {
        names.push(namespace.name());
        scope = namespace.scope();
    }
    names.reverse();
    names
}
