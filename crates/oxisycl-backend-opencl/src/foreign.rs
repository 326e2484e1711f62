//! Driver queues, events and programs that other code has made: what is asked of them before they are used.

use std::ptr;
use std::sync::Arc;

use oxisycl_backend::{BackendError, Command, NativeCommand, NativeQueue, QueueOptions};
use oxisycl_types::DeviceType;

use crate::context::Context;
use crate::device_state::DeviceState;
use crate::error::{ClError, check};
use crate::lane::{self, ClQueue};
use crate::query::Asked;
use crate::sys::{Code, Object, code};

/// A queue on a driver queue of the device that other code has made. Holds a reference of it.
///
/// # Safety
/// The handle is null or that of a live queue.
pub(crate) unsafe fn adopt(
    device: &Arc<DeviceState>,
    device_type: DeviceType,
    raw: Object,
    options: QueueOptions,
) -> Result<ClQueue, BackendError> {
    let context = &device.context;
    context.check_alive()?;
    let (own_context, own_device) = (context.raw.0, context.device.0);
    let expected = || format!("a queue of context {own_context:p} and device {own_device:p}");
    let refuse = |found: String| Err(handle_error(context, "queue", found, expected()));
    if raw == Object::NULL {
        return refuse(format!("{:p}", raw.0));
    }
    let asked = Asked::queue(&context.functions, raw);
    let of = [code::QUEUE_CONTEXT, code::QUEUE_DEVICE].map(|what| asked.words(what).first().copied().unwrap_or(0));
    if of != [own_context.addr(), own_device.addr()] {
        return refuse(format!("{:p} of context {:#x} and device {:#x}", raw.0, of[0], of[1]));
    }
    // The query has the number of the property.
    let properties = asked.number(code::QUEUE_PROPERTIES as u32);
    if options.profiling && properties & code::QUEUE_PROFILING_ENABLE == 0 {
        let what = format!("profiling by the native queue {:p}, which was made without it", raw.0);
        return Err(BackendError::Unsupported { device: context.name.clone(), what });
    }
    let in_order = properties & code::QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE == 0;
    // SAFETY: a live queue, by the contract of this function.
    let retained = check("clRetainCommandQueue", unsafe { (context.functions.clRetainCommandQueue)(raw.0) });
    retained.map_err(|error| context.fail(error))?;
    lane::adopt_queue(device, device_type, raw, QueueOptions { in_order, ..options })
}

/// A reference of an event.
struct Retained {
    context: Arc<Context>,
    event: Object,
}

impl Drop for Retained {
    fn drop(&mut self) {
        if !self.context.is_foreign() {
            // SAFETY: retained by `wait`.
            unsafe { self.context.release_event(self.event) };
        }
    }
}

/// A command that waits for an event of the context. Holds a reference of it until it is issued.
///
/// # Safety
/// The handle is null or that of a live event.
pub(crate) unsafe fn wait(context: &Arc<Context>, event: Object) -> Result<Command, BackendError> {
    context.check_alive()?;
    let expected = || format!("an event of context {:p} that has not failed", context.raw.0);
    let refuse = |found: String| Err(handle_error(context, "event", found, expected()));
    if event == Object::NULL {
        return refuse(format!("{:p}", event.0));
    }
    let asked = Asked::event(&context.functions, event);
    let of = asked.words(code::EVENT_CONTEXT).first().copied().unwrap_or(0);
    if of != context.raw.0.addr() {
        return refuse(format!("{:p} of context {of:#x}", event.0));
    }
    let status = (asked.number(code::EVENT_COMMAND_EXECUTION_STATUS) as u32).cast_signed();
    if status < 0 {
        let failure = ClError { call: "the command", code: status as Code };
        return refuse(format!("{:p}, which has failed with {}", event.0, failure.meaning()));
    }
    // SAFETY: a live event, by the contract of this function.
    let retained = check("clRetainEvent", unsafe { (context.functions.clRetainEvent)(event.0) });
    retained.map_err(|error| context.fail(error))?;
    let retained = Retained { context: context.clone(), event };
    let work = move |native: NativeQueue| {
        // SAFETY: a live queue of the event's context, and an event that is retained.
        let result = unsafe {
            let barrier = retained.context.functions.clEnqueueBarrierWithWaitList;
            barrier(native.queue, 1, &raw const retained.event.0, ptr::null_mut())
        };
        check("clEnqueueBarrierWithWaitList", result).map_err(ClError::to_backend)
    };
    Ok(Command::Native(Box::new(NativeCommand::wait(format!("the native event {:p}", event.0), Box::new(work)))))
}

/// A reference of a program of the context that is built for its device.
///
/// # Safety
/// The handle is null or that of a live program.
pub(crate) unsafe fn retain_program(context: &Context, program: Object) -> Result<(), BackendError> {
    let (own_context, own_device) = (context.raw.0, context.device.0);
    let expected = || format!("a program of context {own_context:p} that is built for device {own_device:p}");
    let refuse = |found: String| Err(handle_error(context, "module", found, expected()));
    if program == Object::NULL {
        return refuse(format!("{:p}", program.0));
    }
    let of = Asked::program(&context.functions, program).words(code::PROGRAM_CONTEXT).first().copied().unwrap_or(0);
    if of != own_context.addr() {
        return refuse(format!("{:p} of context {of:#x}", program.0));
    }
    let mut status: Code = 0;
    // SAFETY: a live program, and room for a status.
    let asked = unsafe {
        let get = context.functions.clGetProgramBuildInfo;
        let value = (&raw mut status).cast();
        get(program.0, own_device, code::BUILD_STATUS, size_of::<Code>(), value, ptr::null_mut())
    };
    if asked != code::SUCCESS || status != code::SUCCESS {
        return refuse(format!("{:p}, which is not built for it", program.0));
    }
    // SAFETY: a live program, by the contract of this function.
    let retained = check("clRetainProgram", unsafe { (context.functions.clRetainProgram)(program.0) });
    retained.map_err(|error| context.fail(error))
}

fn handle_error(context: &Context, what: &'static str, found: String, expected: String) -> BackendError {
    BackendError::Handle { device: context.name.clone(), what, found, expected }
}
