//! Operators of vectors and arrays, elementwise. A scalar operand stands for all elements.

use core::ops::{
    Add, AddAssign, BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Div, DivAssign, Mul, MulAssign,
    Neg, Not, Rem, RemAssign, Shl, ShlAssign, Shr, ShrAssign, Sub, SubAssign,
};

use super::{MArray, Vector, VectorElement};

// Loops over few short steps, which LLVM writes out. A panic of an element's operator names the line of the vector's.
macro_rules! operators {
    ($($type:ident [$bound:path]: $($operator:ident $method:ident $assign:ident $assign_method:ident),*;)*) => { $($(
        impl<T: $bound + $operator<Output = T>, const N: usize> $assign for $type<T, N> {
            #[inline(always)]
            #[track_caller]
            fn $assign_method(&mut self, other: Self) {
                for (element, other) in self.iter_mut().zip(&other) {
                    *element = (*element).$method(*other);
                }
            }
        }

        impl<T: $bound + $operator<Output = T>, const N: usize> $assign<T> for $type<T, N> {
            #[inline(always)]
            #[track_caller]
            fn $assign_method(&mut self, other: T) {
                for element in self.iter_mut() {
                    *element = (*element).$method(other);
                }
            }
        }

        impl<T: $bound + $operator<Output = T>, const N: usize> $operator for $type<T, N> {
            type Output = Self;

            #[inline(always)]
            #[track_caller]
            fn $method(mut self, other: Self) -> Self {
                self.$assign_method(other);
                self
            }
        }

        impl<T: $bound + $operator<Output = T>, const N: usize> $operator<T> for $type<T, N> {
            type Output = Self;

            #[inline(always)]
            #[track_caller]
            fn $method(mut self, other: T) -> Self {
                self.$assign_method(other);
                self
            }
        }
    )*)* };
}

macro_rules! all_operators {
    ($($type:ident [$bound:path];)*) => {
        operators! { $(
            $type [$bound]:
                Add add AddAssign add_assign,
                Sub sub SubAssign sub_assign,
                Mul mul MulAssign mul_assign,
                Div div DivAssign div_assign,
                Rem rem RemAssign rem_assign,
                BitAnd bitand BitAndAssign bitand_assign,
                BitOr bitor BitOrAssign bitor_assign,
                BitXor bitxor BitXorAssign bitxor_assign,
                Shl shl ShlAssign shl_assign,
                Shr shr ShrAssign shr_assign;
        )* }
    };
}

all_operators! {
    Vector [VectorElement<N>];
    MArray [Copy];
}

macro_rules! unary {
    ($($type:ident [$bound:path]: $($operator:ident $method:ident),*;)*) => { $($(
        impl<T: $bound + $operator<Output = T>, const N: usize> $operator for $type<T, N> {
            type Output = Self;

            #[inline(always)]
            #[track_caller]
            fn $method(mut self) -> Self {
                for element in self.iter_mut() {
                    *element = (*element).$method();
                }
                self
            }
        }
    )*)* };
}

unary! {
    Vector [VectorElement<N>]: Neg neg, Not not;
    MArray [Copy]: Neg neg, Not not;
}

// The rules of coherence allow a scalar on the left side for types that are named.
macro_rules! scalars {
    ($($scalar:ty: $($operator:ident $method:ident)*;)*) => { $($(
        impl<const N: usize> $operator<Vector<$scalar, N>> for $scalar
        where
            $scalar: VectorElement<N>,
        {
            type Output = Vector<$scalar, N>;

            #[inline(always)]
            #[track_caller]
            fn $method(self, other: Vector<$scalar, N>) -> Vector<$scalar, N> {
                Vector::splat(self).$method(other)
            }
        }

        impl<const N: usize> $operator<MArray<$scalar, N>> for $scalar {
            type Output = MArray<$scalar, N>;

            #[inline(always)]
            #[track_caller]
            fn $method(self, other: MArray<$scalar, N>) -> MArray<$scalar, N> {
                MArray::splat(self).$method(other)
            }
        }
    )*)* };
}

scalars! {
    i8: Add add Sub sub Mul mul Div div Rem rem BitAnd bitand BitOr bitor BitXor bitxor Shl shl Shr shr;
    u8: Add add Sub sub Mul mul Div div Rem rem BitAnd bitand BitOr bitor BitXor bitxor Shl shl Shr shr;
    i16: Add add Sub sub Mul mul Div div Rem rem BitAnd bitand BitOr bitor BitXor bitxor Shl shl Shr shr;
    u16: Add add Sub sub Mul mul Div div Rem rem BitAnd bitand BitOr bitor BitXor bitxor Shl shl Shr shr;
    i32: Add add Sub sub Mul mul Div div Rem rem BitAnd bitand BitOr bitor BitXor bitxor Shl shl Shr shr;
    u32: Add add Sub sub Mul mul Div div Rem rem BitAnd bitand BitOr bitor BitXor bitxor Shl shl Shr shr;
    i64: Add add Sub sub Mul mul Div div Rem rem BitAnd bitand BitOr bitor BitXor bitxor Shl shl Shr shr;
    u64: Add add Sub sub Mul mul Div div Rem rem BitAnd bitand BitOr bitor BitXor bitxor Shl shl Shr shr;
    f32: Add add Sub sub Mul mul Div div Rem rem;
    f64: Add add Sub sub Mul mul Div div Rem rem;
}
#[cfg(feature = "half")]
scalars! { half::f16: Add add Sub sub Mul mul Div div Rem rem; }
