//! A place in the user's source, which stays known when a plug-in is unloaded.

use std::fmt;
use std::panic::Location;

use super::{PlugIns, lasting};

/// A place in the user's source.
#[derive(Clone, Copy, Debug)]
pub enum SourcePlace {
    /// In what is never unloaded.
    Here(&'static Location<'static>),
    /// In a plug-in.
    Copied {
        /// The file.
        file: &'static str,
        /// The line, from 1.
        line: u32,
        /// The column, from 1.
        column: u32,
    },
}

impl SourcePlace {
    /// The place, whatever is unloaded.
    pub(crate) fn lasting(location: &'static Location<'static>) -> Self {
        let mut plug_ins = PlugIns::default();
        plug_ins.add(std::ptr::from_ref(location).cast());
        if plug_ins.is_empty() { Self::Here(location) } else { Self::copied(location) }
    }

    pub(crate) fn copied(location: &Location<'static>) -> Self {
        Self::Copied { file: lasting(location.file()), line: location.line(), column: location.column() }
    }
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(location) => fmt::Display::fmt(location, f),
            Self::Copied { file, line, column } => write!(f, "{file}:{line}:{column}"),
        }
    }
}
