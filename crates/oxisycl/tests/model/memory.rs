//! The buffers and images of a program, and the commands on them.

use oxisycl::images::{ChannelOrder, ChannelType};
use oxisycl::prelude::*;
use oxisycl::vector::Uint4;
use oxisycl::{BorrowedImage, ImagePitch};

use super::{Access, Kind, Part, Spec};

/// Pixels of one number, as the elements of the buffers are.
const FORMAT: ImageFormat = match ImageFormat::new(ChannelOrder::R, ChannelType::UnsignedInt32) {
    Some(format) => format,
    None => panic!("it exists"),
};
/// What lies between the rows of borrowed memory.
const GAP: u32 = 0xdead_beef;

/// A buffer or an image, the latter also over borrowed memory.
pub(crate) enum Memory<'a> {
    Buffer(Buffer<u32, 2>),
    Image(UnsampledImage<2>),
    Borrowed(BorrowedImage<'a, 2>),
}

/// Memory of the host that an image can borrow: the first values with gaps between rows.
pub(crate) fn host_memory(spec: &Spec) -> Vec<u32> {
    let Kind::Borrowed { gap } = spec.kind else { return Vec::new() };
    let (values, columns) = (spec.first_values(), spec.extent[1]);
    values.chunks(columns).flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(GAP, gap))).collect()
}

/// The pixels of such memory, if the gaps are what they were.
pub(crate) fn pixels_of(spec: &Spec, memory: &[u32]) -> Option<Vec<u32>> {
    let columns = spec.extent[1];
    let rows = memory.chunks(columns + memory.len() / spec.extent[0] - columns);
    let mut pixels = Vec::new();
    for row in rows {
        let (row, gap) = row.split_at(columns);
        pixels.extend(row);
        if gap.iter().any(|&x| x != GAP) {
            return None;
        }
    }
    Some(pixels)
}

impl<'a> Memory<'a> {
    pub(crate) fn new(spec: &Spec, memory: &'a mut [u32]) -> Self {
        let extent = spec.extent;
        match spec.kind {
            Kind::Buffer => Self::Buffer(buffer(spec)),
            Kind::Image if !spec.is_initialized => Self::Image(UnsampledImage::uninit(FORMAT, extent).unwrap()),
            Kind::Image => Self::Image(UnsampledImage::from_vec(FORMAT, spec.first_values(), extent).unwrap()),
            Kind::Copied => Self::Image(UnsampledImage::from_slice(FORMAT, &spec.first_values(), extent).unwrap()),
            Kind::Borrowed { gap } => {
                let pitch = ImagePitch::rows(4 * (extent[1] + gap));
                Self::Borrowed(UnsampledImage::from_slice_mut_pitched(FORMAT, memory, extent, pitch).unwrap())
            }
        }
    }

    /// The buffer, or the image.
    fn kind(&self) -> Result<&Buffer<u32, 2>, &UnsampledImage<2>> {
        match self {
            Self::Buffer(buffer) => Ok(buffer),
            Self::Image(image) => Err(image),
            Self::Borrowed(image) => Err(image),
        }
    }

    /// Submits the kernel of an access. A reading kernel has no effect but what it requires.
    pub(crate) fn kernel(&self, queue: &Queue, id: usize, part: Part, access: Access, gate: Option<&Event>) -> Event {
        match self.kind() {
            Ok(buffer) => buffer_kernel(queue, buffer, id, part, access, gate),
            Err(image) => image_kernel(queue, image, id, access, gate),
        }
    }

