//! The limits of devices, and devices without images.

use oxisycl::ImageLimits;
use oxisycl::images::{ImageFormat, PixelFormat, R8Uint, R32Float};
use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl::vector::{Float4, Uint4};

use crate::harness::{Env, tests};
use crate::support::{code, counted};

tests![
    limits_are_at_least_what_the_specification_demands,
    pixels_beyond_four_gigabytes_are_read_and_written,
    ; once:
    limits_follow_from_memory_and_positions,
    an_image_larger_than_the_devices_allocations_is_refused,
    a_device_without_images_refuses_accessors_and_nothing_else,
];

fn limits_are_at_least_what_the_specification_demands(env: &Env) {
    let limits = env.device().image_limits();
    assert!(limits.max_read_image_args >= 128 && limits.max_write_image_args >= 8 && limits.max_samplers >= 16);
    assert!(limits.image2d_max_width >= 8192 && limits.image2d_max_height >= 8192);
    for extent in [limits.image3d_max_width, limits.image3d_max_height, limits.image3d_max_depth] {
        assert!(extent >= 2048);
    }
    assert!(limits.image_max_buffer_size >= 65536);
    // A picture of the least width that every device has.
    let image = UnsampledImage::uninit(R8Uint, [1, 8192]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let image = cg.access_image(&image, Write.no_init());
        cg.parallel_for([1, 8192], move |item: Item<2>| image.set(item, Uint4::splat(item.get(1) as u32 % 251)))
    });
    submitted.unwrap();
    assert!(image.to_vec::<u8>().unwrap().iter().enumerate().all(|(i, &x)| usize::from(x) == i % 251));
}

/// The bytes of memory that programs can have; `None` if the system does not tell.
fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}

/// Positions whose numbers of bytes and of pixels need more than 32 bits.
fn pixels_beyond_four_gigabytes_are_read_and_written(env: &Env) {
    const N: usize = (1 << 16) + 1;
    const LAST: i32 = 1 << 16;
    // The last one and the first one have the same place but for the bits above 32, and the middle one needs the 32nd.
    const PLACES: [[i32; 2]; 5] = [[1, LAST - 1], [0, 0], [LAST / 2, 0], [LAST, 0], [LAST, LAST]];
    let (info, n_bytes) = (env.device().info(), (N * N) as u64);
    if env.device().has(Aspect::Emulated) {
        env.skip("a simulated device writes to all of its memory, which takes long");
    }
    if info.max_mem_alloc_size < n_bytes || info.global_mem_size < 2 * n_bytes {
        env.skip(format!("the device has too little memory for an image of {n_bytes} bytes"));
    }
    // A device's memory may be that of the host.
    if !env.device().is_gpu() && free_memory().is_none_or(|free| free < 2 * n_bytes) {
        env.skip(format!("the host has too little memory for an image of {n_bytes} bytes, or does not tell"));
    }
    let image = UnsampledImage::uninit(R8Uint, [N, N]).unwrap();
    let seen = Buffer::from_vec(vec![[0u32; 2]; PLACES.len()]).unwrap();
    let queue = env.queue();
    let written = queue.single_task_with(image.with(Write.no_init()), |task, image| {
        for (i, place) in PLACES.into_iter().enumerate() {
            image.set_at(task, place, Uint4::splat(i as u32 + 1));
        }
    });
    written.unwrap();
    let near = image.sampled(ImageSampler::NEAREST);
    let arguments = (image.read::<Uint4>(), near.read::<Uint4>(), seen.write());
    let read = queue.parallel_for_with(PLACES.len(), arguments, |item, (image, near, seen)| {
        let place = PLACES[item.index()];
        seen.set(item, [image.read(item, place)[0], near.sample(item, place.map(|at| at as f32 + 0.5))[0]]);
    });
    read.unwrap();
    assert_eq!(seen.to_vec().unwrap(), [1, 2, 3, 4, 5].map(|level| [level; 2]));
}

fn simulated(config: SimulatedConfig) -> Queue {
    Queue::new(&Simulator::new(config).unwrap().devices()[0]).unwrap()
}

fn limits_follow_from_memory_and_positions() {
    let limits = |bytes| simulated(SimulatedConfig::new(1).memory(bytes)).device().image_limits();
    let small = limits(100_000);
    assert_eq!(
        (small.image2d_max_width, small.image2d_max_height, small.image_max_buffer_size),
        (100_000, 100_000, 100_000)
    );
    let large = limits(1 << 40);
    assert_eq!((large.image2d_max_width, large.image3d_max_depth), (1 << 30, 1 << 30));
    // The widest image that there can be, of which nothing is touched.
    let width = large.image_max_buffer_size;
    assert_eq!(UnsampledImage::uninit(R8Uint, width).unwrap().range(), Range([width]));
    let error = UnsampledImage::uninit(R8Uint, width + 1).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("[1073741825]") && message.contains("above 1073741824"), "{message}");
}

