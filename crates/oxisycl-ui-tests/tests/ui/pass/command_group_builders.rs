//! Command groups are put together by functions over their handler.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn read<'cg, T: DeviceCopyable>(cg: &mut Handler<'cg>, buffer: &Buffer<T, 1>) -> Accessor<'cg, T, 1, Read> {
    cg.access(buffer, Read)
}

fn scale<'cg>(cg: &mut Handler<'cg>, source: &Buffer<f32, 1>, target: &Buffer<f32, 1>, factor: f32) -> oxisycl::Result {
    let source = read(cg, source);
    let target = cg.access(target, Write);
    cg.parallel_for(source.range(), move |item| target.set(item, source.get(item) * factor))
}

fn scale_in_place(cg: &mut Handler<'_>, data: &Buffer<f32, 1>, factor: f32) -> oxisycl::Result {
    let data = cg.access(data, ReadWrite);
    cg.parallel_for(8, move |item| data.update(item, |x| x * factor))
}

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let (a, b) = (Buffer::from_vec(vec![1.5f32; 8])?, Buffer::from_vec(vec![0.0f32; 8])?);
    queue.submit(|cg| scale(cg, &a, &b, 2.0))?;
    queue.submit(|cg| scale_in_place(cg, &b, 2.0))?;
    assert_eq!(b.into_vec()?, [6.0; 8]);
    Ok(())
}