    /// Submits a kernel that writes what a sampler reads at the centres of the image's pixels to those of `target` at the same positions.
    /// None if this is a buffer.
    pub(crate) fn sample(&self, queue: &Queue, target: &Self, part: Part, gate: Option<&Event>) -> Option<Event> {
        let smooth = self.kind().err()?.sampled(ImageSampler::NEAREST);
        let event = submit(queue, gate, |cg| {
            let smooth = cg.access_sampled::<Uint4, _, _>(&smooth);
            let at = |item: Item<2>| [item.get(0) as f32 + 0.5, item.get(1) as f32 + 0.5];
            match target.kind() {
                Ok(buffer) => {
                    let target = cg.access_range(buffer, Write, part.begin, part.extent);
                    cg.parallel_for(part.extent, move |item| target.set(item, smooth.sample(item, at(item))[0]))
                }
                Err(image) => {
                    let target = cg.access_image(image, Write);
                    cg.parallel_for(part.extent, move |item| target.set(item, smooth.sample(item, at(item))))
                }
            }
        });
        Some(event.unwrap())
    }

    /// Submits a copy of all pixels or elements, or of a part between two buffers.
    pub(crate) fn copy_to(
        &self,
        queue: &Queue,
        target: &Self,
        from: Part,
        to: Part,
        gate: Option<&Event>,
    ) -> oxisycl::Result<Event> {
        submit(queue, gate, |cg| match (self.kind(), target.kind()) {
            (Ok(source), Ok(target)) => {
                let a = cg.access_range(source, Read, from.begin, from.extent);
                let b = cg.access_range(target, Write, to.begin, to.extent);
                cg.copy(a, b)
            }
            (Err(source), Err(target)) => cg.copy_image(source, target),
            (Ok(source), Err(target)) => cg.copy_image_from_buffer(source, target),
            (Err(source), Ok(target)) => cg.copy_image_to_buffer(source, target),
        })
    }

    pub(crate) fn fill(&self, queue: &Queue, value: u32, gate: Option<&Event>) -> Event {
        let event = submit(queue, gate, |cg| match self.kind() {
            Ok(buffer) => {
                let target = cg.access(buffer, Write);
                cg.fill(target, value)
            }
            Err(image) => cg.fill_image(image, Uint4::splat(value)),
        });
        event.unwrap()
    }

    pub(crate) fn update_host(&self, queue: &Queue) {
        match self.kind() {
            Ok(buffer) => queue.update_host(buffer).unwrap(),
            Err(image) => queue.update_image_on_host(image).unwrap(),
        };
    }

    /// What a copy to memory of the host gives.
    pub(crate) fn copy_to_host(&self, queue: &Queue, n: usize) -> Vec<u32> {
        let copy = match self.kind() {
            Ok(buffer) => queue.copy_to_host(buffer, vec![0; n]),
            Err(image) => queue.copy_image_to_host(image, vec![0; n]),
        };
        copy.unwrap().wait().unwrap()
    }

    pub(crate) fn copy_from_host(&self, queue: &Queue, values: Vec<u32>) {
        let copy = match self.kind() {
            Ok(buffer) => queue.copy_from_host(values, buffer),
            Err(image) => queue.copy_image_from_host(values, image),
        };
        copy.unwrap().wait().unwrap();
    }

    /// What a host accessor reads of a part, which is the whole of an image.
    pub(crate) fn read_on_host(&self, part: Part) -> Vec<u32> {
        match self.kind() {
            Ok(buffer) => buffer.host_access_range(Read, part.begin, part.extent).unwrap().iter().copied().collect(),
            Err(image) => {
                let host = image.host_access::<Uint4, _>(Read).unwrap();
                positions(part).map(|position| host.read(position)[0]).collect()
            }
        }
    }

    pub(crate) fn write_on_host(&self, part: Part, is_discard: bool, values: &[u32]) {
        let mut values = values.iter().copied();
        match self.kind() {
            Ok(buffer) if is_discard => {
                let mut host = buffer.host_access_range(Write.no_init(), part.begin, part.extent).unwrap();
                host.for_each_mut(|_, element| *element = values.next().unwrap());
            }
            Ok(buffer) => {
                let mut host = buffer.host_access_range(ReadWrite, part.begin, part.extent).unwrap();
                host.for_each_mut(|_, element| *element = values.next().unwrap());
            }
            Err(image) if is_discard => {
                let mut host = image.host_access(Write.no_init()).unwrap();
                positions(part).zip(values).for_each(|(position, value)| host.write(position, Uint4::splat(value)));
            }
            Err(image) => {
                let mut host = image.host_access(ReadWrite).unwrap();
                positions(part).zip(values).for_each(|(position, value)| host.write(position, Uint4::splat(value)));
            }
        }
    }

