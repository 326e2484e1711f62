//! Linking: the bitcode of crates and of the standard library, and how a program gets what it refers to.

pub(crate) mod definitions;
pub(crate) mod exports;
pub(crate) mod library;
pub(crate) mod resolve;
pub(crate) mod standard_library;
