//! Images as arguments of kernels.

use oxisycl::argument::{KernelArg, Sent};
use oxisycl::group::{Fixed1, Local};
use oxisycl::images::{
    ImageFormat, PixelFormat, R8Uint, R8Unorm, R32Float, Rgba8Unorm, SampledImageAccessor, UnsampledImageAccessor,
};
use oxisycl::operator::Sum;
use oxisycl::prelude::*;
use oxisycl::vector::{Float4, Uint4};
use oxisycl::{SampledImageAccess, UnsampledImageAccess};

use crate::harness::{Env, tests};
use crate::support::{code, counted};

tests![
    images_are_passed_by_mode,
    images_with_samplers_are_passed,
    images_of_formats_that_are_values_are_passed,
    accessors_of_images_are_passed_as_they_are,
    all_forms_of_launches_get_images,
    derived_arguments_hold_images,
    kernel_functions_take_images,
    images_that_cannot_be_passed_enqueue_nothing;
    once:
    images_that_give_the_same_have_one_kernel,
];

fn levels(levels: impl IntoIterator<Item = u8>) -> UnsampledImage<1, R8Uint> {
    let levels: Vec<u8> = levels.into_iter().collect();
    let n = levels.len();
    UnsampledImage::from_vec(R8Uint, levels, n).unwrap()
}

fn images_are_passed_by_mode(env: &Env) {
    let queue = env.queue();
    let (from, to) = (levels(0..8), levels([100; 8]));
    // Reads any pixel, and writes its own. Those that are not written keep their values.
    let arguments = (from.read::<Uint4>(), to.write());
    queue.parallel_for_with(5, arguments, |item, (from, to)| to.set(item, from.read(item, 7 - item.index()))).unwrap();
    assert_eq!(to.to_vec::<u8>().unwrap(), [7, 6, 5, 4, 3, 100, 100, 100]);
    queue.parallel_for_with(8, to.update(), |item, to| to.update(item, |x: Uint4| x + Uint4::splat(1))).unwrap();
    assert_eq!(to.to_vec::<u8>().unwrap(), [8, 7, 6, 5, 4, 101, 101, 101]);
    let new = UnsampledImage::uninit(R8Uint, [2, 3]).unwrap();
    let position = |item: Item<2>| Uint4::splat((10 * item.get(0) + item.get(1)) as u32);
    queue.parallel_for_with([2, 3], new.with(Write.no_init()), move |item, new| new.set(item, position(item))).unwrap();
    assert_eq!(new.to_vec::<u8>().unwrap(), [0, 1, 2, 10, 11, 12]);
}

fn images_with_samplers_are_passed(env: &Env) {
    let sampler = ImageSampler::LINEAR;
    let fine = SampledImage::from_vec(R32Float, sampler, (0..16).map(|i| i as f32).collect(), [4, 4]).unwrap();
    let coarse = UnsampledImage::uninit(R32Float, [2, 2]).unwrap();
    let arguments = (fine.read::<Float4>(), coarse.with(Write.no_init()));
    let event = env.queue().parallel_for_with([2, 2], arguments, |item: Item<2>, (fine, coarse)| {
        let centre = [item.get(0), item.get(1)].map(|i| 2.0 * i as f32 + 1.0);
        coarse.set(item, fine.sample(item, centre));
    });
    event.unwrap();
    assert_eq!(coarse.to_vec::<f32>().unwrap(), [2.5, 4.5, 10.5, 12.5]);
    // The sampler is the image's own.
    let rough = fine.unsampled().sampled(ImageSampler::NEAREST);
    let seen = Buffer::from_vec(vec![0.0f32; 2]).unwrap();
    let event = env.queue().single_task_with((fine.read(), rough.read(), seen.write()), |task, (fine, rough, seen)| {
        let [fine, rough]: [Float4; 2] = [fine, rough].map(|image| image.sample(task, [1.0, 1.0]));
        seen.set_at(task, 0, fine[0]);
        seen.set_at(task, 1, rough[0]);
    });
    event.unwrap();
    assert_eq!(seen.to_vec().unwrap(), [2.5, 5.0]);
}

