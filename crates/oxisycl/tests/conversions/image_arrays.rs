//! Arrays of `ndarray` as images.

use ndarray::{Array, Array2, Array3, Array4, ArrayView2, ArrayView3, ArrayViewMut3, Axis, s};
use oxisycl::Result;
use oxisycl::images::{R8Uint, R32Float, Rgb8Unorm, Rgba8Uint, Rgba8Unorm, Rgba32Float};
use oxisycl::prelude::*;
use oxisycl::vector::{Float4, Uint4};

/// Channels that tell their indices.
fn channels(rows: usize, columns: usize, n: usize) -> Array3<u8> {
    Array::from_shape_fn((rows, columns, n), |(row, column, channel)| (50 * row + 5 * column + channel) as u8)
}

/// Adds one to each channel on a device.
fn add_one(image: &UnsampledImage<2, Rgba8Uint>) -> Result<Event> {
    Queue::default()?.parallel_for_with(image.range(), image.update(), |item: Item<2>, image| {
        image.update(item, |pixel: Uint4| pixel + Uint4::splat(1))
    })
}

#[test]
fn an_array_of_channels_lends_its_memory_to_the_image_and_gets_it_back() -> Result {
    // Of some size, so that allocators align it to pixels.
    let array = Array3::<u8>::zeros([64, 48, 4]);
    let (memory, is_aligned) = (array.as_ptr(), array.as_ptr().addr().is_multiple_of(16));
    let image = UnsampledImage::<2, _>::from_array(Rgba8Uint, array)?;
    assert_eq!(image.range(), Range([64, 48]));
    add_one(&image)?;
    let back: Array3<u8> = image.into_array()?;
    assert_eq!(back, Array3::<u8>::ones([64, 48, 4]));
    assert_eq!(back.as_ptr() == memory, is_aligned);
    Ok(())
}

#[test]
fn an_array_of_pixels_lends_its_memory_to_the_image_and_gets_it_back() -> Result {
    let array = Array2::from_shape_fn((30, 20), |(row, column)| [row as f32, column as f32, 0.0, 1.0]);
    let (memory, is_aligned) = (array.as_ptr(), array.as_ptr().addr().is_multiple_of(16));
    let image: UnsampledImage<2, _> = UnsampledImage::from_array(Rgba32Float, array.clone())?;
    assert_eq!(image.host_access::<Float4, _>(Read)?.read([29, 3]), Float4::new(29.0, 3.0, 0.0, 1.0));
    assert_eq!(image.to_array::<[f32; 4], 2>()?, array);
    let image: UnsampledImage<2, _> = UnsampledImage::from_array(Rgba32Float, array)?;
    let back: Array2<[f32; 4]> = image.into_array()?;
    assert_eq!((back[[7, 11]], back.as_ptr() == memory), ([7.0, 11.0, 0.0, 1.0], is_aligned));
    Ok(())
}

#[test]
fn images_have_arrays_of_their_dimensions_or_one_more() -> Result {
    let volume = Array4::from_shape_fn((2, 3, 4, 4), |(z, y, x, c)| (60 * z + 15 * y + 4 * x + c) as u8);
    let image = UnsampledImage::<3, _>::from_array(Rgba8Unorm, volume.clone())?;
    assert_eq!((image.range(), image.to_array::<u8, 4>()?), (Range([2, 3, 4]), volume));
    let pixels: Array3<u32> = image.into_array()?;
    assert_eq!(pixels[[1, 2, 3]], u32::from_le_bytes([102, 103, 104, 105]));
    let line: UnsampledImage<1, _> = UnsampledImage::from_array(R32Float, Array::from_iter([0.0f32, 1.0, 2.0, 3.0]))?;
    assert_eq!(line.to_array::<f32, 2>()?.shape(), [4, 1]);
    assert_eq!(line.to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0]);
    Ok(())
}

#[test]
fn other_layouts_are_brought_into_that_of_the_image() -> Result {
    let picture = channels(3, 4, 4);
    // Turned round, and with a part of the columns.
    let mut turned = picture.clone();
    turned.invert_axis(Axis(0));
    let image = UnsampledImage::<2, _>::from_array(Rgba8Unorm, turned.clone())?;
    assert_eq!(image.into_array::<u8, 3>()?, turned);
    let part = picture.slice(s![.., 1..3, ..]);
    let image = UnsampledImage::<2, _>::from_array_view(Rgba8Unorm, part)?;
    assert_eq!((image.range(), image.into_array::<u8, 3>()?), (Range([3, 2]), part.to_owned()));
    // Channels that lie apart.
    let planes = picture.view().reversed_axes().as_standard_layout().into_owned();
    let image = UnsampledImage::<2, _>::from_array_view(Rgba8Unorm, planes.view().reversed_axes())?;
    assert_eq!(image.to_array::<u8, 3>()?, picture);
    // What a slice has left of its array.
    let rows = picture.clone().slice_move(s![1.., .., ..]);
    let image = UnsampledImage::<2, _>::from_array(Rgba8Unorm, rows.clone())?;
    assert_eq!(image.into_array::<u8, 3>()?, rows);
    Ok(())
}

