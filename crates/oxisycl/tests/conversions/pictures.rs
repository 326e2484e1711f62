//! Images of `image` as images with a format.

use image::{DynamicImage, GrayImage, ImageBuffer, Luma, LumaA, Rgb, Rgb32FImage, RgbImage, Rgba, RgbaImage};
use oxisycl::images::{Bgra8Unorm, ChannelOrder, ChannelType, R8Unorm, R32Float, Rgba8Srgb, Rgba8Uint, Rgba8Unorm};
use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl::vector::{Float4, Uint4};
use oxisycl::{ImageFormat, ImagePixel, Result};

/// An image whose pixels tell their places.
fn picture(width: u32, height: u32) -> RgbaImage {
    RgbaImage::from_fn(width, height, |x, y| Rgba([x as u8, y as u8, (x / 256) as u8, 255]))
}

fn format(order: ChannelOrder, channel_type: ChannelType) -> ImageFormat {
    ImageFormat::new(order, channel_type).unwrap()
}

#[test]
fn a_picture_lends_its_memory_to_the_image_and_gets_it_back() -> Result {
    let simulator = Simulator::new(SimulatedConfig::new(1))?;
    for queue in [Queue::default()?, Queue::new(&simulator.devices()[0])?] {
        let memory = picture(300, 20);
        let address = memory.as_raw().as_ptr();
        assert!(address.addr().is_multiple_of(16), "malloc aligns to 16");
        let image = UnsampledImage::from_image_buffer(Rgba8Uint, memory)?;
        assert_eq!(image.range(), Range([20, 300]), "rows first");
        queue.submit(|cg| {
            let image = cg.access_image(&image, ReadWrite);
            cg.parallel_for([20, 300], move |item| image.update(item, |x: Uint4| Uint4::new(x[0], x[1], x[2], 7)))
        })?;
        let back: RgbaImage = image.into_image_buffer()?;
        assert_eq!((back.as_raw().as_ptr(), back.dimensions()), (address, (300, 20)));
        assert!(back.enumerate_pixels().all(|(x, y, pixel)| pixel.0 == [x as u8, y as u8, (x / 256) as u8, 7]));
    }
    Ok(())
}

#[test]
fn the_pixel_at_x_and_y_is_the_one_at_y_and_x() -> Result {
    let image = UnsampledImage::from_image_buffer(Rgba8Uint, picture(7, 5))?;
    let host = image.host_access::<Uint4, _>(Read)?;
    for (x, y, pixel) in picture(7, 5).enumerate_pixels() {
        assert_eq!(host.read([y as i32, x as i32]), Uint4::from_array(pixel.0.map(u32::from)));
    }
    Ok(())
}

/// There and back by a format, in the memory of the picture.
fn returns<P: ImagePixel + PartialEq + std::fmt::Debug>(
    order: ChannelOrder,
    channel_type: ChannelType,
    picture: ImageBuffer<P, Vec<P::Subpixel>>,
) -> Result
where
    P::Subpixel: PartialEq + std::fmt::Debug,
{
    let format = format(order, channel_type);
    let (copy, memory) = (picture.clone(), picture.as_raw().as_ptr());
    let aligned = memory.addr().is_multiple_of(16);
    let image = UnsampledImage::from_image_buffer(format, picture)?;
    assert_eq!(image.byte_size(), size_of_val(&copy.as_raw()[..]));
    assert_eq!(image.to_image_buffer::<P>()?, copy);
    let back = image.into_image_buffer::<P>()?;
    assert_eq!(aligned, back.as_raw().as_ptr() == memory, "memory that is aligned is the image's");
    assert_eq!(back, copy);
    Ok(())
}