fn images_of_formats_that_are_values_are_passed(env: &Env) {
    let format: ImageFormat = ImageFormat::R8G8B8A8_UNORM;
    let image = UnsampledImage::from_vec(format, vec![[0u8, 51, 102, 255]; 4], [2, 2]).unwrap();
    let typed = UnsampledImage::from_vec(Rgba8Unorm, vec![[255u8, 0, 0, 0]; 4], [2, 2]).unwrap();
    let event =
        env.queue().parallel_for_with([2, 2], (image.update(), typed.read::<Float4>()), |item, (image, typed)| {
            image.update(item, |pixel: Float4| pixel + typed.get(item));
        });
    event.unwrap();
    assert_eq!(image.to_vec::<[u8; 4]>().unwrap(), [[255, 51, 102, 255]; 4]);
}

fn accessors_of_images_are_passed_as_they_are(env: &Env) {
    let (from, to) = (levels([3, 5]), levels([0, 0]));
    let smooth = from.sampled(ImageSampler::NEAREST);
    let submitted = env.queue().submit(|cg| {
        let (from, smooth) =
            (cg.access_image::<Uint4, _, _, _>(&from, Read), cg.access_sampled::<Uint4, _, _>(&smooth));
        let to = cg.access_image(&to, Write);
        cg.parallel_for_with(2, (from, smooth, to), |item: Item<1>, (from, smooth, to)| {
            to.set(item, from.get(item) * 10 + smooth.sample(item, 1.5));
        })
    });
    submitted.unwrap();
    assert_eq!(to.to_vec::<u8>().unwrap(), [35, 55]);
}

fn all_forms_of_launches_get_images(env: &Env) {
    let queue = env.queue();
    let image = levels(0..8);
    let event = queue.single_task_with(image.update::<Uint4>(), |task, image| {
        image.set_at(task, 0, image.get_at(task, 7) * 2);
    });
    event.unwrap();
    assert_eq!(image.to_vec::<u8>().unwrap()[..2], [14, 1]);
    // Turns each group's pixels round.
    let submitted = queue.submit(|cg| {
        let (shape, tile) = (Fixed1::<4>, Local::<u32, 4>::new());
        cg.parallel_for_work_group_with(2, shape, tile, image.update::<Uint4>(), |mut group, mut tile, image| {
            group.for_each(&mut tile, move |item, slot| *slot = image.get(item.global())[0]);
            group.for_each(&tile, move |item, tile| {
                image.set(item.global(), Uint4::splat(tile[3 - item.local_linear_id()]));
            });
        })
    });
    submitted.unwrap();
    assert_eq!(image.to_vec::<u8>().unwrap(), [3, 2, 1, 14, 7, 6, 5, 4]);
    let sums = Buffer::from_vec(vec![0u32; 2]).unwrap();
    let submitted = queue.submit(|cg| {
        let range = NdRange::new(Range::new([8]), Range::new([4]));
        let arguments = (image.read::<Uint4>(), sums.atomic());
        cg.parallel_for_nd_range_with(range, (), arguments, |mut item, (), (image, sums)| {
            let own = image.get(item.global())[0];
            let sum = item.group().reduce(own, Sum);
            if item.is_leader() {
                sums.store(item.global(), item.group_id(), sum);
            }
        })
    });
    submitted.unwrap();
    assert_eq!(sums.to_vec().unwrap(), [20, 22]);
    let sum = queue.parallel_reduce_with(8, Sum, image.read::<Uint4>(), |item, sum, image| *sum += image.get(item)[0]);
    assert_eq!(sum.unwrap().get().unwrap(), 42u32);
}

/// What a blend is made of.
#[derive(KernelArg)]
struct Blend<'a, F: PixelFormat> {
    below: UnsampledImageAccess<'a, Float4, 2, ReadWrite, F>,
    above: SampledImageAccess<'a, Float4, 2, F>,
    opacity: f32,
}

fn derived_arguments_hold_images(env: &Env) {
    let below = UnsampledImage::from_vec(R8Unorm, vec![0u8, 100, 200, 255], [2, 2]).unwrap();
    let above = SampledImage::from_vec(R8Unorm, ImageSampler::NEAREST.normalized(), vec![255u8], [1, 1]).unwrap();
    let blend = Blend { below: below.update(), above: above.read(), opacity: 1.0 };
    let event = env.queue().parallel_for_with([2, 2], (1u8, blend), |item: Item<2>, (_, blend)| {
        let BlendOnDevice { below, above, opacity } = blend;
        let colour = above.sample(item, [0.5, 0.5]);
        if item.get(1) == 0 {
            below.update(item, |old| old * (1.0 - opacity) + colour * opacity);
        }
    });
    event.unwrap();
    assert_eq!(below.to_vec::<u8>().unwrap(), [255, 100, 255, 255]);
    // The path of the part that is at fault.
    let other = UnsampledImage::from_vec(ImageFormat::R8G8B8A8_UINT, vec![0u8; 4], [1, 1]).unwrap();
    let smooth = other.sampled(ImageSampler::NEAREST);
    let target = UnsampledImage::uninit(ImageFormat::R8G8B8A8_UNORM, [1, 1]).unwrap();
    let blend = Blend { below: target.update(), above: smooth.read(), opacity: 1.0 };
    let error = env.queue().parallel_for_with([1, 1], (1u8, blend), |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("argument \"1.above\" of kernel"), "{error}");
}

