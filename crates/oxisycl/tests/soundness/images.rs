//! Images as arguments of kernels: they overlap by their bytes, live until the last command has ended, and are checked before it runs.

use std::sync::atomic::{AtomicU32, Ordering};

use oxisycl::argument::Deconstruct;
use oxisycl::images::{R8Uint, R8Unorm, R32Float, Rgba8Unorm};
use oxisycl::prelude::*;
use oxisycl::vector::{Float4, Int4, Uint4};

use super::{Gate, devices, host, refused, simulated};

/// How often the kernel of `launch` ran.
static RAN: AtomicU32 = AtomicU32::new(0);

/// A kernel that gets the arguments and counts itself.
fn launch<A>(queue: &Queue, arguments: A) -> oxisycl::Result<Event>
where
    A: for<'cg> Deconstruct<Handler<'cg>>,
{
    queue.single_task_with(arguments, |_, _| _ = RAN.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn images_as_arguments_overlap_if_one_is_written() {
    for (round, device) in (1..).zip(devices()) {
        let queue = Queue::new(&device).unwrap();
        let image = UnsampledImage::from_vec(Rgba8Unorm, vec![7u8; 64], [4, 4]).unwrap();
        let (clone, smooth) = (image.clone(), image.sampled(ImageSampler::LINEAR));
        let value = image.with_format(ImageFormat::R8G8B8A8_UNORM).unwrap();
        let overlap = |submitted| refused(submitted, ErrorCode::Accessor, "argument \"1\" of kernel");
        overlap(launch(&queue, (image.read::<Float4>(), image.write::<Float4>())));
        overlap(launch(&queue, (image.write::<Float4>(), clone.write::<Float4>())));
        overlap(launch(&queue, (smooth.read::<Float4>(), image.update::<Float4>())));
        overlap(launch(&queue, (value.with::<Float4, _>(Write.no_init()), smooth.read::<Float4>())));
        // With an accessor that the kernel captures.
        let submitted = queue.submit(|cg| {
            let captured = cg.access_image::<Float4, _, _, _>(&image, ReadWrite);
            cg.parallel_for_with([4, 4], (0u8, clone.read::<Float4>()), move |item, (_, read)| {
                captured.set(item, read.get(item));
            })
        });
        overlap(submitted);
        launch(&queue, (image.read::<Float4>(), clone.read::<Float4>(), smooth.read::<Float4>()))
            .unwrap()
            .wait()
            .unwrap();
        assert_eq!(RAN.load(Ordering::Relaxed), round, "only what was not refused");
        assert_eq!(image.to_vec::<u8>().unwrap(), [7; 64]);
    }
}

#[test]
fn images_that_cannot_be_passed_are_refused_before_the_kernel_runs() {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    fn count(_: Single<'_>) {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let levels = UnsampledImage::from_vec(R8Unorm, vec![1u8, 2, 3], 3).unwrap().named("levels");
        let numbers = UnsampledImage::from_vec(R8Uint, vec![1u8, 2, 3], 3).unwrap();
        let wide = UnsampledImage::uninit(R8Unorm, 1 << 23).unwrap().sampled(ImageSampler::NEAREST);
        let run = |submitted, text: &str| refused(submitted, ErrorCode::Invalid, text);
        run(
            queue.single_task_with(levels.read::<Uint4>(), |s, _| count(s)),
            "its pixels are Float4 or Half4, not Uint4",
        );
        run(queue.single_task_with((1u8, numbers.write::<Int4>()), |s, _| count(s)), "argument \"1\" of kernel");
        run(queue.single_task_with([numbers.update::<Float4>(); 2], |s, _| count(s)), "argument \"[0]\" of kernel");
        let smooth = numbers.sampled(ImageSampler::LINEAR);
        run(queue.single_task_with(Some(smooth.read::<Float4>()), |s, _| count(s)), "its pixels are Uint4, not Float4");
        run(queue.single_task_with(wide.read::<Float4>(), |s, _| count(s)), "8388608 is above 8388607");
        // The group fails, although its closure says that all is well.
        let submitted = queue.submit(|cg| {
            let error =
                cg.parallel_for_with(3, levels.read::<Int4>(), |_, _| _ = COUNT.fetch_add(1, Ordering::Relaxed));
            assert_eq!(error.unwrap_err().code(), ErrorCode::Invalid);
            Ok(())
        });
        run(submitted, "not Int4");
        queue.wait().unwrap();
        assert_eq!(COUNT.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn kernels_in_flight_keep_the_images_of_their_arguments() {
    for device in devices() {
        static GATE: Gate = Gate::new();
        GATE.close();
        let (queue, other) = (Queue::new(&device).unwrap(), Queue::new(&host()).unwrap());
        let gate = other.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
        let levels = UnsampledImage::from_vec(R32Float, vec![1.0f32, 2.0, 3.0, 4.0], [2, 2]).unwrap();
        let smooth = SampledImage::from_vec(R32Float, ImageSampler::LINEAR, vec![10.0f32, 20.0], 2).unwrap();
        let sums = Buffer::from_vec(vec![0.0f32; 4]).unwrap();
        let sums_in_rows: Buffer<f32, 2> = sums.reinterpret([2, 2]).unwrap();
        let submitted = queue.submit(|cg| {
            cg.depends_on(&gate);
            let arguments = (levels.read::<Float4>(), smooth.read::<Float4>(), sums_in_rows.write());
            cg.parallel_for_with([2, 2], arguments, |item: Item<2>, (levels, smooth, sums)| {
                // What lies behind the image's end is the border.
                let beyond = levels.read(item, [item.get(0) as i32, 2])[0];
                sums.set(item, levels.get(item)[0] + smooth.sample(item, 1.0)[0] + beyond);
            })
        });
        drop((levels, smooth, sums_in_rows));
        GATE.open();
        submitted.unwrap().wait().unwrap();
        assert_eq!(sums.to_vec().unwrap(), [16.0, 17.0, 18.0, 19.0]);
    }
}

#[test]
fn work_items_own_the_pixels_of_images_that_are_written() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let image = UnsampledImage::from_vec(R8Uint, (0..12).collect::<Vec<u8>>(), [3, 4]).unwrap();
        // More work-items than pixels: the others find the border, and write nothing.
        let event = queue.parallel_for_with([5, 6], image.update(), |item: Item<2>, image| {
            image.update(item, |old: Uint4| old + Uint4::splat(item.get(1) as u32));
        });
        event.unwrap();
        assert_eq!(image.to_vec::<u8>().unwrap(), [0, 2, 4, 6, 4, 6, 8, 10, 8, 10, 12, 14]);
        // One accessor as two arguments is still one of the work-item's own pixel.
        let submitted = queue.submit(|cg| {
            let pixels = cg.access_image::<Uint4, _, _, _>(&image, ReadWrite);
            cg.parallel_for_with([3, 4], [pixels; 2], |item, [a, b]| {
                a.set(item, b.get(item) * 2);
            })
        });
        submitted.unwrap();
        assert_eq!(image.to_vec::<u8>().unwrap(), [0, 4, 8, 12, 8, 12, 16, 20, 16, 20, 24, 28]);
    }
}

#[test]
fn a_command_that_fails_loses_what_its_image_argument_was_to_get() {
    let queue = Queue::new(&simulated(1).0[0]).unwrap();
    let image = UnsampledImage::from_vec(R8Uint, vec![1u8; 4], 4).unwrap();
    let failed = queue.parallel_for_with(4, image.update::<Uint4>(), |_, _| {
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    failed.unwrap().wait().unwrap_err();
    queue.take_errors();
    image.to_vec::<u8>().unwrap_err();
    queue.parallel_for_with(4, image.with(Write.no_init()), |item, image| image.set(item, Uint4::splat(9))).unwrap();
    assert_eq!(image.to_vec::<u8>().unwrap(), [9; 4]);
}