#[test]
fn pixels_of_all_kinds_return_by_each_format_of_theirs() -> Result {
    use ChannelOrder as Order;
    use ChannelType as Type;
    for order in [Order::Luminance, Order::Intensity, Order::R, Order::Rx, Order::A] {
        returns(order, Type::UnormInt8, GrayImage::from_fn(5, 3, |x, y| Luma([(10 * x + y) as u8])))?;
        returns(order, Type::UnormInt16, ImageBuffer::from_fn(5, 3, |x, y| Luma([1000 * x as u16 + y as u16])))?;
        returns(order, Type::Float32, ImageBuffer::from_fn(5, 3, |x, y| Luma([x as f32 - y as f32])))?;
        returns(order, Type::SnormInt8, ImageBuffer::from_fn(5, 3, |x, y| Luma([x as i8 - y as i8])))?;
    }
    returns(Order::Ra, Type::UnormInt8, ImageBuffer::from_fn(5, 3, |x, y| LumaA([x as u8, y as u8])))?;
    for order in [Order::Rgb, Order::Rgbx, Order::Srgb] {
        returns(order, Type::UnormInt8, RgbImage::from_fn(5, 3, |x, y| Rgb([x as u8, y as u8, 3])))?;
    }
    returns(Order::Rgb, Type::UnormInt16, ImageBuffer::from_fn(5, 3, |x, y| Rgb([x as u16, y as u16, 3])))?;
    returns(Order::Rgb, Type::Float32, Rgb32FImage::from_fn(5, 3, |x, y| Rgb([x as f32, 0.5, y as f32])))?;
    returns(Order::Srgba, Type::UnormInt8, picture(5, 3))?;
    for channel_type in [Type::UnormInt8, Type::UnsignedInt8] {
        returns(Order::Rgba, channel_type, picture(5, 3))?;
    }
    for channel_type in [Type::UnormInt16, Type::UnsignedInt16] {
        returns(Order::Rgba, channel_type, ImageBuffer::from_fn(5, 3, |x, y| Rgba([x as u16, y as u16, 2, 9])))?;
    }
    for channel_type in [Type::SnormInt16, Type::SignedInt16] {
        returns(Order::Rgba, channel_type, ImageBuffer::from_fn(5, 3, |x, y| Rgba([x as i16, -(y as i16), 2, 9])))?;
    }
    returns(Order::Rgba, Type::SignedInt32, ImageBuffer::from_fn(5, 3, |x, y| Rgba([x as i32, -(y as i32), 2, 9])))?;
    returns(Order::Rgba, Type::UnsignedInt32, ImageBuffer::from_fn(5, 3, |x, y| Rgba([x, y, 2, 9])))?;
    returns(Order::Rgba, Type::Float32, ImageBuffer::from_fn(5, 3, |x, y| Rgba([x as f32, y as f32, 0.25, 1.0])))
}

#[test]
fn kernels_read_what_the_format_says_of_the_channels() -> Result {
    let read = |format: ImageFormat, pixel: Rgba<u8>| -> Result<[f32; 4]> {
        let image = UnsampledImage::from_image_buffer(format, RgbaImage::from_pixel(1, 1, pixel))?;
        Ok(image.host_access::<Float4, _>(Read)?.read([0, 0]).to_array())
    };
    let pixel = Rgba([255, 0, 51, 255]);
    assert_eq!(read(format(ChannelOrder::Rgba, ChannelType::UnormInt8), pixel)?, [1.0, 0.0, 0.2, 1.0]);
    let by_curve = read(format(ChannelOrder::Srgba, ChannelType::UnormInt8), pixel)?;
    assert!((by_curve[2] - 0.0331).abs() < 1e-4, "{by_curve:?}");
    // Gray is red, green and blue.
    let gray = UnsampledImage::from_dynamic_image(DynamicImage::ImageLuma8(GrayImage::from_pixel(1, 1, Luma([51]))))?;
    assert_eq!(gray.host_access::<Float4, _>(Read)?.read([0, 0]), Float4::new(0.2, 0.2, 0.2, 1.0));
    Ok(())
}