/// Half of what lies in the image, by a sampler.
#[kernel]
fn halve(
    item: Item<1>,
    from: SampledImageAccessor<Float4, 1, R32Float>,
    to: UnsampledImageAccessor<Float4, 1, Write, R32Float>,
) {
    to.set(item, from.sample(item, item.index() as f32 + 0.5) / 2.0);
}

fn kernel_functions_take_images(env: &Env) {
    let (queue, sampler) = (env.queue(), ImageSampler::NEAREST);
    let from = SampledImage::from_vec(R32Float, sampler, vec![1.0f32, 2.0, 3.0], 3).unwrap();
    let to = UnsampledImage::from_vec(R32Float, vec![0.0f32; 3], 3).unwrap();
    queue.launch_call(3, halve(from.read(), to.write())).unwrap();
    assert_eq!(to.to_vec::<f32>().unwrap(), [0.5, 1.0, 1.5]);
    // Of a group.
    let other = UnsampledImage::from_vec(R32Float, vec![0.0f32; 3], 3).unwrap();
    let submitted = queue.submit(|cg| {
        let other = cg.access_image(&other, Write);
        cg.launch_call(3, halve(to.sampled(sampler).read(), other))
    });
    submitted.unwrap();
    assert_eq!(other.to_vec::<f32>().unwrap(), [0.25, 0.5, 0.75]);
}

fn images_that_cannot_be_passed_enqueue_nothing(env: &Env) {
    let queue = env.queue();
    let image = levels(0..4);
    let smooth = image.sampled(ImageSampler::LINEAR);
    let (since, errors) = counted(|| {
        [
            queue.parallel_for_with(4, (1u8, image.read::<Float4>()), |_, _| {}),
            queue.parallel_for_with(4, (1u8, smooth.read::<Float4>()), |_, _| {}),
            queue.single_task_with((1u8, [image.write::<Float4>(); 2]), |_, _| {}),
        ]
        .map(Result::unwrap_err)
    });
    assert_eq!((since.kernels, since.bytes_to_device), (0, 0));
    for (error, path) in errors.iter().zip(["1", "1", "1[0]"]) {
        assert_eq!(error.code(), ErrorCode::Invalid);
        let text = error.to_string();
        assert!(text.contains(&format!("argument \"{path}\" of kernel")), "{text}");
        assert!(text.contains("its pixels are Uint4, not Float4"), "{text}");
    }
    // Twice in one command, and written.
    for refused in [
        queue.parallel_for_with(4, (image.read::<Uint4>(), image.write::<Uint4>()), |_, _| {}),
        queue.parallel_for_with(4, (image.update::<Uint4>(), smooth.read::<Uint4>()), |_, _| {}),
    ] {
        assert_eq!(code(refused), ErrorCode::Accessor);
    }
    // As often as wanted, if it is only read.
    queue
        .parallel_for_with(4, (image.read::<Uint4>(), smooth.read::<Uint4>(), image.read::<Uint4>()), |_, _| {})
        .unwrap();
}

/// What crosses for an argument of the type.
fn crosses<A: KernelArg>(_: A) -> std::any::TypeId {
    std::any::TypeId::of::<Sent<A>>()
}

fn images_that_give_the_same_have_one_kernel() {
    let (image, queue) = (levels(0..4), Queue::default().unwrap());
    let smooth = image.sampled(ImageSampler::LINEAR);
    let submitted = queue.submit(|cg| {
        let (read, sampled) =
            (cg.access_image::<Uint4, _, _, _>(&image, Read), cg.access_sampled::<Uint4, _, _>(&smooth));
        assert_eq!(crosses(read), crosses(image.read::<Uint4>()));
        assert_eq!(crosses(sampled), crosses(smooth.read::<Uint4>()));
        assert_ne!(crosses(image.read::<Uint4>()), crosses(image.update::<Uint4>()));
        cg.single_task(|_| {})
    });
    submitted.unwrap();
}
