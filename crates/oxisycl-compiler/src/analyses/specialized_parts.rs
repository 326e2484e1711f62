//! Finds the parts of a kernel's block that a launch may fix. They are the numbers in values of specialization constants, by the block's debug type.
//!
//! Invariant: each part is a number that has a value wherever the block has one. Fields of unions and of enums with data are left out, since bytes
//! there may have none. So is whatever is not understood: it is loaded as before.

use oxisycl_image::ParameterLayout;

use crate::analyses::capture_check::namespaces;
use crate::llvm::{Node, NodeKind, Value, tag};
use crate::origin;

/// Most parts of a kernel. A launch compares each.
const MAX_PARTS: usize = 64;

/// Offset and size of each part of the block of the kernel with this entry, in their order. `block` is what the program says of it.
pub(crate) fn of(entry: Value<'_>, block: ParameterLayout) -> Vec<(usize, usize)> {
    let parameters = Node::of_function(entry).into_iter().flat_map(Node::operands).map(Node::operands);
    let types = parameters.flatten().filter(|node| node.kind() == NodeKind::TemplateType);
    // The last type parameter of an entry is the block.
    let Some(found) = types.last().and_then(Node::template_type) else { return Vec::new() };
    if found.size_in_bits() != 8 * block.size as u64 {
        return Vec::new();
    }
    let mut parts = Vec::new();
    add(found, 0, false, &mut parts);
    parts.sort_unstable();
    parts.dedup();
    parts.truncate(MAX_PARTS);
    parts
}

/// Adds the parts of a type at an offset. `is_specialized` is whether it is inside of a value of a specialization constant.
fn add(node: Node<'_>, offset: u64, is_specialized: bool, parts: &mut Vec<(usize, usize)>) {
    if parts.len() > MAX_PARTS {
        return;
    }
    let size = node.size_in_bits() / 8;
    let is_number = node.kind() == NodeKind::BasicType || node.tag() == tag::ENUMERATION;
    match node.kind() {
        _ if is_number && is_specialized && [1, 2, 4, 8].contains(&size) => {
            parts.push((offset as usize, size as usize));
        }
        NodeKind::CompositeType if node.tag() == tag::STRUCTURE => {
            let is_specialized = is_specialized || origin::is_specialized(&namespaces(node));
            for member in node.elements() {
                if member.tag() == tag::MEMBER
                    && let Some(base) = member.base()
                {
                    add(base, offset + member.offset_in_bits() / 8, is_specialized, parts);
                }
            }
        }
        NodeKind::CompositeType if node.tag() == tag::ARRAY => {
            let Some(element) = node.base().filter(|element| element.size_in_bits() >= 8) else { return };
            let stride = element.size_in_bits() / 8;
            for index in 0..(size / stride).min(MAX_PARTS as u64 + 1) {
                add(element, offset + index * stride, is_specialized, parts);
            }
        }
        _ => {}
    }
}
