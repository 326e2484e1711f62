//! Only the runtime makes items.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() {
    let _item: Item<'_, 1> = Item { id: [0], end: [8], offset: [0] };
    let _item = Item::new([0], [8], [0]);
    let _task: Single<'_> = Single {};
}