    /// Writes borrowed pixels back.
    pub(crate) fn end(self) {
        if let Self::Borrowed(image) = self {
            image.finish().unwrap();
        }
    }
}

/// The positions of a part, in row-major order.
fn positions(part: Part) -> impl Iterator<Item = [usize; 2]> {
    let rows = part.begin[0]..part.begin[0] + part.extent[0];
    rows.flat_map(move |y| (part.begin[1]..part.begin[1] + part.extent[1]).map(move |x| [y, x]))
}

fn submit(
    queue: &Queue,
    gate: Option<&Event>,
    record: impl for<'cg> FnOnce(&mut Handler<'cg>) -> oxisycl::Result,
) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        if let Some(gate) = gate {
            cg.depends_on(gate);
        }
        record(cg)
    })
}

fn buffer(spec: &Spec) -> Buffer<u32, 2> {
    let mut options = BufferOptions::new();
    if let Some(page) = spec.page {
        options = options.page_size(page);
    }
    if spec.is_initialized {
        options.from_vec_nd(spec.first_values(), spec.extent).unwrap()
    } else {
        options.uninit(spec.extent).unwrap()
    }
}

fn buffer_kernel(
    queue: &Queue,
    buffer: &Buffer<u32, 2>,
    id: usize,
    part: Part,
    access: Access,
    gate: Option<&Event>,
) -> Event {
    let columns = buffer.range()[1];
    let [y0, x0] = part.begin;
    let id = id as u32;
    let value = move |item: Item<2>| id * 1000 + ((item.get(0) + y0) * columns + item.get(1) + x0) as u32;
    let event = submit(queue, gate, |cg| match access {
        Access::Read => {
            let a = cg.access_range(buffer, Read, part.begin, part.extent);
            cg.parallel_for(part.extent, move |item| {
                std::hint::black_box(a.get(item));
            })
        }
        Access::Update => {
            let a = cg.access_range(buffer, ReadWrite, part.begin, part.extent);
            cg.parallel_for(part.extent, move |item| a.update(item, |x| x.wrapping_mul(31).wrapping_add(id)))
        }
        Access::Write => {
            let a = cg.access_range(buffer, Write, part.begin, part.extent);
            cg.parallel_for(part.extent, move |item| a.set(item, value(item)))
        }
        Access::Discard => {
            let a = cg.access_range(buffer, Write.no_init(), part.begin, part.extent);
            cg.parallel_for(part.extent, move |item| a.set(item, value(item)))
        }
    });
    event.unwrap()
}

/// The kernel over all pixels of an image.
fn image_kernel(queue: &Queue, image: &UnsampledImage<2>, id: usize, access: Access, gate: Option<&Event>) -> Event {
    let (range, id) = (image.range(), id as u32);
    let value = move |item: Item<2>| Uint4::splat(id * 1000 + item.linear_id() as u32);
    let event = submit(queue, gate, |cg| match access {
        Access::Read => {
            let a = cg.access_image::<Uint4, _, _, _>(image, Read);
            cg.parallel_for(range, move |item| {
                std::hint::black_box(a.get(item));
            })
        }
        Access::Update => {
            let a = cg.access_image(image, ReadWrite);
            let next = move |x: Uint4| Uint4::splat(x[0].wrapping_mul(31).wrapping_add(id));
            cg.parallel_for(range, move |item| a.update(item, next))
        }
        Access::Write => {
            let a = cg.access_image(image, Write);
            cg.parallel_for(range, move |item| a.set(item, value(item)))
        }
        Access::Discard => {
            let a = cg.access_image(image, Write.no_init());
            cg.parallel_for(range, move |item| a.set(item, value(item)))
        }
    });
    event.unwrap()
}
