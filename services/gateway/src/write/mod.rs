//! The steps of a write, from the current object to the transaction.

pub(crate) mod body;
pub(crate) mod change;
pub(crate) mod conversion;
pub(crate) mod create;
pub(crate) mod current;
mod fencing;
pub(crate) mod field_manager;
pub(crate) mod guaranteed_update;
pub(crate) mod retry;
pub(crate) mod scale;
pub(crate) mod stored_value;
mod trace_links;
mod update;
pub(crate) mod write_metrics;
