//! Errors of OpenCL calls: which call, which code, the code's name in the headers, and what it means in words.
//!
//! A [`ClError`] is two numbers. It becomes a [`BackendError`] once, in the context, which also knows whether the device is lost with it.

use oxisycl_backend::BackendError;

use crate::quirks::Quirks;
use crate::sys::{Code, code};

/// An OpenCL call that did not return success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ClError {
    /// The function.
    pub(crate) call: &'static str,
    /// OpenCL's code.
    pub(crate) code: Code,
}

/// The result of an OpenCL call.
pub(crate) type Result<T, E = ClError> = std::result::Result<T, E>;

/// An error unless the code is success.
#[inline]
pub(crate) fn check(call: &'static str, code: Code) -> Result<()> {
    if code == code::SUCCESS { Ok(()) } else { Err(ClError { call, code }) }
}

impl ClError {
    /// Whether the error means that the device is lost, for a driver with these quirks. The backend passes valid objects only, so a driver
    /// that calls a context or queue invalid has given it up.
    pub(crate) fn is_sticky(self, quirks: Quirks) -> bool {
        match self.code {
            code::DEVICE_NOT_AVAILABLE | code::INVALID_CONTEXT | code::INVALID_COMMAND_QUEUE => true,
            UNNAMED_LOSS => quirks.unnamed_loss,
            _ => false,
        }
    }

    /// Whether the error means that memory is exhausted. Drivers use different codes for that.
    pub(crate) fn is_lack_of_memory(self) -> bool {
        matches!(self.code, code::MEM_OBJECT_ALLOCATION_FAILURE | code::OUT_OF_RESOURCES | code::OUT_OF_HOST_MEMORY)
    }

    /// The code's name and what it means.
    pub(crate) fn meaning(self) -> String {
        match NAMES.iter().find(|(code, ..)| *code == self.code) {
            Some((_, name, meaning)) => format!("{name}: {meaning}"),
            None => "an error that OpenCL has no name for".to_owned(),
        }
    }

    /// Converts the error, without considering whether the device is lost.
    pub(crate) fn to_backend(self) -> BackendError {
        BackendError::Driver { call: self.call, code: i64::from(self.code), name: self.meaning() }
    }
}

/// The code of the quirk `unnamed-loss`.
const UNNAMED_LOSS: Code = -9999;

