//! Answers about objects: why one is as it is, the writes that made it so, and the fields that two writers fight over.

pub(crate) mod flaps;
pub(crate) mod history;
pub(crate) mod why;
