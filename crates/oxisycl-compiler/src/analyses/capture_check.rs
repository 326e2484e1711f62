//! Checks what a kernel captures, by its debug type (soundness rule 2).
//!
//! `Copy + Send + Sync` lets references, function pointers and trait objects through, which are addresses of the host. A captured value
//! may consist of scalars, and of addresses inside types of OxiSYCL, which the runtime fills in for the device. Anything else, and
//! anything that cannot be understood, keeps the kernel on the host.

use crate::analyses::source_location;
use crate::kernel::RefusedCapture;
use crate::llvm::{Node, NodeKind, Value, tag};
use crate::origin;

/// The capture for which a kernel must stay on the host, with the reason. `None` if all captures may leave the host. `entry` is the
/// kernel's entry, before anything removed debug information.
pub(crate) fn refusal(entry: Value<'_>) -> Option<RefusedCapture> {
    let unknown = || {
        let reason =
            "its captures cannot be checked: the type of the kernel is not in the debug information".to_owned();
        Some(RefusedCapture { reason, closure: None })
    };
    let Some(function) = Node::of_function(entry) else { return unknown() };
    let parameters = function.operands().into_iter().map(Node::operands);
    let first = parameters.flatten().find(|node| node.kind() == NodeKind::TemplateType);
    let Some(kernel) = first.and_then(Node::template_type) else { return unknown() };
    let mut walk = Walk { path: Vec::new(), closures: Vec::new(), seen: Vec::new(), is_trusted: false, n_values: 0 };
    let checked = walk.refuse(kernel);
    // Something is captured, and nothing of it was seen: the nodes are not laid out as this code believes.
    if checked.is_ok() && kernel.size_in_bits() > 0 && walk.n_values == 0 {
        return unknown();
    }
    let reason = checked.err()?;
    // It was entered last, and is not left after an error.
    let closure = walk.closures.last().and_then(|closure| source_location::of_closure(entry, *closure));
    Some(RefusedCapture { reason, closure })
}

struct Walk<'c> {
    /// The names of the members that lead to the type.
    path: Vec<String>,
    /// The closures among the types on that path.
    closures: Vec<Node<'c>>,
    /// The types that were visited, and whether this was inside a trusted type.
    seen: Vec<(Node<'c>, bool)>,
    /// Whether the type is a part of a trusted type.
    is_trusted: bool,
    /// The number of scalars and trusted types found so far.
    n_values: usize,
}

impl<'c> Walk<'c> {
    /// Checks a type and its parts. The error says which capture is not allowed.
    fn refuse(&mut self, node: Node<'c>) -> Result<(), String> {
        match node.kind() {
            NodeKind::BasicType => {
                self.n_values += 1;
                Ok(())
            }
            // Safe code cannot send a raw pointer to another thread, and so to no kernel.
            NodeKind::DerivedType if is_address(node.tag()) && self.is_trusted && node.name().starts_with('*') => {
                self.n_values += 1;
                Ok(())
            }
            // A function item, which rustc describes as a pointer without size.
            NodeKind::DerivedType if is_address(node.tag()) && node.size_in_bits() == 0 => Ok(()),
            NodeKind::DerivedType if is_address(node.tag()) => {
                Err(self.message(node, "an address of the host's memory"))
            }
            NodeKind::DerivedType if node.tag() == tag::MEMBER => {
                // Function items and the like: nothing is passed.
                if node.size_in_bits() == 0 {
                    return Ok(());
                }
                self.path.push(node.name());
                let checked = match node.base() {
                    Some(base) => self.refuse(base),
                    None => Err(self.message(node, "of a type that is not known")),
                };
                self.path.pop();
                checked
            }
            NodeKind::DerivedType => node.base().map_or(Ok(()), |base| self.refuse(base)),
            NodeKind::CompositeType => self.refuse_composite(node),
            NodeKind::SubroutineType => Err(self.message(node, "a function of the host")),
            _ => Err(self.message(node, "of a type that is not understood")),
        }
    }

    fn refuse_composite(&mut self, node: Node<'c>) -> Result<(), String> {
        if node.tag() == tag::ENUMERATION {
            self.n_values += 1;
            return Ok(());
        }
        if !self.is_trusted && is_trusted(node) {
            self.is_trusted = true;
            let checked = self.refuse_composite(node);
            self.is_trusted = false;
            return checked;
        }
        if self.seen.contains(&(node, self.is_trusted)) {
            return Ok(());
        }
        self.seen.push((node, self.is_trusted));
        // References to slices and to trait objects, which consist of two values.
        if node.name().starts_with(['&', '*']) {
            return Err(self.message(node, "an address of the host's memory"));
        }
        let is_closure = origin::is_closure_type(&node.name());
        if is_closure {
            self.closures.push(node);
        }
        // The elements of an array have one type.
        if let Some(base) = node.base() {
            self.refuse(base)?;
        }
        for element in node.elements() {
            match element.kind() {
                NodeKind::DerivedType | NodeKind::CompositeType => self.refuse(element)?,
                // Lengths of arrays, and values of enumerations.
                _ => {}
            }
        }
        if is_closure {
            self.closures.pop();
        }
        Ok(())
    }

    fn message(&self, node: Node<'c>, what: &str) -> String {
        let path = self.path.join(".");
        let name = node.name();
        let capture = if path.is_empty() { "what it captures".to_owned() } else { format!("its capture `{path}`") };
        if name.is_empty() { format!("{capture} is {what}") } else { format!("{capture} is {what}, `{name}`") }
    }
}

fn is_address(tag: u16) -> bool {
    [tag::POINTER, tag::REFERENCE, tag::RVALUE_REFERENCE].contains(&tag)
}

fn is_trusted(node: Node<'_>) -> bool {
    let mut names = Vec::new();
    let mut scope = node.scope();
    while let Some(namespace) = scope.filter(|scope| scope.kind() == NodeKind::Namespace) {
        names.push(namespace.name());
        scope = namespace.scope();
    }
    names.reverse();
    origin::may_hold_addresses(&names.iter().map(String::as_str).collect::<Vec<_>>())
}
