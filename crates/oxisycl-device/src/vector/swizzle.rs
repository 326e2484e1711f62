//! Elements chosen by a row of names or indices.

use super::{Vector, VectorElement};

/// The elements of a [`Vector`] whose names are given, in their order (SYCL 2020 section 4.14.2.4).
///
/// The names are those of `xyzw`, those of `rgba`, or `s` and hexadecimal digits. They may be repeated where elements are read.
/// A name that the vector does not have is an error when the program is built.
///
/// ```
/// use oxisycl_device::vector::{Float2, Float4, swizzle};
///
/// let mut v = Float4::new(0.0, 1.0, 2.0, 3.0);
/// assert_eq!(swizzle!(v, wzzx), Float4::new(3.0, 2.0, 2.0, 0.0));
/// assert_eq!(swizzle!(v, bg), swizzle!(v, s21));
///
/// swizzle!(v, yx = Float2::new(8.0, 9.0));
/// swizzle!(v, zw *= 2.0);
/// assert_eq!(v, Float4::new(9.0, 8.0, 4.0, 6.0));
/// ```
///
/// ```compile_fail,E0080
/// # use oxisycl_device::vector::{Float2, swizzle};
/// let z = swizzle!(Float2::new(0.0, 1.0), xz); // there is no third element
/// ```
///
/// ```compile_fail,E0080
/// # use oxisycl_device::vector::{Float2, swizzle};
/// let mut v = Float2::new(0.0, 1.0);
/// swizzle!(v, xx = v); // the element would be written twice
/// ```
#[macro_export]
macro_rules! swizzle {
    ($vector:expr, $name:ident) => {{
        struct __Swizzle;
        impl $crate::vector::SwizzleName for __Swizzle {
            const NAME: &'static str = ::core::stringify!($name);
        }
        $crate::vector::Vector::swizzle_of::<{ $crate::vector::swizzle_length(::core::stringify!($name)) }, __Swizzle>(
            $vector,
        )
    }};
    ($vector:expr, $name:ident = $value:expr) => {{
        struct __Swizzle;
        impl $crate::vector::SwizzleName for __Swizzle {
            const NAME: &'static str = ::core::stringify!($name);
        }
        let value = $value;
        $crate::vector::Vector::set_swizzle_of::<
            { $crate::vector::swizzle_length(::core::stringify!($name)) },
            __Swizzle,
        >(&mut $vector, value)
    }};
    ($vector:expr, $name:ident $operator:tt $value:expr) => {{
        let value = $value;
        let vector = &mut $vector;
        let mut part = $crate::swizzle!(*vector, $name);
        part $operator value;
        $crate::swizzle!(*vector, $name = part)
    }};
}

/// What the macro makes of a name; not for users.
#[doc(hidden)]
pub trait SwizzleName {
    const NAME: &'static str;
}

/// How many elements a name names.
#[doc(hidden)]
pub const fn swizzle_length(name: &str) -> usize {
    if name.as_bytes()[0] == b's' { name.len() - 1 } else { name.len() }
}

/// The indices that a name stands for, each below `n`.
const fn indices<const M: usize>(name: &str, n: usize) -> [usize; M] {
    let name = name.as_bytes();
    let start = if name[0] == b's' { 1 } else { 0 };
    assert!(name.len() == start + M, "this is not the length of the name");
    let letters: &[u8] = match name[0] {
        b's' => b"0123456789abcdef",
        b'x' | b'y' | b'z' | b'w' => b"xyzw",
        _ => b"rgba",
    };
    let mut indices = [0; M];
    let mut at = 0;
    while at < M {
        let letter = if start == 1 { name[start + at].to_ascii_lowercase() } else { name[at] };
        let mut index = 0;
        while index < letters.len() && letters[index] != letter {
            index += 1;
        }
        assert!(index < letters.len(), "elements are named by `xyzw`, by `rgba`, or by `s` and hexadecimal digits");
        assert!(index < n, "the vector has no element of this name");
        indices[at] = index;
        at += 1;
    }
    indices
}

/// For each of `N` elements its place in the name, `M` if it has none.
const fn places<const M: usize, const N: usize>(name: &str) -> [usize; N] {
    let indices = indices::<M>(name, N);
    assert!(are_distinct(&indices), "an element would be written twice");
    let mut places = [M; N];
    let mut at = 0;
    while at < M {
        places[indices[at]] = at;
        at += 1;
    }
    places
}

const fn are_distinct(indices: &[usize]) -> bool {
    let mut second = 0;
    while second < indices.len() {
        let mut first = 0;
        while first < second {
            if indices[first] == indices[second] {
                return false;
            }
            first += 1;
        }
        second += 1;
    }
    true
}

/// Panics, in the caller's name, if an index is not one of `N` elements.
#[inline(always)]
#[track_caller]
fn check<const N: usize>(indices: &[usize]) {
    for index in indices {
        assert!(*index < N, "a vector of {N} elements has none with index {index}");
    }
}

impl<T: VectorElement<N>, const N: usize> Vector<T, N> {
    /// The elements with these indices, in their order. The macro [`swizzle!`] takes names.
    ///
    /// ```
    /// use oxisycl_device::vector::{Int2, Int3};
    ///
    /// assert_eq!(Int2::new(5, 6).swizzle([1, 0, 1]), Int3::new(6, 5, 6));
    /// ```
    ///
    /// # Panics
    /// An index is `N` or more.
    #[inline(always)]
    #[track_caller]
    pub fn swizzle<const M: usize>(self, indices: [usize; M]) -> Vector<T, M>
    where
        T: VectorElement<M>,
    {
        check::<N>(&indices);
        Vector::from_fn(|at| self.elements[indices[at]])
    }

    /// Writes the elements with these indices: the first of `value` to the first index, and so on.
    ///
    /// # Panics
    /// An index is `N` or more, or comes twice. No element is written then.
    #[inline(always)]
    #[track_caller]
    pub fn set_swizzle<const M: usize>(&mut self, indices: [usize; M], value: Vector<T, M>)
    where
        T: VectorElement<M>,
    {
        check::<N>(&indices);
        assert!(are_distinct(&indices), "an element would be written twice");
        for (index, element) in indices.iter().zip(&value) {
            self.elements[*index] = *element;
        }
    }

    /// What the macro reads.
    #[doc(hidden)]
    #[inline(always)]
    pub fn swizzle_of<const M: usize, S: SwizzleName>(self) -> Vector<T, M>
    where
        T: VectorElement<M>,
    {
        let indices = const { indices::<M>(S::NAME, N) };
        Vector::from_fn(|at| self.elements[indices[at]])
    }

    /// What the macro writes.
    #[doc(hidden)]
    #[inline(always)]
    pub fn set_swizzle_of<const M: usize, S: SwizzleName>(&mut self, value: Vector<T, M>)
    where
        T: VectorElement<M>,
    {
        let places = const { places::<M, N>(S::NAME) };
        *self = Self::from_fn(|i| if places[i] < M { value[places[i]] } else { self[i] });
    }
}
