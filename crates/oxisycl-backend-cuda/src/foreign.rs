//! Streams and events that other code has made: what is asked of them before they are used.

use std::sync::Arc;

use oxisycl_backend::{BackendError, Command, NativeCommand, NativeQueue};

use crate::context::Context;
use crate::error::DriverError;
use crate::sys::{RawContext, RawEvent, RawStream, STREAM_PER_THREAD, code};

/// An error unless the stream is of the context.
///
/// # Safety
/// The handle is null or that of a live stream.
pub(crate) unsafe fn check_stream(context: &Context, stream: RawStream) -> Result<(), BackendError> {
    let refuse = |why: String| {
        let (found, expected) = (format!("{:p}{why}", stream.0), format!("a stream of context {:p}", context.raw.0));
        Err(BackendError::Handle { device: context.name.clone(), what: "queue", found, expected })
    };
    if stream == RawStream::NULL {
        return refuse(String::new());
    }
    if stream.0.addr() == STREAM_PER_THREAD {
        return refuse(", which is another stream on each thread".to_owned());
    }
    let _entered = context.enter()?;
    let mut of = RawContext::NULL;
    // SAFETY: a live stream, by the contract of this function; writes a handle.
    match unsafe { context.driver.stream_get_ctx(stream, &raw mut of) } {
        Ok(()) if of == context.raw => Ok(()),
        Ok(()) => refuse(format!(" of context {:p}", of.0)),
        Err(error) if error.is_sticky() => Err(context.fail(error)),
        Err(error) => refuse(refusal(error, context)),
    }
}

/// A command that makes its stream wait for what the event records now.
///
/// # Safety
/// The handle is null, or that of an event that lives until the command has ended.
pub(crate) unsafe fn wait(context: &Arc<Context>, event: RawEvent) -> Result<Command, BackendError> {
    let refuse = |why: String| {
        let (found, expected) = (format!("{:p}{why}", event.0), "an event of the driver".to_owned());
        Err(BackendError::Handle { device: context.name.clone(), what: "event", found, expected })
    };
    if event == RawEvent::NULL {
        return refuse(String::new());
    }
    let entered = context.enter()?;
    // SAFETY: a live event, by the contract of this function.
    match unsafe { context.driver.event_query(event) } {
        Err(error) if error.is_sticky() => return Err(context.fail(error)),
        Err(error) if error.code != code::NOT_READY => return refuse(refusal(error, context)),
        _ => {}
    }
    drop(entered);
    let context = context.clone();
    let work = move |native: NativeQueue| {
        // SAFETY: a live stream, whose context is current; the event lives, by the contract of this function.
        let waits = unsafe { context.driver.stream_wait_event(RawStream(native.queue), event, 0) };
        waits.map_err(|error| error.to_backend(&context.driver))
    };
    Ok(Command::Native(Box::new(NativeCommand::wait(format!("the native event {:p}", event.0), Box::new(work)))))
}

/// What the driver says of a handle that it does not take.
fn refusal(error: DriverError, context: &Context) -> String {
    format!(", for which {} says {}", error.call, error.meaning(&context.driver))
}
