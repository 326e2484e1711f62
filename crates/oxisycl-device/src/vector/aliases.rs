//! SYCL's names of vector types, in Rust's case.

use super::Vector;

macro_rules! aliases {
    ($($type:ty: $($name:ident $n:literal)*;)*) => { $($(
        #[doc = concat!("A vector of ", $n, " `", stringify!($type), "`.")]
        pub type $name = Vector<$type, $n>;
    )*)* };
}

aliases! {
    i8: Char2 2 Char3 3 Char4 4 Char8 8 Char16 16;
    u8: Uchar2 2 Uchar3 3 Uchar4 4 Uchar8 8 Uchar16 16;
    i16: Short2 2 Short3 3 Short4 4 Short8 8 Short16 16;
    u16: Ushort2 2 Ushort3 3 Ushort4 4 Ushort8 8 Ushort16 16;
    i32: Int2 2 Int3 3 Int4 4 Int8 8 Int16 16;
    u32: Uint2 2 Uint3 3 Uint4 4 Uint8 8 Uint16 16;
    i64: Long2 2 Long3 3 Long4 4 Long8 8 Long16 16;
    u64: Ulong2 2 Ulong3 3 Ulong4 4 Ulong8 8 Ulong16 16;
    f32: Float2 2 Float3 3 Float4 4 Float8 8 Float16 16;
    f64: Double2 2 Double3 3 Double4 4 Double8 8 Double16 16;
}
#[cfg(feature = "half")]
aliases! { half::f16: Half2 2 Half3 3 Half4 4 Half8 8 Half16 16; }
