//! What published crates have that do not know OxiSYCL: tables that no other crate sees, and what they remember of the processor.

use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// Private, and read by a function whose body rustc gives to other crates if it optimises this one.
static LETTERS: [u8; 12] = *b"zyxwvutsrqpo";

pub fn letter(n: usize) -> u8 {
    LETTERS[n % 12]
}

#[cfg(target_arch = "x86_64")]
fn asked() -> bool {
    std::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn asked() -> bool {
    false
}

/// As `cpufeatures` does it.
mod remembered {
    use super::*;

    static ANSWER: AtomicU8 = AtomicU8::new(u8::MAX);

    #[cold]
    fn ask() -> bool {
        let answer = super::asked();
        ANSWER.store(u8::from(answer), Ordering::Relaxed);
        answer
    }

    #[inline]
    pub(crate) fn get() -> bool {
        match ANSWER.load(Ordering::Relaxed) {
            u8::MAX => ask(),
            answer => answer == 1,
        }
    }
}

#[inline(never)]
pub fn hash(x: u32) -> u32 {
    if remembered::get() { x.wrapping_mul(0x0101_2323).rotate_left(7) } else { x.wrapping_mul(0x4545_6767).rotate_left(9) }
}

type Function = fn(u32) -> u32;

/// As `memchr` does it: the function that suits the processor.
static CHOSEN: AtomicPtr<()> = AtomicPtr::new(choose as Function as *mut ());

fn fast(x: u32) -> u32 {
    x ^ 0x1111_2222
}

fn slow(x: u32) -> u32 {
    x ^ 0x3333_4444
}

fn choose(x: u32) -> u32 {
    let chosen: Function = if asked() { fast } else { slow };
    CHOSEN.store(chosen as *mut (), Ordering::Relaxed);
    chosen(x)
}

#[inline(never)]
pub fn mixed(x: u32) -> u32 {
    // SAFETY: nothing else is stored there than functions of this type.
    let chosen = unsafe { std::mem::transmute::<*mut (), Function>(CHOSEN.load(Ordering::Relaxed)) };
    chosen(x)
}