#[test]
fn formats_with_other_channels_are_refused() -> Result {
    // Its red and blue would be exchanged.
    let error = UnsampledImage::from_image_buffer(Bgra8Unorm, picture(3, 2)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
    let message = error.to_string();
    let expected = "pixels of the format Bgra of UnormInt8 are not `Rgba<u8>`: that has channels in the order Rgba or Srgba, each of them \
                    UnormInt8 or UnsignedInt8";
    assert!(message.contains(expected), "{message}");
    for order in [ChannelOrder::R, ChannelOrder::Rgb, ChannelOrder::Abgr] {
        let format = format(order, ChannelType::UnormInt8);
        assert_eq!(UnsampledImage::from_image_buffer(format, picture(3, 2)).unwrap_err().code(), ErrorCode::Invalid);
    }
    let floats = UnsampledImage::from_image_buffer(R32Float, GrayImage::new(4, 1)).unwrap_err();
    assert!(floats.to_string().contains("`Luma<u8>`"), "{floats}");

    // And on the way back, where the image stays.
    let image = UnsampledImage::from_image_buffer(Rgba8Unorm, picture(3, 2))?;
    assert_eq!(image.to_image_buffer::<Luma<u8>>().unwrap_err().code(), ErrorCode::Invalid);
    let failed = image.into_image_buffer::<Rgb<u8>>().unwrap_err();
    assert!(failed.to_string().contains("`Rgb<u8>`"), "{failed}");
    assert_eq!(failed.into_image().into_image_buffer::<Rgba<u8>>()?, picture(3, 2));
    Ok(())
}

#[test]
fn a_picture_without_pixels_is_no_image() {
    for (width, height) in [(0, 5), (5, 0), (0, 0)] {
        let error = UnsampledImage::from_image_buffer(Rgba8Unorm, RgbaImage::new(width, height)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Invalid);
    }
}

#[test]
fn memory_beyond_the_pixels_does_not_disturb() -> Result {
    let channels: Vec<u8> = (0..100).collect();
    let address = channels.as_ptr();
    let picture = RgbaImage::from_raw(3, 2, channels).unwrap();
    let back: RgbaImage = UnsampledImage::from_image_buffer(Rgba8Unorm, picture)?.into_image_buffer()?;
    assert_eq!((back.as_raw().as_ptr(), back.as_raw()), (address, &(0..24).collect()));
    Ok(())
}

#[test]
fn an_image_that_was_no_picture_becomes_one() -> Result {
    let pixels =
        vec![[1u8, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16], [17, 18, 19, 20], [21, 22, 23, 24]];
    let picture: RgbaImage = UnsampledImage::from_vec(Rgba8Unorm, pixels, [2, 3])?.into_image_buffer()?;
    assert_eq!((picture.dimensions(), picture.get_pixel(0, 1)), ((3, 2), &Rgba([13, 14, 15, 16])));
    // One whose pixels were made on a device.
    let ramp = UnsampledImage::uninit(R8Unorm, [2, 256])?;
    Queue::default()?.submit(|cg| {
        let ramp = cg.access_image(&ramp, Write.no_init());
        cg.parallel_for([2, 256], move |item: Item<2>| ramp.set(item, Float4::splat(item.get(1) as f32 / 255.0)))
    })?;
    assert_eq!(ramp.to_dynamic_image()?, DynamicImage::ImageLuma8(GrayImage::from_fn(256, 2, |x, _| Luma([x as u8]))));
    Ok(())
}

#[test]
fn an_image_in_use_elsewhere_is_given_back_or_copied() -> Result {
    let image = UnsampledImage::from_image_buffer(Rgba8Unorm, picture(3, 2))?;
    let other = image.clone();
    let failed = image.into_image_buffer::<Rgba<u8>>().unwrap_err();
    assert_eq!(failed.error().code(), ErrorCode::Invalid);
    assert_eq!(other.to_image_buffer::<Rgba<u8>>()?, picture(3, 2));
    drop(other);
    assert_eq!(failed.into_image().into_image_buffer::<Rgba<u8>>()?, picture(3, 2));
    Ok(())
}

#[test]
fn kinds_that_are_known_at_run_time_return() -> Result {
    let kinds = [
        DynamicImage::ImageLuma8(ImageBuffer::from_fn(5, 3, |x, y| Luma([(10 * x + y) as u8]))),
        DynamicImage::ImageLuma16(ImageBuffer::from_fn(5, 3, |x, y| Luma([1000 * x as u16 + y as u16]))),
        DynamicImage::ImageRgb8(ImageBuffer::from_fn(5, 3, |x, y| Rgb([x as u8, y as u8, 3]))),
        DynamicImage::ImageRgb16(ImageBuffer::from_fn(5, 3, |x, y| Rgb([x as u16, y as u16, 3]))),
        DynamicImage::ImageRgb32F(ImageBuffer::from_fn(5, 3, |x, y| Rgb([x as f32, 0.5, y as f32]))),
        DynamicImage::ImageRgba8(picture(5, 3)),
        DynamicImage::ImageRgba16(ImageBuffer::from_fn(5, 3, |x, y| Rgba([x as u16, y as u16, 3, 4]))),
        DynamicImage::ImageRgba32F(ImageBuffer::from_fn(5, 3, |x, y| Rgba([x as f32, y as f32, 0.5, 1.0]))),
    ];
    for kind in kinds {
        let (bytes, address) = (kind.as_bytes().to_vec(), kind.as_bytes().as_ptr());
        let image = UnsampledImage::from_dynamic_image(kind.clone())?;
        assert_eq!((image.range(), image.to_vec::<u8>()?), (Range([3, 5]), bytes));
        assert_eq!(image.to_dynamic_image()?, kind);
        assert_eq!(image.into_dynamic_image()?, kind);
        let sampled = SampledImage::from_dynamic_image(ImageSampler::LINEAR, kind)?;
        let back = sampled.into_dynamic_image()?;
        assert_eq!(back.as_bytes().as_ptr(), address);
    }
    Ok(())
}

#[test]
fn kinds_without_a_format_are_refused_with_a_way_out() -> Result {
    for (kind, names) in [
        (DynamicImage::new_luma_a8(4, 3), ["ImageLumaA8", "to_rgba8"]),
        (DynamicImage::new_luma_a16(4, 3), ["ImageLumaA16", "to_rgba16"]),
    ] {
        let error = UnsampledImage::from_dynamic_image(kind.clone()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Invalid);
        let message = error.to_string();
        assert!(names.iter().all(|name| message.contains(name)), "{message}");
        // The way out.
        let rgba = UnsampledImage::from_dynamic_image(kind.to_rgba8().into())?;
        assert_eq!(rgba.format(), ImageFormat::R8G8B8A8_UNORM);
    }
    for format in [ImageFormat::B8G8R8A8_UNORM, ImageFormat::R8G8B8A8_UINT, ImageFormat::R16G16B16A16_SFLOAT] {
        let image = UnsampledImage::<2>::zeroed(format, [3, 4])?;
        let message = image.to_dynamic_image().unwrap_err().to_string();
        assert!(message.contains(&format.to_string()), "{message}");
        let failed = image.into_dynamic_image().unwrap_err();
        assert_eq!((failed.error().code(), failed.into_image().format()), (ErrorCode::Invalid, format));
    }
    Ok(())
}

#[test]
fn a_sampled_picture_is_read_between_its_pixels() -> Result {
    let levels = GrayImage::from_fn(2, 1, |x, _| Luma([100 * x as u8]));
    let (expected, address) = (levels.clone(), levels.as_raw().as_ptr());
    let image = SampledImage::from_image_buffer(R8Unorm, ImageSampler::LINEAR, levels)?;
    let half = image.host_access::<Float4>()?.sample([0.5, 1.0]);
    assert!((half[0] - 50.0 / 255.0).abs() < 1e-6, "{half:?}");
    assert_eq!(image.to_image_buffer::<Luma<u8>>()?, expected);
    assert_eq!(image.to_dynamic_image()?, DynamicImage::ImageLuma8(expected.clone()));
    let back: GrayImage = image.into_image_buffer()?;
    assert_eq!((back.as_raw().as_ptr(), back), (address, expected));
    let other = SampledImage::from_image_buffer(Rgba8Srgb, ImageSampler::NEAREST, picture(3, 2))?;
    let failed = other.into_image_buffer::<Luma<u8>>().unwrap_err();
    assert_eq!(failed.into_image().into_dynamic_image()?, DynamicImage::ImageRgba8(picture(3, 2)));
    Ok(())
}