#[test]
fn a_view_is_written_back_if_it_has_no_gaps() -> Result {
    let mut picture = channels(3, 4, 4);
    let before = picture.clone();
    // The first row stays.
    let (_, rows) = picture.view_mut().split_at(Axis(0), 1);
    let image = UnsampledImage::<2, _>::from_array_view_mut(Rgba8Uint, rows)?;
    add_one(&image)?;
    image.finish()?;
    assert_eq!(picture.slice(s![1.., .., ..]), before.slice(s![1.., .., ..]).to_owned() + 1);
    assert_eq!(picture.index_axis(Axis(0), 0), before.index_axis(Axis(0), 0));
    let columns = picture.slice_mut(s![.., 1.., ..]);
    let error = UnsampledImage::<2, _>::from_array_view_mut(Rgba8Uint, columns).unwrap_err();
    assert!(error.code() == ErrorCode::Invalid && error.to_string().contains("standard layout"), "{error}");
    Ok(())
}

#[test]
fn host_accessors_show_pixels_as_arrays() -> Result {
    let picture = channels(3, 4, 3);
    let image = UnsampledImage::<2, _>::from_array(Rgb8Unorm, picture.clone())?;
    let mut host = image.host_access::<Float4, _>(ReadWrite)?;
    assert_eq!(host.array_view::<u8, 3>()?, picture);
    let pixels: ArrayView2<'_, [u8; 3]> = host.array_view()?;
    assert_eq!((pixels[[2, 3]], pixels.as_ptr().cast()), ([115, 116, 117], host.as_bytes().as_ptr()));
    let mut writable: ArrayViewMut3<'_, u8> = host.array_view_mut()?;
    writable.index_axis_mut(Axis(2), 1).fill(255);
    assert_eq!(host.read([2, 3])[1], 1.0);
    drop(host);
    let expected = image.to_array::<u8, 3>()?;
    assert_eq!(expected.index_axis(Axis(2), 1), Array2::from_elem([3, 4], 255));
    assert_eq!(expected.index_axis(Axis(2), 0), picture.index_axis(Axis(2), 0));
    Ok(())
}

#[test]
fn sampled_images_are_made_of_arrays_and_give_them_back() -> Result {
    let heights = Array2::from_shape_fn((2, 2), |(row, column)| (10 * row + column) as f32);
    let smooth = SampledImage::<2, _>::from_array_view(R32Float, ImageSampler::LINEAR, heights.view())?;
    assert_eq!(smooth.host_access::<Float4>()?.sample([1.0, 1.0])[0], 5.5);
    assert_eq!(smooth.to_array::<f32, 2>()?, heights);
    let smooth = SampledImage::<2, _>::from_array(R32Float, ImageSampler::NEAREST, heights.clone())?;
    let failed = smooth.into_array::<u64, 2>().unwrap_err();
    let smooth = failed.into_image().sampled(ImageSampler::LINEAR);
    assert_eq!(smooth.into_array::<f32, 2>()?, heights);
    Ok(())
}

#[test]
fn elements_that_are_no_pixels_are_refused() -> Result {
    /// The message of an error for wrong input.
    #[track_caller]
    fn refused<T>(result: Result<T>, text: &str) {
        let Err(error) = result else { panic!("this was accepted") };
        assert_eq!(error.code(), ErrorCode::Invalid);
        assert!(error.to_string().contains(text), "{error}");
    }
    // Three channels for four, whole pixels of another size, parts of pixels without a dimension for them.
    refused(
        UnsampledImage::<2, _>::from_array(Rgba8Unorm, channels(2, 2, 3)),
        "shape [2, 2, 3] has 3 elements of u8 for each pixel: the format Rgba of UnormInt8 has 4",
    );
    refused(UnsampledImage::<2, _>::from_array(R8Uint, Array2::<u16>::zeros([2, 2])), "have 1 bytes");
    refused(UnsampledImage::<2, _>::from_array(Rgba8Unorm, Array2::<u8>::zeros([2, 2])), "a last dimension");
    refused(UnsampledImage::<2, _>::from_array_view(Rgb8Unorm, Array3::<u16>::zeros([2, 2, 2]).view()), "u16 has 2");
    refused(UnsampledImage::<2, _>::from_array(R8Uint, Array2::<u8>::zeros([0, 2])), "has no pixels");
    let image = UnsampledImage::zeroed(Rgba8Unorm, [2, 2])?;
    refused(image.to_array::<u8, 2>(), "need as many");
    let host = image.host_access::<Float4, _>(Read)?;
    refused(host.array_view::<u64, 3>().map(|_: ArrayView3<'_, u64>| ()), "u64 has 8");
    drop(host);
    let failed = image.into_array::<u16, 2>().unwrap_err();
    assert_eq!(failed.error().code(), ErrorCode::Invalid);
    assert_eq!(failed.into_image().into_array::<u32, 2>()?, Array2::<u32>::zeros([2, 2]));
    Ok(())
}
