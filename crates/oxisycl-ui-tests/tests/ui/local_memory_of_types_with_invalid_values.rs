#![forbid(unsafe_code)]

use oxisycl::group::{Local, LocalSlice, Private};

fn main() {
    let _ = Local::<bool, 8>::new();
    let _ = LocalSlice::<char>::new(8);
    let _ = Private::new("text");
    let _ = Private::new(std::cell::Cell::new(1));
}
