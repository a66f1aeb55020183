//! The registry: the verbs of the API over the store and its cache.
//!
//! A write passes access → defaults → preparation → validation → one transaction. The current object is read from the
//! cache, which may be stale; the transaction detects that, and the write is repeated with the stored object. Reads are
//! served by the cache, except for later pages of a list.

pub(crate) mod errors;
mod request_context;
mod response;
mod target;
pub(crate) mod validation;
mod verbs;
pub(crate) mod write;

use std::sync::Arc;

use setpoint_codec::Object;
use setpoint_model::Verb;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::Store;
use setpoint_store::cache::Cache;

use tokio::sync::OnceCell;

use crate::access::{self, SigningKey};
use crate::kinds::resourcequota::QuotaLocks;
use crate::kinds::view;
use crate::peers::Peers;
use crate::server_info::ServerInfo;

pub use request_context::RequestContext;
pub use response::ObjectResponse;
pub use setpoint_store::cache::{AtLeast, Before, Cached, Event, Filter, Start, Watch, WatchSpec};
pub use target::{Subresource, Target};
pub use verbs::delete::Deleted;
pub(crate) use verbs::patch::resets_managers;
pub use verbs::patch::{Check, Patch};
pub use verbs::read::{List, ListParams, RevisionMatch};
pub(crate) use write::allocation::Allocation;

/// All verbs, over a store and its cache.
pub struct Registry {
    store: Arc<dyn Store>,
    cache: Cache,
    allocations: write::allocation::AllocationLock,
    quota_locks: QuotaLocks,
    peers: Peers,
    server: ServerInfo,
    pub(crate) signing_key: OnceCell<Arc<SigningKey>>,
}

impl Registry {
    /// Returns a registry over a store; `cache` must be the cache of that store.
    pub fn new(store: Arc<dyn Store>, cache: Cache) -> Self {
        Self {
            store,
            cache,
            allocations: write::allocation::AllocationLock::default(),
            quota_locks: QuotaLocks::default(),
            peers: Peers::default(),
            server: ServerInfo::default(),
            signing_key: OnceCell::new(),
        }
    }

    /// Sets the addresses of other processes that the gateway may call.
    #[must_use]
    pub fn with_peers(mut self, peers: Peers) -> Self {
        self.peers = peers;
        self
    }

    /// Sets what the gateway publishes about itself.
    #[must_use]
    pub fn with_server(mut self, server: ServerInfo) -> Self {
        self.server = server;
        self
    }

    /// Returns what the gateway publishes about itself.
    pub(crate) fn server(&self) -> &ServerInfo {
        &self.server
    }

    /// Returns the addresses of other processes that the gateway may call.
    pub(crate) fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Returns the locks of namespaces with quotas.
    pub(crate) fn quota_locks(&self) -> &QuotaLocks {
        &self.quota_locks
    }

    /// Returns the store that the verbs write to.
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Returns the cache that the verbs read from.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Authorizes `verb` on a target.
    pub(crate) fn allow(
        &self,
        context: &RequestContext,
        verb: Verb,
        target: &Target,
    ) -> Result<(), ApiError> {
        access::allow(&context.user, verb, target.served, &target.namespace)
    }
}

/// Returns the object of a request in its stored form. If it is not of the kind that the URL names, returns `BadRequest`.
fn expect_kind(object: Box<dyn Object>, target: &Target) -> Result<Box<dyn Object>, ApiError> {
    let (sent, kind) = (object.kind(), target.served);
    if sent == kind {
        return Ok(view::to_stored(object));
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
