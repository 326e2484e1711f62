//! A specialization constant is a static, and has one type.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;
use oxisycl::specialization::SpecId;

static RADIUS: SpecId<usize> = SpecId::new(1);
static NAME: SpecId<String> = SpecId::new(String::new());

fn main() -> oxisycl::Result<()> {
    let variable = SpecId::new(1u32);
    Queue::default()?.submit(|cg| {
        cg.set_constant(&RADIUS, 2.0)?;
        cg.set_constant(&variable, 2)?;
        cg.set_constant(RADIUS, 2)?;
        let radius: u32 = cg.constant(&RADIUS).get();
        let _ = cg.constant(&NAME);
        cg.parallel_for(1, move |_| assert_eq!(RADIUS + 1, radius))
    })?;
    Ok(())
}
