//! The kernels that fill memory with patterns the driver has no call for, as PTX text.
//!
//! One kernel for each size of unit, so that aligned patterns are written in as few pieces as possible. Loaded on first use.

use std::fmt::Write;
use std::mem::MaybeUninit;
use std::sync::Arc;

use oxisycl_backend::BackendError;
use oxisycl_backend::driver::ImageFacts;
use parking_lot::Mutex;

use crate::context::Context;
use crate::error::DriverError;
use crate::module::{CudaModule, MISSING};
use crate::sys::RawFunction;

/// Longest pattern of one launch, in bytes.
pub(crate) const PATTERN_SIZE: usize = 256;

/// The kernels' parameter.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct FillParameters {
    pub(crate) target: u64,
    pub(crate) row_pitch: u64,
    pub(crate) slice_pitch: u64,
    /// Units of a row.
    pub(crate) row_units: u64,
    pub(crate) rows: u64,
    pub(crate) slices: u64,
    /// Units of the pattern.
    pub(crate) period: u32,
    reserved: u32,
    pattern: [MaybeUninit<u8>; PATTERN_SIZE],
}

impl FillParameters {
    /// Parameters with a copy of the `length` bytes at `pattern`, which may be padding, and zeros.
    pub(crate) fn new(pattern: *const u8, length: usize) -> Self {
        let mut parameters = Self {
            target: 0,
            row_pitch: 0,
            slice_pitch: 0,
            row_units: 0,
            rows: 1,
            slices: 1,
            period: 1,
            reserved: 0,
            pattern: [MaybeUninit::new(0); PATTERN_SIZE],
        };
        assert!(length <= PATTERN_SIZE, "a pattern of {length} bytes");
        // SAFETY: the callers pass a part of a `FillPattern`; it fits (checked above), and the target is a local.
        unsafe { pattern.cast::<MaybeUninit<u8>>().copy_to_nonoverlapping(parameters.pattern.as_mut_ptr(), length) };
        parameters
    }
}

/// The unit that a kernel writes at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    Byte,
    Two,
    Four,
    Eight,
}

impl Unit {
    const ALL: [Self; 4] = [Self::Byte, Self::Two, Self::Four, Self::Eight];

    /// The largest unit that divides all of some numbers. `bits` is their bitwise or.
    pub(crate) fn for_alignment(bits: u64) -> Self {
        match bits.trailing_zeros() {
            0 => Self::Byte,
            1 => Self::Two,
            2 => Self::Four,
            _ => Self::Eight,
        }
    }

    /// The size in bytes.
    pub(crate) fn size(self) -> usize {
        1 << self as usize
    }

    fn symbol(self) -> String {
        format!("oxisycl_fill_b{}", 8 * self.size())
    }

    /// The register class and its prefix. There are no registers of eight bits.
    fn register(self) -> (&'static str, &'static str) {
        match self {
            Self::Byte | Self::Two => ("b16", "%h0"),
            Self::Four => ("b32", "%w0"),
            Self::Eight => ("b64", "%d0"),
        }
    }
}

/// The text of the module.
pub(crate) fn ptx() -> String {
    let mut text = ".version 7.0\n.target sm_70\n.address_size 64\n".to_owned();
    for unit in Unit::ALL {
        let (symbol, size, bits) = (unit.symbol(), unit.size(), 8 * unit.size());
        let (class, value) = unit.register();
        let parameter_size = size_of::<FillParameters>();
        // `%rd1` is the unit's index in its row, `%rd6` the first row's address, `%rd10` the row, `%rd20` the slice.
        let _ = write!(
            text,
            "
.visible .entry {symbol}(.param .align 8 .b8 fill[{parameter_size}])
{{
    .reg .pred %p<8>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<32>;
    .reg .{class} {value};
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mul.wide.u32 %rd1, %r1, %r2;
    cvt.u64.u32 %rd2, %r3;
    add.u64 %rd1, %rd1, %rd2;
    ld.param.u64 %rd3, [fill+24];
    setp.ge.u64 %p1, %rd1, %rd3;
    @%p1 bra DONE;
    ld.param.u32 %r4, [fill+48];
    mov.u64 %rd5, 0;
    setp.eq.u32 %p2, %r4, 1;
    @%p2 bra LOAD;
    cvt.u64.u32 %rd4, %r4;
    rem.u64 %rd5, %rd1, %rd4;
LOAD:
    mov.u64 %rd7, fill;
    mul.lo.u64 %rd5, %rd5, {size};
    add.u64 %rd7, %rd7, %rd5;
    ld.param.b{bits} {value}, [%rd7+56];
    ld.param.u64 %rd6, [fill];
    mul.lo.u64 %rd8, %rd1, {size};
    add.u64 %rd6, %rd6, %rd8;
    cvta.to.global.u64 %rd6, %rd6;
    ld.param.u64 %rd11, [fill+8];
    ld.param.u64 %rd12, [fill+16];
    ld.param.u64 %rd13, [fill+32];
    ld.param.u64 %rd14, [fill+40];
    mov.u32 %r5, %ctaid.z;
    cvt.u64.u32 %rd20, %r5;
SLICE:
    setp.ge.u64 %p3, %rd20, %rd14;
    @%p3 bra DONE;
    mov.u32 %r6, %ctaid.y;
    cvt.u64.u32 %rd10, %r6;
ROW:
    setp.ge.u64 %p4, %rd10, %rd13;
    @%p4 bra NEXT;
    mul.lo.u64 %rd15, %rd10, %rd11;
    mul.lo.u64 %rd16, %rd20, %rd12;
    add.u64 %rd15, %rd15, %rd16;
    add.u64 %rd15, %rd15, %rd6;
    st.global.b{bits} [%rd15], {value};
    mov.u32 %r7, %nctaid.y;
    cvt.u64.u32 %rd17, %r7;
    add.u64 %rd10, %rd10, %rd17;
    bra ROW;
NEXT:
    mov.u32 %r8, %nctaid.z;
    cvt.u64.u32 %rd18, %r8;
    add.u64 %rd20, %rd20, %rd18;
    bra SLICE;
DONE:
    ret;
}}
"
        );
    }
    text
}

