//! Arrays of `ndarray`.

use ndarray::{Array, Array1, Array2, Array3, ArrayView2, Axis, ShapeBuilder, array, s};
use oxisycl::Result;
use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};

/// A matrix whose elements tell their indices.
fn matrix(rows: usize, columns: usize) -> Array2<u32> {
    Array::from_shape_fn((rows, columns), |(row, column)| (100 * row + column) as u32)
}

#[test]
fn an_array_lends_its_memory_to_the_buffer_and_gets_it_back() -> Result {
    let array = matrix(30, 20);
    let memory = array.as_ptr();
    let buffer = Buffer::from_array(array)?;
    assert_eq!(buffer.range(), Range([30, 20]));
    Queue::default()?.submit(|cg| {
        let buffer = cg.access(&buffer, ReadWrite);
        cg.parallel_for([30, 20], move |item| buffer.update(item, |x| x + 1))
    })?;
    let back = buffer.into_array()?;
    assert_eq!(back.as_ptr(), memory);
    assert_eq!(back, matrix(30, 20) + 1);
    Ok(())
}

#[test]
fn arrays_of_one_and_three_dimensions_keep_their_indices() -> Result {
    let line = Array1::from_iter(0..10);
    assert_eq!(Buffer::from_array(line.clone())?.into_array()?, line);
    let space = Array3::from_shape_fn((4, 3, 2), |(x, y, z)| 100 * x + 10 * y + z);
    let buffer = Buffer::from_array(space.clone())?;
    let host = buffer.host_access(Read)?;
    for (index, value) in space.indexed_iter() {
        assert_eq!(host[<[usize; 3]>::from(index)], *value);
    }
    assert_eq!(host.array_view(), space);
    Ok(())
}

#[test]
fn other_layouts_are_brought_into_that_of_the_buffer() -> Result {
    let expected = matrix(3, 4);
    let column_major = Array2::from_shape_fn((3, 4).f(), |(row, column)| (100 * row + column) as u32);
    assert!(!column_major.is_standard_layout());
    assert_eq!(Buffer::from_array(column_major)?.to_vec()?, expected.as_slice().unwrap());
    let mut upside_down = expected.clone();
    upside_down.invert_axis(Axis(0));
    let back = Buffer::from_array(upside_down.clone())?.into_array()?;
    assert!(back.is_standard_layout());
    assert_eq!((back.clone(), back[[0, 0]]), (upside_down, 200));
    Ok(())
}

#[test]
fn what_a_slice_has_left_of_an_array_is_the_buffer() -> Result {
    for rows in [0..2, 1..3, 3..4, 2..2, 4..4] {
        let part = matrix(4, 5).slice_move(s![rows.clone(), ..]);
        assert!(part.is_standard_layout());
        let back = Buffer::from_array(part)?.into_array()?;
        assert_eq!(back, matrix(4, 5).slice(s![rows, ..]));
    }
    Ok(())
}

#[test]
fn a_view_is_copied_in_any_layout() -> Result {
    let array = matrix(5, 6);
    for view in [array.view(), array.slice(s![1..4, 2..;2]), array.slice(s![..;-1, 3..]), array.t()] {
        let buffer = Buffer::from_array_view(view)?;
        assert_eq!(buffer.range().0, *view.shape());
        assert_eq!(buffer.to_array()?, view);
        assert_eq!(buffer.into_array()?, view);
    }
    Ok(())
}

#[test]
fn a_view_is_written_back_when_the_borrow_ends() -> Result {
    let mut array = matrix(4, 3);
    let buffer = Buffer::from_array_view_mut(array.slice_mut(s![1..3, ..]))?;
    Queue::default()?.fill(&buffer, 9)?;
    drop(buffer);
    assert_eq!(array, array![[0, 1, 2], [9, 9, 9], [9, 9, 9], [300, 301, 302]]);
    Ok(())
}

#[test]
fn a_view_that_is_not_in_order_cannot_be_written_back() {
    let mut array = matrix(4, 3);
    let error = Buffer::from_array_view_mut(array.view_mut().reversed_axes()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
    let message = error.to_string();
    assert!(message.contains("an array view of shape [3, 4] with strides [1, 3] cannot be written back"), "{message}");
    assert_eq!(array, matrix(4, 3));
}

#[test]
fn a_part_of_a_buffer_is_a_view_with_strides() -> Result {
    let space = Array3::from_shape_fn((4, 5, 6), |(x, y, z)| 100 * x + 10 * y + z);
    let buffer = Buffer::from_array(space.clone())?;
    let part = s![1..3, 2..5, 3..5];
    let host = buffer.host_access_range(Read, [1, 2, 3], [2, 3, 2])?;
    assert!(host.to_slice().is_none(), "the part has gaps");
    assert_eq!(host.array_view(), space.slice(part));
    drop(host);
    buffer.host_access_range(ReadWrite, [1, 2, 3], [2, 3, 2])?.array_view_mut().fill(7);
    let mut expected = space;
    expected.slice_mut(part).fill(7);
    assert_eq!(buffer.into_array()?, expected);
    Ok(())
}

#[test]
fn an_array_without_elements_keeps_its_shape() -> Result {
    for shape in [[0, 3], [3, 0], [0, 0]] {
        let buffer = Buffer::from_array(Array2::<f32>::zeros(shape))?;
        assert_eq!(buffer.range(), Range(shape));
        let mut host = buffer.host_access(ReadWrite)?;
        assert_eq!(host.array_view().shape(), shape);
        assert_eq!(host.array_view_mut().shape(), shape);
        drop(host);
        assert_eq!(buffer.into_array()?.shape(), shape);
    }
    // An accessor of nothing, at an offset that is the end of the buffer.
    let buffer = Buffer::from_array(matrix(2, 3))?;
    let host = buffer.host_access_range(Read, [2, 3], [0, 0])?;
    assert_eq!(host.array_view(), ArrayView2::<u32>::from_shape([0, 0], &[]).unwrap());
    Ok(())
}

#[test]
fn a_buffer_that_cannot_become_an_array_is_given_back() -> Result {
    let buffer = Buffer::from_array(matrix(2, 3))?;
    let other = buffer.clone();
    let failed = buffer.into_array().unwrap_err();
    assert_eq!(failed.error().code(), ErrorCode::Invalid);
    assert!(failed.to_string().contains("into_array of buffer"), "{failed}");
    drop(other);
    assert_eq!(failed.into_buffer().into_array()?, matrix(2, 3));

    // Its extents are more than those of any array, though it has no elements.
    let nothing = Buffer::<u8, 2>::from_vec_nd(Vec::new(), [0, usize::MAX])?;
    assert_eq!(nothing.to_array().unwrap_err().code(), ErrorCode::Invalid);
    let failed = nothing.into_array().unwrap_err();
    assert!(failed.to_string().contains("cannot become an array"), "{failed}");
    assert_eq!(failed.into_buffer().range(), Range([0, usize::MAX]));
    Ok(())
}

#[test]
fn what_another_device_has_written_comes_back_in_the_array() -> Result {
    let simulator = Simulator::new(SimulatedConfig::new(1))?;
    let queue = Queue::new(&simulator.devices()[0])?;
    let array = matrix(40, 30);
    let memory = array.as_ptr();
    let buffer = Buffer::from_array(array)?;
    queue.submit(|cg| {
        let buffer = cg.access(&buffer, ReadWrite);
        cg.parallel_for([40, 30], move |item| buffer.update(item, |x| 2 * x))
    })?;
    let back = buffer.into_array()?;
    assert_eq!((back.as_ptr(), back), (memory, matrix(40, 30) * 2));
    Ok(())
}
