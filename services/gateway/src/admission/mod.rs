//! Admission by policies and webhooks, as upstream's plugins.
//!
//! ```text
//! object with defaults ─▶ mutating policies, in order                                       (`policy::mutating`)
//!   ─▶ mutating webhooks, in order; both again if others have changed it later               (`webhook::mutating`)
//!   ─▶ defaults, validation
//!   ─▶ validating policies                                                                    (`policy`)
//!   ─▶ validating webhooks, at the same time                                                  (`webhook::validating`)
//!   ─▶ commit
//! ```
//!
//! [`Chain`] is the way of one request through it. Both kinds of hooks select requests by [`constraints`] and match [`conditions`].
//! Expressions are compiled once for each version of a policy or configuration (`hooks`). Without any, a write costs one look into
//! the cache. Parts of a request that was admitted, such as the deletion by an eviction, are not admitted again. There is no audit log.

mod attributes;
mod authorizer;
mod chain;
mod conditions;
mod constraints;
mod hooks;
mod plugins;
mod policy;
pub(crate) mod reader;
mod reinvocation;
mod replacement;
mod request;
mod reservation;
mod surroundings;
mod webhook;

pub(crate) use attributes::{Attributes, Operation};
pub(crate) use chain::Chain;
pub(crate) use hooks::Hooks;
pub(crate) use plugins::Plugins;
pub(crate) use reader::{Reader, StoreReader};
pub(crate) use reservation::Reservation;
use webhook::internal;
