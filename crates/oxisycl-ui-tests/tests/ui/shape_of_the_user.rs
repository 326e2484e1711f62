#![forbid(unsafe_code)]

use oxisycl::group::Shape;

/// Has more work-items than it says.
#[derive(Clone, Copy)]
struct Wrong;

impl Shape<1> for Wrong {
    const FIXED: [usize; 1] = [0];

    fn extent(self) -> [usize; 1] {
        [1024]
    }
}

fn main() {}
