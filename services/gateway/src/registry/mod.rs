//! The API's verbs: what may be written, in what shape, and what the gateway itself fills in.
//!
//! A write goes through here in this order: access → defaults → preparation → validation → one transaction. What
//! is there now is read from the cache, in the hope that it is current: the transaction decides, and a stale hope
//! costs one more round. Reads never leave the cache, but for later pages of a list.

pub(crate) mod errors;
mod request_context;
mod response;
mod target;
pub(crate) mod validation;
mod verbs;
pub(crate) mod write;

use std::sync::Arc;

use setpoint_model::Verb;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::Store;
use setpoint_store::cache::Cache;

use crate::access;
use crate::peers::Peers;

pub use request_context::RequestContext;
pub use response::ObjectResponse;
pub use setpoint_store::cache::{AtLeast, Before, Cached, Event, Filter, Start, Watch, WatchSpec};
pub use target::{Subresource, Target};
pub use verbs::delete::Deleted;
pub use verbs::patch::{Check, Patch};
pub use verbs::read::{At, List, ListParams};
pub(crate) use write::allocation::Allocation;

/// All verbs, over a store and its cache.
pub struct Registry {
    store: Arc<dyn Store>,
    cache: Cache,
    allocations: write::allocation::Turns,
    peers: Peers,
}

impl Registry {
    /// The verbs over this store; `cache` must be one of the same store.
    pub fn new(store: Arc<dyn Store>, cache: Cache) -> Self {
        Self {
            store,
            cache,
            allocations: write::allocation::Turns::default(),
            peers: Peers::default(),
        }
    }

    /// The same verbs; what calls the processes that objects tell of calls only these.
    #[must_use]
    pub fn calling(mut self, peers: Peers) -> Self {
        self.peers = peers;
        self
    }

    /// Which processes that objects tell of may be called.
    pub(crate) fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Returns the store that the verbs write to.
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Returns the cache that the verbs read from.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    pub(crate) fn allow(
        &self,
        context: &RequestContext,
        verb: Verb,
        target: &Target,
    ) -> Result<(), ApiError> {
        access::allow(&context.user, verb, target.kind, &target.namespace)
    }
}

/// `BadRequest` unless the object is of the kind that the request is about.
fn expect_kind(
    object: &dyn setpoint_codec::Object,
    kind: &setpoint_codec::Kind,
) -> Result<(), ApiError> {
    let sent = object.kind();
    if sent == kind {
        return Ok(());
    }
    let message = format!(
        "the {} in the data ({}) does not match the expected {} ({})",
        sent.kind,
        sent.api_version(),
        kind.kind,
        kind.api_version()
    );
    Err(ApiError::new(Reason::BadRequest, message))
}
