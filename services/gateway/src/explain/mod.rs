//! Explanations of objects, from what the store, the cache and the other processes have recorded.
//!
//! [`history`] lists the versions of an object, each with its writer and the fields that it changed. [`flaps`] makes
//! the same comparison for every write as it happens, and reports two writers that undo each other as an Event. [`why`]
//! combines the history, the Events (flaps among them) and the decision logs of all replicas, and concludes from them
//! what the object waits for.

pub(crate) mod flaps;
pub(crate) mod history;
pub(crate) mod why;
