//! MutatingAdmissionPolicy: expressions make patches, which are applied to the object of a request one after the other.

mod dispatch;
mod failure;
mod patch;

pub(in crate::admission) use dispatch::{Pass, mutate};
