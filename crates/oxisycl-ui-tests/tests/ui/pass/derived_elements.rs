//! Elements are structs and enums of elements, generic ones too.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

#[derive(Clone, Copy, PartialEq, Debug, DeviceCopyable)]
struct Particle<T, const N: usize> {
    position: [T; N],
    kind: Kind,
    next: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Debug, DeviceCopyable)]
enum Kind {
    Still,
    Moving { speed: f32, direction: (i8, char) },
}

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let still = Particle { position: [0.0f64; 3], kind: Kind::Still, next: None };
    let buffer = Buffer::from_vec(vec![still; 8])?;
    let moving = Kind::Moving { speed: 1.5, direction: (-1, 'x') };
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(8, move |item| data.update(item, |old| Particle { kind: moving, next: Some(1), ..old }))
    })?;
    queue.fill(&buffer.sub_buffer(0, 4)?, still)?;
    let data = buffer.to_vec()?;
    assert!(data[..4].iter().all(|particle| *particle == still));
    assert!(data[4..].iter().all(|particle| particle.kind == moving && particle.next == Some(1)));
    Ok(())
}
