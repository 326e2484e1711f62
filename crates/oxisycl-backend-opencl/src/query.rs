//! Queries of platforms, devices, queues, events and programs: plain values from `clGet..Info`.
//!
//! A driver that does not know a query, or answers with another size, counts as one that says nothing: zero, or an empty text.

use std::ffi::c_void;

use crate::sys::{Code, Functions, Object};

/// An object that answers queries.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'f> {
    functions: &'f Functions,
    object: Object,
    get: unsafe extern "system" fn(crate::sys::Handle, u32, usize, *mut c_void, *mut usize) -> Code,
}

impl<'f> Asked<'f> {
    pub(crate) fn platform(functions: &'f Functions, platform: Object) -> Self {
        Self { functions, object: platform, get: functions.clGetPlatformInfo }
    }

    pub(crate) fn device(functions: &'f Functions, device: Object) -> Self {
        Self { functions, object: device, get: functions.clGetDeviceInfo }
    }

    pub(crate) fn queue(functions: &'f Functions, queue: Object) -> Self {
        Self { functions, object: queue, get: functions.clGetCommandQueueInfo }
    }

    pub(crate) fn event(functions: &'f Functions, event: Object) -> Self {
        Self { functions, object: event, get: functions.clGetEventInfo }
    }

    pub(crate) fn program(functions: &'f Functions, program: Object) -> Self {
        Self { functions, object: program, get: functions.clGetProgramInfo }
    }

    pub(crate) fn functions(&self) -> &'f Functions {
        self.functions
    }

    /// The answer's bytes; empty if there is no answer.
    pub(crate) fn bytes(&self, what: u32) -> Vec<u8> {
        let mut size = 0;
        // SAFETY: a live object; without room for an answer, the driver only writes its size.
        let asked = unsafe { (self.get)(self.object.0, what, 0, std::ptr::null_mut(), &raw mut size) };
        if asked != 0 || size == 0 {
            return Vec::new();
        }
        let mut bytes = vec![0u8; size];
        // SAFETY: a live object, and room for as many bytes as are said.
        let asked =
            unsafe { (self.get)(self.object.0, what, bytes.len(), bytes.as_mut_ptr().cast(), std::ptr::null_mut()) };
        if asked == 0 { bytes } else { Vec::new() }
    }

    pub(crate) fn text(&self, what: u32) -> String {
        let bytes = self.bytes(what);
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
    }

    /// A number of any of OpenCL's types.
    pub(crate) fn number(&self, what: u32) -> u64 {
        let bytes = self.bytes(what);
        match bytes[..] {
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => 0,
        }
    }

    /// A number of at most 32 bits.
    pub(crate) fn small(&self, what: u32) -> u32 {
        u32::try_from(self.number(what)).unwrap_or(u32::MAX)
    }

    /// A list of `size_t` or `cl_device_partition_property`.
    pub(crate) fn words(&self, what: u32) -> Vec<usize> {
        const WORD: usize = size_of::<usize>();
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, usize::from_ne_bytes);
        self.bytes(what).chunks_exact(WORD).map(word).collect()
    }
}
