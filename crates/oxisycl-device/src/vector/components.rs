//! Elements and parts of vectors by name.

use super::{Vector, VectorElement};

macro_rules! components {
    ($($n:literal ($($parameter:ident)*) $($name:ident $set:ident $index:literal)*;)*) => { $(
        impl<T: VectorElement<$n>> Vector<T, $n> {
            /// A vector of these elements.
            #[inline(always)]
            pub const fn new($($parameter: T),*) -> Self {
                Self::from_array([$($parameter),*])
            }

            $(
                #[doc = concat!("Element ", $index, ".")]
                #[inline(always)]
                pub const fn $name(self) -> T {
                    self.to_array()[$index]
                }

                #[doc = concat!("Writes element ", $index, ".")]
                #[inline(always)]
                pub const fn $set(&mut self, $name: T) {
                    self.as_mut_array()[$index] = $name;
                }
            )*
        }
    )* };
}

components! {
    1 (x) x set_x 0;
    2 (x y) x set_x 0 y set_y 1;
    3 (x y z) x set_x 0 y set_y 1 z set_z 2;
    4 (x y z w) x set_x 0 y set_y 1 z set_z 2 w set_w 3 r set_r 0 g set_g 1 b set_b 2 a set_a 3;
}

macro_rules! halves {
    ($($n:literal $half:literal;)*) => { $(
        impl<T: VectorElement<$n> + VectorElement<$half>> Vector<T, $n> {
            /// The lower half: the first elements.
            #[inline(always)]
            pub fn lo(self) -> Vector<T, $half> {
                Vector::from_fn(|i| self[i])
            }

            /// The upper half: the last elements.
            #[inline(always)]
            pub fn hi(self) -> Vector<T, $half> {
                Vector::from_fn(|i| self[$half + i])
            }

            /// The elements with even indices.
            #[inline(always)]
            pub fn even(self) -> Vector<T, $half> {
                Vector::from_fn(|i| self[2 * i])
            }

            /// The elements with odd indices.
            #[inline(always)]
            pub fn odd(self) -> Vector<T, $half> {
                Vector::from_fn(|i| self[2 * i + 1])
            }

            /// Writes the lower half.
            #[inline(always)]
            pub fn set_lo(&mut self, lo: Vector<T, $half>) {
                *self = Self::from_fn(|i| if i < $half { lo[i] } else { self[i] });
            }

            /// Writes the upper half.
            #[inline(always)]
            pub fn set_hi(&mut self, hi: Vector<T, $half>) {
                *self = Self::from_fn(|i| if i < $half { self[i] } else { hi[i - $half] });
            }

            /// Writes the elements with even indices.
            #[inline(always)]
            pub fn set_even(&mut self, even: Vector<T, $half>) {
                *self = Self::from_fn(|i| if i % 2 == 0 { even[i / 2] } else { self[i] });
            }

            /// Writes the elements with odd indices.
            #[inline(always)]
            pub fn set_odd(&mut self, odd: Vector<T, $half>) {
                *self = Self::from_fn(|i| if i % 2 == 0 { self[i] } else { odd[i / 2] });
            }
        }
    )* };
}

halves! { 2 1; 4 2; 8 4; 16 8; }
