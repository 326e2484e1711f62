//! Images of the crate `image`.

use image::{GrayImage, ImageBuffer, Luma, LumaA, Rgb, Rgb32FImage, Rgba, RgbaImage};
use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl::{FlatPixel, Result};

/// An image whose pixels tell their places.
fn picture(width: u32, height: u32) -> RgbaImage {
    RgbaImage::from_fn(width, height, |x, y| Rgba([x as u8, y as u8, (x / 256) as u8, 255]))
}

#[test]
fn an_image_lends_its_memory_to_the_buffer_and_gets_it_back() -> Result {
    let image = picture(300, 20);
    let memory = image.as_raw().as_ptr();
    let buffer = Buffer::from_image(image)?;
    assert_eq!(buffer.range(), Range([20, 300]), "rows first");
    Queue::default()?.submit(|cg| {
        let pixels = cg.access(&buffer, ReadWrite);
        cg.parallel_for([20, 300], move |item| pixels.update(item, |Rgba([r, g, b, _])| Rgba([r, g, b, 7])))
    })?;
    let back = buffer.into_image()?;
    assert_eq!(back.as_raw().as_ptr(), memory);
    assert_eq!(back.dimensions(), (300, 20));
    assert!(back.enumerate_pixels().all(|(x, y, pixel)| pixel.0 == [x as u8, y as u8, (x / 256) as u8, 7]));
    Ok(())
}

#[test]
fn the_pixel_at_x_and_y_is_the_element_at_y_and_x() -> Result {
    let image = picture(7, 5);
    let buffer = Buffer::from_image(image.clone())?;
    let host = buffer.host_access(Read)?;
    for (x, y, pixel) in image.enumerate_pixels() {
        assert_eq!(host[[y as usize, x as usize]], *pixel);
    }
    assert_eq!(buffer.to_image()?, image);
    Ok(())
}

/// There and back, in the memory of the image.
fn returns<P: FlatPixel + std::fmt::Debug>(image: ImageBuffer<P, Vec<P::Subpixel>>) -> Result
where
    P::Subpixel: PartialEq + std::fmt::Debug,
{
    let (copy, memory) = (image.clone(), image.as_raw().as_ptr());
    let buffer = Buffer::from_image(image)?;
    assert_eq!(buffer.byte_size(), size_of_val(&copy.as_raw()[..]));
    let copied = buffer.to_image()?;
    assert_eq!((copied.dimensions(), copied.as_raw()), (copy.dimensions(), copy.as_raw()));
    let back = buffer.into_image()?;
    assert_eq!((back.dimensions(), back.as_raw()), (copy.dimensions(), copy.as_raw()));
    assert_eq!(back.as_raw().as_ptr(), memory);
    Ok(())
}

#[test]
fn pixels_of_all_kinds_and_channels_return() -> Result {
    returns(GrayImage::from_fn(5, 3, |x, y| Luma([(10 * x + y) as u8])))?;
    returns(ImageBuffer::from_fn(5, 3, |x, y| Luma([1000 * x as u16 + y as u16])))?;
    returns(ImageBuffer::from_fn(5, 3, |x, y| LumaA([x as u8, y as u8])))?;
    returns(ImageBuffer::from_fn(5, 3, |x, y| LumaA([x as u16, y as u16])))?;
    returns(ImageBuffer::from_fn(5, 3, |x, y| Rgb([x as u8, y as u8, 3])))?;
    returns(Rgb32FImage::from_fn(5, 3, |x, y| Rgb([x as f32, 0.5, y as f32])))?;
    returns(ImageBuffer::from_fn(5, 3, |x, y| Rgba([x as u16, y as u16, 2, 9])))?;
    returns(ImageBuffer::from_fn(5, 3, |x, y| Rgba([x as f32, y as f32, 0.25, 1.0])))
}

#[test]
fn memory_beyond_the_pixels_does_not_disturb() -> Result {
    let channels: Vec<u8> = (0..100).collect();
    let image = RgbaImage::from_raw(3, 2, channels.clone()).unwrap();
    let buffer = Buffer::from_image(image)?;
    assert_eq!(buffer.size(), 6);
    assert_eq!(buffer.into_image()?.as_raw()[..], channels[..24]);
    Ok(())
}

#[test]
fn a_buffer_that_was_not_an_image_becomes_one() -> Result {
    let pixels = vec![Rgb([1u8, 2, 3]), Rgb([4, 5, 6]), Rgb([7, 8, 9]), Rgb([0, 1, 2]), Rgb([3, 4, 5]), Rgb([6, 7, 8])];
    let image = Buffer::from_vec_nd(pixels, [2, 3])?.into_image()?;
    assert_eq!(image.dimensions(), (3, 2));
    assert_eq!(image.get_pixel(0, 1), &Rgb([0, 1, 2]));
    // And a buffer of an image becomes a vector of pixels.
    assert_eq!(Buffer::from_image(image)?.into_vec()?[5], Rgb([6, 7, 8]));
    Ok(())
}

#[test]
fn an_image_without_pixels_keeps_its_extents() -> Result {
    for (width, height) in [(0, 5), (5, 0), (0, 0)] {
        let buffer = Buffer::from_image(RgbaImage::new(width, height))?;
        assert_eq!(buffer.range(), Range([height as usize, width as usize]));
        assert_eq!(buffer.into_image()?.dimensions(), (width, height));
    }
    Ok(())
}

#[test]
fn a_buffer_that_cannot_become_an_image_is_given_back() -> Result {
    let buffer = Buffer::from_image(picture(3, 2))?;
    let other = buffer.clone();
    let failed = buffer.into_image().unwrap_err();
    assert_eq!(failed.error().code(), ErrorCode::Invalid);
    drop(other);
    assert_eq!(failed.into_buffer().into_image()?, picture(3, 2));

    let wide = Buffer::<Luma<u8>, 2>::from_vec_nd(Vec::new(), [0, 1 << 32])?;
    assert_eq!(wide.to_image().unwrap_err().code(), ErrorCode::Invalid);
    let failed = wide.into_image().unwrap_err();
    assert!(failed.to_string().contains("[0, 4294967296] cannot become an image"), "{failed}");
    assert_eq!(failed.into_buffer().range(), Range([0, 1 << 32]));
    Ok(())
}

#[test]
fn what_another_device_has_written_comes_back_in_the_image() -> Result {
    let simulator = Simulator::new(SimulatedConfig::new(1))?;
    let queue = Queue::new(&simulator.devices()[0])?;
    let image = RgbaImage::new(50, 40);
    let memory = image.as_raw().as_ptr();
    let buffer = Buffer::from_image(image)?;
    queue.submit(|cg| {
        let pixels = cg.access(&buffer, Write);
        cg.parallel_for([40, 50], move |item: Item<2>| {
            pixels.set(item, Rgba([item.get(1) as u8, item.get(0) as u8, 0, 255]));
        })
    })?;
    let back = buffer.into_image()?;
    assert_eq!((back.as_raw().as_ptr(), back), (memory, picture(50, 40)));
    Ok(())
}
