//! The memory of a node.

use oxisycl_runtime::graph::Node;

/// Bytes of a node in its `Arc`, which has two counts. Tests of the CUDA and OpenCL backends bound their own part of an unfinished launch.
/// Their limits are what this leaves of the 1.5 KB that a launch may take.
const BYTES: usize = 360;

#[test]
fn a_node_takes_at_most_360_bytes() {
    let bytes = size_of::<Node>() + 2 * size_of::<usize>();
    assert!(bytes <= BYTES, "{bytes} bytes, at most {BYTES}");
}
