//! Comparisons of each element. Those of vectors give masks, in which -1 is true and 0 is false; those of arrays give `bool`.

use super::element::sealed::MaskElement;
use super::{MArray, Vector, VectorElement};

macro_rules! comparisons {
    ($($name:ident $operator:tt $text:literal;)*) => {
        impl<T: VectorElement<N>, const N: usize> Vector<T, N> { $(
            #[doc = concat!("Where an element is ", $text, " that of `other`: -1, else 0.")]
            #[inline(always)]
            pub fn $name(self, other: Self) -> Vector<T::Mask, N> {
                self.zip_map(other, |x, y| MaskElement::of(x $operator y))
            }
        )* }

        impl<T: Copy, const N: usize> MArray<T, N> { $(
            #[doc = concat!("Where an element is ", $text, " that of `other`.")]
            #[inline(always)]
            pub fn $name(self, other: Self) -> MArray<bool, N>
            where
                T: PartialOrd,
            {
                self.zip_map(other, |x, y| x $operator y)
            }
        )* }
    };
}

comparisons! {
    eq_mask == "equal to";
    ne_mask != "not equal to";
    lt_mask < "less than";
    le_mask <= "less than or equal to";
    gt_mask > "greater than";
    ge_mask >= "greater than or equal to";
}
