//! Errors of others leave a command group as this crate's, or around it.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn launch(queue: &Queue, text: &str) -> Result<Event, Box<dyn std::error::Error>> {
    let n: usize = text.parse()?;
    Ok(queue.parallel_for(n, |_| {})?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = Queue::default()?;
    launch(&queue, "8")?.wait()?;
    assert!(launch(&queue, "eight").is_err());
    let submitted = queue.submit(|cg| {
        let parsed = "eight".parse::<usize>();
        let n = parsed.map_err(|error| Error::with_source(ErrorCode::Invalid, "a bad size", error))?;
        cg.parallel_for(n, |_| {})
    });
    let error = submitted.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
    assert!(std::error::Error::source(&error).is_some());
    Ok(())
}
