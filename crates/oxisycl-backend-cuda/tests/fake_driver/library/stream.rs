//! Streams as threads, and events.

use std::collections::VecDeque;
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::device::{set_sticky, sticky};
use crate::{Code, INVALID_HANDLE, NOT_READY, SUCCESS, begin_in_context, put};

type Work = Box<dyn FnOnce() -> Code + Send>;

pub struct Stream {
    pub context: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    work: VecDeque<Work>,
    /// Work that has not ended.
    n_pending: usize,
    is_closed: bool,
}

impl Stream {
    /// # Safety
    /// The handle came from `cuStreamCreateWithPriority` and was not destroyed.
    pub unsafe fn of(handle: usize) -> Arc<Self> {
        let pointer = handle as *const Self;
        // SAFETY: by the contract of this function, the handle holds a count.
        unsafe {
            Arc::increment_strong_count(pointer);
            Arc::from_raw(pointer)
        }
    }

    pub fn push(&self, work: impl FnOnce() -> Code + Send + 'static) {
        let mut state = self.state.lock().unwrap();
        state.work.push_back(Box::new(work));
        state.n_pending += 1;
        self.changed.notify_all();
    }

    /// Waits until there is room for more work.
    pub fn wait_for_room(&self) {
        let depth = crate::config(|config| config.depth);
        let mut state = self.state.lock().unwrap();
        while state.n_pending >= depth {
            state = self.changed.wait(state).unwrap();
        }
    }

    pub fn synchronize(&self) {
        let mut state = self.state.lock().unwrap();
        while state.n_pending > 0 {
            state = self.changed.wait(state).unwrap();
        }
    }

    fn run(&self) {
        loop {
            let work = {
                let mut state = self.state.lock().unwrap();
                loop {
                    if let Some(work) = state.work.pop_front() {
                        break work;
                    }
                    if state.is_closed {
                        return;
                    }
                    state = self.changed.wait(state).unwrap();
                }
            };
            while crate::config(|config| config.paused) {
                std::thread::sleep(Duration::from_micros(100));
            }
            // After an error nothing runs any more.
            if sticky(self.context) == SUCCESS {
                match work() {
                    SUCCESS => {}
                    code => set_sticky(self.context, code),
                }
            }
            self.state.lock().unwrap().n_pending -= 1;
            self.changed.notify_all();
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuStreamCreateWithPriority(stream: *mut usize, _flags: c_uint, _priority: c_int) -> Code {
    let context = begin_in_context!(cuStreamCreateWithPriority);
    let made = Arc::new(Stream { context, state: Mutex::default(), changed: Condvar::new() });
    let runner = made.clone();
    std::thread::spawn(move || runner.run());
    unsafe { put(stream, Arc::into_raw(made) as usize) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuStreamDestroy_v2(stream: usize) -> Code {
    begin_in_context!(cuStreamDestroy_v2);
    // SAFETY: takes the handle's count.
    let stream = unsafe { Arc::from_raw(stream as *const Stream) };
    stream.state.lock().unwrap().is_closed = true;
    stream.changed.notify_all();
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuStreamGetCtx(stream: usize, context: *mut usize) -> Code {
    begin_in_context!(cuStreamGetCtx);
    unsafe { put(context, Stream::of(stream).context) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuStreamQuery(stream: usize) -> Code {
    begin_in_context!(cuStreamQuery);
    let stream = unsafe { Stream::of(stream) };
    let is_busy = stream.state.lock().unwrap().n_pending > 0;
    match sticky(stream.context) {
        SUCCESS if is_busy => NOT_READY,
        code => code,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuStreamSynchronize(stream: usize) -> Code {
    begin_in_context!(cuStreamSynchronize);
    let stream = unsafe { Stream::of(stream) };
    stream.synchronize();
    sticky(stream.context)
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuStreamWaitEvent(stream: usize, event: usize, _flags: c_uint) -> Code {
    begin_in_context!(cuStreamWaitEvent);
    let (stream, event) = unsafe { (Stream::of(stream), Event::of(event)) };
    let target = event.state.lock().unwrap().recorded;
    stream.push(move || {
        event.wait(target);
        SUCCESS
    });
    SUCCESS
}

#[derive(Default)]
struct Event {
    context: usize,
    state: Mutex<EventState>,
    changed: Condvar,
}

#[derive(Default)]
struct EventState {
    recorded: u64,
    happened: u64,
    time: Option<Instant>,
}

impl Event {
    unsafe fn of(handle: usize) -> Arc<Self> {
        let pointer = handle as *const Self;
        // SAFETY: the handle holds a count.
        unsafe {
            Arc::increment_strong_count(pointer);
            Arc::from_raw(pointer)
        }
    }

    fn wait(&self, target: u64) {
        let mut state = self.state.lock().unwrap();
        while state.happened < target && sticky(self.context) == SUCCESS {
            state = self.changed.wait_timeout(state, std::time::Duration::from_millis(10)).unwrap().0;
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuEventCreate(event: *mut usize, _flags: c_uint) -> Code {
    let context = begin_in_context!(cuEventCreate);
    let made = Arc::new(Event { context, ..Event::default() });
    unsafe { put(event, Arc::into_raw(made) as usize) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuEventDestroy_v2(event: usize) -> Code {
    begin_in_context!(cuEventDestroy_v2);
    // SAFETY: takes the handle's count.
    drop(unsafe { Arc::from_raw(event as *const Event) });
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuEventRecord(event: usize, stream: usize) -> Code {
    let context = begin_in_context!(cuEventRecord);
    let (event, stream) = unsafe { (Event::of(event), Stream::of(stream)) };
    if event.context != context || stream.context != context {
        return INVALID_HANDLE;
    }
    let target = {
        let mut state = event.state.lock().unwrap();
        state.recorded += 1;
        state.recorded
    };
    stream.push(move || {
        let mut state = event.state.lock().unwrap();
        state.happened = state.happened.max(target);
        state.time = Some(Instant::now());
        event.changed.notify_all();
        SUCCESS
    });
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuEventQuery(event: usize) -> Code {
    begin_in_context!(cuEventQuery);
    let event = unsafe { Event::of(event) };
    let state = event.state.lock().unwrap();
    if state.happened >= state.recorded { SUCCESS } else { NOT_READY }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuEventSynchronize(event: usize) -> Code {
    begin_in_context!(cuEventSynchronize);
    let event = unsafe { Event::of(event) };
    let target = event.state.lock().unwrap().recorded;
    event.wait(target);
    sticky(event.context)
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) -> Code {
    begin_in_context!(cuEventElapsedTime);
    let (start, end) = unsafe { (Event::of(start), Event::of(end)) };
    let times = (start.state.lock().unwrap().time, end.state.lock().unwrap().time);
    let (Some(start), Some(end)) = times else { return INVALID_HANDLE };
    unsafe { put(milliseconds, end.saturating_duration_since(start).as_secs_f32() * 1e3) };
    SUCCESS
}
