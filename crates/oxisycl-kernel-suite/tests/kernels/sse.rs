//! Intrinsics of `core::arch::x86_64` that every such processor has: on other devices they are ordinary operations.

#[cfg(target_arch = "x86_64")]
mod kernels_of_x86 {
    use std::arch::x86_64::*;

    use crate::harness::{Env, kernels, scramble};

    kernels![
        lanes_are_compared_and_chosen,
        lanes_are_converted_to_integers,
        integers_are_narrowed_and_shifted,
        products_and_differences_are_summed,
        doubles_are_compared_and_converted,
    ];

    #[target_feature(enable = "sse2")]
    fn singles(i: usize) -> __m128 {
        let lane = |k: usize| match scramble(4 * i + k) % 9 {
            0 => f32::NAN,
            1 => -0.0,
            2 => 3e9,
            bits => (bits as f32 - 4.5) * 1.75,
        };
        _mm_set_ps(lane(0), lane(1), lane(2), lane(3))
    }

    #[target_feature(enable = "sse2")]
    fn integers(i: usize) -> __m128i {
        let lane = |k: usize| scramble(4 * i + k) as i32 >> (scramble(i) % 20);
        _mm_set_epi32(lane(0), lane(1), lane(2), lane(3))
    }

    fn lanes(register: __m128i) -> [u32; 4] {
        bytemuck::cast(register)
    }

    fn lanes_are_compared_and_chosen(env: &Env) {
        // SAFETY: every x86-64 processor has SSE2.
        env.compare(|i| unsafe {
            let (a, b) = (singles(i), singles(i + 1));
            let less = _mm_cmplt_ps(a, b);
            let extremes = _mm_add_ps(_mm_min_ps(a, b), _mm_max_ss(b, a));
            let masks = [less, _mm_cmpnge_ps(a, b), _mm_cmpunord_ps(a, b)].map(|mask| _mm_movemask_ps(mask) as u8);
            let chosen = _mm_or_ps(_mm_and_ps(less, a), _mm_andnot_ps(less, b));
            let shuffled = _mm_shuffle_ps::<0b01_11_00_10>(chosen, extremes);
            let flags = (_mm_comilt_ss(a, b), _mm_ucomineq_ss(a, b));
            (masks, bytemuck::cast::<__m128, [f32; 4]>(shuffled), bytemuck::cast::<__m128, [f32; 4]>(extremes), flags)
        });
    }

    fn lanes_are_converted_to_integers(env: &Env) {
        // SAFETY: every x86-64 processor has SSE2.
        env.compare(|i| unsafe {
            let a = singles(i);
            let lowest = (_mm_cvtss_si32(a), _mm_cvttss_si64(a));
            let root: [f32; 4] = bytemuck::cast(_mm_sqrt_ps(a));
            (lanes(_mm_cvtps_epi32(a)), lanes(_mm_cvttps_epi32(a)), lowest, root)
        });
    }

    fn integers_are_narrowed_and_shifted(env: &Env) {
        // SAFETY: every x86-64 processor has SSE2.
        env.compare(|i| unsafe {
            let (a, b) = (integers(i), integers(i + 1));
            let count = _mm_set_epi64x(7, (i % 70) as i64);
            let narrow = _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_sra_epi16(b, count));
            let shifted = _mm_xor_si128(_mm_sll_epi32(a, count), _mm_srl_epi64(b, count));
            let bytes = _mm_unpacklo_epi8(_mm_adds_epu8(a, b), _mm_avg_epu8(a, b));
            (lanes(narrow), lanes(shifted), lanes(bytes), _mm_movemask_epi8(_mm_cmpgt_epi8(a, b)))
        });
    }

    fn products_and_differences_are_summed(env: &Env) {
        // SAFETY: every x86-64 processor has SSE2.
        env.compare(|i| unsafe {
            let (a, b) = (integers(i), integers(i + 9));
            let wide = _mm_mul_epu32(a, b);
            (lanes(_mm_madd_epi16(a, b)), lanes(_mm_sad_epu8(a, b)), lanes(wide), lanes(_mm_mulhi_epi16(a, b)))
        });
    }

    fn doubles_are_compared_and_converted(env: &Env) {
        // SAFETY: every x86-64 processor has SSE2.
        env.compare(|i| unsafe {
            let (a, b) = (_mm_cvtps_pd(singles(i)), _mm_cvtps_pd(singles(i + 1)));
            let smallest: [f64; 2] = bytemuck::cast(_mm_min_pd(a, b));
            let mask = _mm_movemask_pd(_mm_cmple_pd(a, b));
            let narrow: [f32; 4] = bytemuck::cast(_mm_cvtpd_ps(_mm_mul_pd(a, b)));
            (smallest, mask, narrow, lanes(_mm_cvttpd_epi32(a)), _mm_cvtsd_si64(b))
        });
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use kernels_of_x86::TESTS;

#[cfg(not(target_arch = "x86_64"))]
crate::harness::kernels![];