/// The kernels of one device.
#[derive(Default)]
pub(crate) struct FillKernels {
    loaded: Mutex<Option<Loaded>>,
}

struct Loaded {
    functions: [RawFunction; 4],
    /// Keeps the kernels loaded.
    _module: CudaModule,
}

impl FillKernels {
    /// Loads the kernels, if they are not loaded yet. Must not be called with a stream's lock held: the driver may wait for the device.
    pub(crate) fn prepare(&self, context: &Arc<Context>) -> Result<(), BackendError> {
        let mut loaded = self.loaded.lock();
        if loaded.is_none() {
            *loaded = Some(load(context)?);
        }
        Ok(())
    }

    /// The kernel for a unit. Called after `prepare`.
    pub(crate) fn function(&self, unit: Unit) -> Result<RawFunction, DriverError> {
        let loaded = self.loaded.lock();
        loaded.as_ref().map(|loaded| loaded.functions[unit as usize]).ok_or(MISSING)
    }
}

fn load(context: &Arc<Context>) -> Result<Loaded, BackendError> {
    // SAFETY: the code above.
    let module = unsafe { CudaModule::load(context, ptx().as_bytes(), ImageFacts::default()) }?;
    let _entered = context.enter()?;
    let mut functions = [RawFunction::NULL; 4];
    for unit in Unit::ALL {
        functions[unit as usize] = module.function(&unit.symbol()).map_err(|error| context.fail(error))?;
    }
    Ok(Loaded { functions, _module: module })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;
    use std::{env, fs};

    use super::*;

    #[test]
    fn the_parameter_is_where_the_text_reads_it() {
        assert_eq!(std::mem::offset_of!(FillParameters, pattern), 56);
        assert_eq!(std::mem::offset_of!(FillParameters, period), 48);
        assert_eq!(size_of::<FillParameters>(), 312);
    }

    #[test]
    fn units_are_as_large_as_the_alignment_allows() {
        let units = [12, 16 | 4, 6, 7, 8, 0].map(Unit::for_alignment);
        assert_eq!(units, [Unit::Four, Unit::Four, Unit::Two, Unit::Byte, Unit::Eight, Unit::Eight]);
        assert_eq!(Unit::ALL.map(Unit::size), [1, 2, 4, 8]);
    }

    /// The assembler that `cargo xtask test` installs below the target folder, else the one in `PATH`.
    fn assembler() -> PathBuf {
        let program = env::current_exe().expect("a path");
        let target = program.ancestors().nth(3).expect("cargo builds tests in `target/debug/deps`");
        let installed = target.join("tools/ptxas/packages/nvidia/cuda_nvcc/bin/ptxas");
        let path = env::var_os("PATH").unwrap_or_default();
        let known = env::split_paths(&path).map(|folder| folder.join("ptxas"));
        [installed].into_iter().chain(known).find(|path| path.is_file()).expect("ptxas is installed or in PATH")
    }

    #[test]
    #[ignore = "needs ptxas"]
    fn the_assembler_takes_the_text_for_old_and_new_processors() {
        let assembler = assembler();
        let file = env::temp_dir().join(format!("oxisycl-fill-kernels-{}.ptx", std::process::id()));
        let (text, mut results) = (ptx(), Vec::new());
        // The last one lacks its end.
        for (text, processor) in [(&text[..], "sm_70"), (&text[..], "sm_90"), (&text[..text.len() / 2], "sm_90")] {
            fs::write(&file, text.trim_end_matches('\0')).unwrap();
            let output = Command::new(&assembler).args(["-arch", processor, "-o", "/dev/null"]).arg(&file).output();
            let output = output.unwrap();
            results.push((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        fs::remove_file(&file).unwrap();
        let found: Vec<bool> = results.iter().map(|(success, _)| *success).collect();
        assert_eq!(found, [true, true, false], "{results:?}");
    }
}
