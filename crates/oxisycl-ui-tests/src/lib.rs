//! A package of its own for the programs in `tests/ui`: trybuild builds what their package depends on once more for them.