/// Codes of the calls that the backend makes, as the specification explains them.
const NAMES: &[(Code, &str, &str)] = &[
    (-1, "CL_DEVICE_NOT_FOUND", "there is no such device"),
    (-2, "CL_DEVICE_NOT_AVAILABLE", "the device is not available"),
    (-3, "CL_COMPILER_NOT_AVAILABLE", "the driver has no compiler"),
    (-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE", "no memory could be allocated"),
    (-5, "CL_OUT_OF_RESOURCES", "the device has no resources left"),
    (-6, "CL_OUT_OF_HOST_MEMORY", "the host has no memory left"),
    (-7, "CL_PROFILING_INFO_NOT_AVAILABLE", "the command has no times"),
    (-11, "CL_BUILD_PROGRAM_FAILURE", "the program does not build"),
    (-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET", "an address is not aligned for the device"),
    (-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", "a command that was waited for has failed"),
    (-18, "CL_DEVICE_PARTITION_FAILED", "the device cannot be split that way"),
    (-19, "CL_INVALID_PARTITION_COUNT", "there are not so many compute units"),
    (-30, "CL_INVALID_VALUE", "an argument of the call has a value that it cannot have"),
    (-32, "CL_INVALID_PLATFORM", "there is no such platform"),
    (-33, "CL_INVALID_DEVICE", "the device is not one of the context"),
    (-34, "CL_INVALID_CONTEXT", "the context is not valid"),
    (-35, "CL_INVALID_QUEUE_PROPERTIES", "the device has no queues with these properties"),
    (-36, "CL_INVALID_COMMAND_QUEUE", "the queue is not valid"),
    (-42, "CL_INVALID_BINARY", "the binary is not one for the device"),
    (-43, "CL_INVALID_BUILD_OPTIONS", "the compiler does not know an option"),
    (-44, "CL_INVALID_PROGRAM", "the program is not valid"),
    (-45, "CL_INVALID_PROGRAM_EXECUTABLE", "the program was not built for the device"),
    (-46, "CL_INVALID_KERNEL_NAME", "the program has no kernel of that name"),
    (-47, "CL_INVALID_KERNEL_DEFINITION", "the kernel differs between devices"),
    (-48, "CL_INVALID_KERNEL", "the kernel is not valid"),
    (-49, "CL_INVALID_ARG_INDEX", "the kernel has no such argument"),
    (-50, "CL_INVALID_ARG_VALUE", "an argument has a value that it cannot have"),
    (-51, "CL_INVALID_ARG_SIZE", "an argument has another size than in the kernel"),
    (-52, "CL_INVALID_KERNEL_ARGS", "not all arguments of the kernel are set"),
    (-53, "CL_INVALID_WORK_DIMENSION", "the device has not so many dimensions"),
    (-54, "CL_INVALID_WORK_GROUP_SIZE", "the device or the kernel does not take groups of that size"),
    (-55, "CL_INVALID_WORK_ITEM_SIZE", "the device does not take groups that are so large in one dimension"),
    (-56, "CL_INVALID_GLOBAL_OFFSET", "the device does not take such an offset"),
    (-57, "CL_INVALID_EVENT_WAIT_LIST", "an event cannot be waited for"),
    (-58, "CL_INVALID_EVENT", "the event is not valid"),
    (-59, "CL_INVALID_OPERATION", "the device or the driver has no such operation"),
    (-61, "CL_INVALID_BUFFER_SIZE", "the device has no allocations of that size"),
    (-63, "CL_INVALID_GLOBAL_WORK_SIZE", "the device does not take so many work-items"),
    (-64, "CL_INVALID_PROPERTY", "the driver does not know a property"),
    (-68, "CL_INVALID_DEVICE_PARTITION_COUNT", "the device has not so many compute units"),
    (-1001, "CL_PLATFORM_NOT_FOUND_KHR", "the loader knows no driver"),
    (UNNAMED_LOSS, "an error of NVIDIA's driver", "a kernel has touched memory that it must not"),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_error_is_told_with_call_code_name_and_meaning() {
        let error = ClError { call: "clBuildProgram", code: -11 }.to_backend().to_string();
        assert_eq!(error, "clBuildProgram failed with CL_BUILD_PROGRAM_FAILURE: the program does not build (-11)");
        let unknown = ClError { call: "clFinish", code: -4711 }.to_backend().to_string();
        assert_eq!(unknown, "clFinish failed with an error that OpenCL has no name for (-4711)");
    }

    #[test]
    fn every_code_has_one_name() {
        let codes: HashSet<Code> = NAMES.iter().map(|(code, ..)| *code).collect();
        let names: HashSet<&str> = NAMES.iter().map(|(_, name, _)| *name).collect();
        assert_eq!((codes.len(), names.len()), (NAMES.len(), NAMES.len()));
        assert!(NAMES.is_sorted_by_key(|(code, ..)| -code));
    }

    #[test]
    fn a_missing_device_is_sticky_and_a_lack_of_memory_is_not() {
        let error = |code| ClError { call: "clFlush", code };
        let [nvidia, intel] =
            ["NVIDIA Corporation", "Intel(R) Corporation"].map(|vendor| Quirks::new(vendor, false, "1"));
        assert!(error(code::DEVICE_NOT_AVAILABLE).is_sticky(intel));
        assert!(error(-9999).is_sticky(nvidia) && !error(-9999).is_sticky(intel));
        assert!(!error(code::OUT_OF_RESOURCES).is_sticky(intel) && error(code::OUT_OF_RESOURCES).is_lack_of_memory());
    }
}
