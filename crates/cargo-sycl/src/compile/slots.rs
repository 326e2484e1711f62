//! How many compilations may run at a time. There are as many as cargo gives tokens for, so that a build uses the processors that the user
//! allows.

use std::num::NonZero;
use std::thread;

use jobserver::{Acquired, Client};

/// How many compilations may run at a time, and who says so.
pub(crate) enum Slots {
    /// Cargo's tokens. One is this process's own.
    OfCargo(Client),
    /// No jobserver gives tokens, and so many may run.
    Free(usize),
}

/// The right to run one compilation, until it is dropped.
pub(crate) struct Slot {
    _token: Option<Acquired>,
}

impl Slots {
    /// The build that this process is a part of.
    pub(crate) fn of_build() -> Self {
        // SAFETY: the descriptors that the environment names are cargo's, which passed them to this process for this use. Nothing else in
        // the process has opened or closed descriptors that it was not given.
        match unsafe { Client::from_env() } {
            Some(client) => Self::OfCargo(client),
            None => Self::Free(thread::available_parallelism().map_or(1, NonZero::get)),
        }
    }

    /// The right to run one more compilation beside so many, if there is one now. There always is for the first.
    pub(crate) fn take(&self, n_running: usize) -> Option<Slot> {
        let token = match self {
            _ if n_running == 0 => None,
            Self::Free(n_slots) if n_running < *n_slots => None,
            Self::Free(_) => return None,
            // If another process takes it first, this waits until that one gives it back, which does not depend on this process.
            Self::OfCargo(client) if client.available().is_ok_and(|n_tokens| n_tokens > 0) => client.acquire().ok(),
            Self::OfCargo(_) => return None,
        };
        Some(Slot { _token: token })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_needs_no_token_and_others_one_each() {
        let client = Client::new(1).unwrap();
        let slots = Slots::OfCargo(client.clone());
        let first = slots.take(0).unwrap();
        let second = slots.take(1).unwrap();
        assert!(first._token.is_none() && second._token.is_some());
        assert!(slots.take(2).is_none());
        drop(second);
        assert!(slots.take(1).is_some());
    }

    #[test]
    fn without_cargo_there_are_as_many_as_processors() {
        let slots = Slots::Free(2);
        assert!(slots.take(0).is_some() && slots.take(1).is_some() && slots.take(2).is_none());
    }
}