/// Submits a kernel with an accessor to the image, and one with an accessor to the image with a sampler.
fn kernels_that_read<F: PixelFormat>(queue: &Queue, image: &UnsampledImage<2, F>) -> [oxisycl::Result<Event>; 4] {
    let smooth = image.sampled(ImageSampler::LINEAR);
    let read = queue.submit(|cg| {
        cg.access_image::<Float4, _, _, _>(image, Read);
        cg.single_task(|_| {})
    });
    let sampled = queue.submit(|cg| {
        cg.access_sampled::<Float4, _, _>(&smooth);
        cg.single_task(|_| {})
    });
    let read_argument = queue.single_task_with(image.read::<Float4>(), |_, _| {});
    [read, sampled, read_argument, queue.single_task_with(smooth.read::<Float4>(), |_, _| {})]
}

/// Submits kernels with blocks of the image, by an accessor and by an argument.
fn kernels_that_write_blocks(queue: &Queue, image: &UnsampledImage<2>) -> [oxisycl::Result<Event>; 2] {
    let blocks = queue.submit(|cg| {
        cg.access_image_chunks::<Float4, _, _, _>(image, Write, [5, 5]);
        cg.single_task(|_| {})
    });
    [blocks, queue.single_task_with(image.with::<Float4, _>(Write).chunks([5, 5]), |_, _| {})]
}

/// Submits the copies of the image from and to everything that there is, and a fill of it.
fn copies_and_a_fill(queue: &Queue, image: &UnsampledImage<2>) -> [oxisycl::Result<Event>; 7] {
    let other = UnsampledImage::uninit(image.format(), image.range()).unwrap().named("large");
    let buffer = Buffer::from_vec(vec![0u8; image.byte_size()]).unwrap();
    let memory = vec![0u8; image.byte_size()];
    [
        queue.copy_image(image, &other),
        queue.copy_image(&other, image),
        queue.copy_image_from_buffer(&buffer, image),
        queue.copy_image_to_buffer(image, &buffer),
        queue.copy_image_from_host(memory.clone(), image).map(|copy| copy.event().clone()),
        queue.copy_image_to_host(image, memory).map(|copy| copy.event().clone()),
        queue.fill_image(image, Float4::splat(0.0)),
    ]
}

fn an_image_larger_than_the_devices_allocations_is_refused() {
    let queue = simulated(SimulatedConfig::new(1).memory(1000));
    let image = UnsampledImage::zeroed(ImageFormat::R8G8B8A8_UNORM, [25, 11]).unwrap().named("large");
    let (since, errors) = counted(|| {
        let refused = kernels_that_read(&queue, &image).into_iter().chain(kernels_that_write_blocks(&queue, &image));
        refused.chain(copies_and_a_fill(&queue, &image)).map(Result::unwrap_err).collect::<Vec<_>>()
    });
    assert_eq!(errors.len(), 13);
    assert_eq!((since.nodes, since.kernels, since.fills, since.buffer_allocations), (0, 0, 0, 0));
    assert_eq!((since.bytes_to_device, since.bytes_to_host), (0, 0));
    for error in errors {
        let message = error.to_string();
        assert_eq!(error.code(), ErrorCode::MemoryAllocation, "{message}");
        assert!(message.contains("\"large\"") && message.contains("has 1100 bytes"), "{message}");
        assert!(message.contains("has 1000"), "{message}");
    }
    assert_eq!(code(image.reserve(queue.device())), ErrorCode::MemoryAllocation);
    let fits = UnsampledImage::uninit(ImageFormat::R8G8B8A8_UNORM, [25, 10]).unwrap();
    queue.fill_image(&fits, Float4::splat(1.0)).unwrap();
    assert_eq!(fits.to_vec::<u8>().unwrap(), [255; 1000]);
}

fn a_device_without_images_refuses_accessors_and_nothing_else() {
    let queue = simulated(SimulatedConfig::new(1).images(false));
    assert!(!queue.device().has(Aspect::Image));
    assert_eq!(queue.device().image_limits(), ImageLimits::default());
    let image = UnsampledImage::from_vec(R32Float, vec![1.0f32; 4], [2, 2]).unwrap();
    let (since, errors) = counted(|| kernels_that_read(&queue, &image).map(Result::unwrap_err));
    assert_eq!((since.kernels, since.bytes_to_device), (0, 0));
    for error in errors {
        assert_eq!(error.code(), ErrorCode::FeatureNotSupported);
        assert!(error.to_string().contains("lacks the aspect image"), "{error}");
    }
    // Moving bytes needs no images.
    queue.fill_image(&image, Float4::splat(4.0)).unwrap();
    assert_eq!(image.to_vec::<f32>().unwrap(), [4.0; 4]);
    assert_eq!(image.host_access::<Float4, _>(Read).unwrap().read([1, 1])[0], 4.0);
}
