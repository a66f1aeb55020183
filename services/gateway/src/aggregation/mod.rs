//! Other API servers behind this one (upstream: kube-aggregator). An APIService with a Service stands for a version of
//! a group that another server serves.
//!
//! An APIService wins over kinds that the gateway serves itself, except those of the core group. Over gRPC nothing is
//! forwarded.
//!
//! * The server is verified by `caBundle`, for the name `<service>.<namespace>.svc`, unless `insecureSkipTLSVerify`
//!   says otherwise; then only addresses of private networks are called. It learns the user from `X-Remote-User`,
//!   `-Group`, `-Uid` and `-Extra-…`, and recognises the gateway by its client certificate.
//! * The certificate is that of the settings (`front_proxy.*`), or one that the first gateway makes and keeps in the
//!   Secret `setpoint-system/front-proxy`; a gateway that finds the Secret deleted makes a new CA.
//!   `kube-system/extension-apiserver-authentication` has what servers need to know, the CAs of clients included.
//! * Bodies are streams, connections are upgraded, nothing is buffered or retried. A request ends within 60 s, or the
//!   `timeout` of its client; watches, logs and connections have no deadline. 1024 requests to one server may be in
//!   flight; further ones are answered 429. Errors are upstream's texts, redirects are refused (502).
//! * Every gateway checks each server when its APIService, Service or endpoints change, and every 30 s: the Service,
//!   its EndpointSlices, then a request, whose certificate is not verified, as upstream. The condition is written only
//!   if it says something else. Unlike upstream, the URL in its message has the name of the Service, and of several
//!   failures it is always the same, so that it does not change with the endpoint.
//! * Then the gateway fetches discovery (aggregated, or the list of resources), the place of the OpenAPI document of
//!   v3, and that of v2 (4 MiB at most each), which requests for `/apis` and `/openapi` find in memory. Those of a
//!   server that fails stay, as `Stale`.
//! * `/openapi/v2` has the paths of each such version and what they refer to. Paths of this server win; a definition
//!   that differs from the one of its name is renamed `<name>_v2`, as upstream. Unlike upstream, a document that
//!   clients could not read (a reference to nothing, an unknown type), or beyond 5000 definitions or 16 MiB of all, is
//!   left out, and the log says so; and the definitions of this server get no further kinds: theirs is renamed.
//!
//! ```text
//! APIService ─▶ Remote ─▶ Server ─┬▶ verified TLS with the certificate of the front proxy ─▶ endpoint of the Service
//!               (`remote`)        ├▶ unverified TLS, for checks of availability
//!                                 └▶ documents: the resources, the place of the OpenAPI document of v3, and that of v2 (`swagger`)
//! ```
//! The folder `http` forwards requests to the servers that are available, `background/aggregation` checks whether they
//! are and fetches their documents. A request waits for no document.

mod documents;
mod front_proxy;
mod gateway;
mod remote;
mod server;
mod swagger;
mod user_headers;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::RwLock;
use prost::Message as _;
use setpoint_codec::kind_of;
use setpoint_model::Key;
use setpoint_proto::ApiError;
use setpoint_proto::apiregistration::ApiService;
use setpoint_store::cache::{AtLeast, Cached};

pub(crate) use documents::{Documents, aggregate};
pub(crate) use front_proxy::{FrontProxy, NAME as FRONT_PROXY, NAMESPACE as FRONT_PROXY_NAMESPACE};
pub(crate) use gateway::Gateway;
pub(crate) use remote::Remote;
pub(crate) use server::{Error, Server};
pub(crate) use swagger::Swagger;
pub(crate) use user_headers::{
    EXTRA_PREFIX, GROUP, UID, USER, set as set_user, system as system_user,
};

/// The APIServices of other servers, as the cache has them, and the client certificate for calling them.
#[derive(Default)]
pub(crate) struct Aggregator {
    pub(crate) front_proxy: FrontProxy,
    known: RwLock<HashMap<String, Known>>,
}

/// An APIService as it was read last.
struct Known {
    source: Arc<Cached>,
    /// `None` if it has no Service.
    remote: Option<Arc<Remote>>,
}

impl Aggregator {
    /// Returns an aggregator with this identity.
    pub(crate) fn new(front_proxy: FrontProxy) -> Self {
        Self {
            front_proxy,
            known: RwLock::default(),
        }
    }

    /// Returns the server of a version of a group; `None` if this one serves it, or none does.
    pub(crate) async fn find(
        &self,
        gateway: &dyn Gateway,
        group: &str,
        version: &str,
    ) -> Option<Arc<Remote>> {
        let key = Key::new("", format!("{version}.{group}"));
        let found = gateway
            .cache()
            .get(kind_of::<ApiService>(), &key, AtLeast::Any);
        // Without a cache, the request fails by itself.
        let source = found.await.ok()??;
        self.read(gateway, &source)
            .filter(|remote| remote.is_used())
    }

    /// Returns the versions of groups whose requests go to other servers, in the order of their names.
    ///
    /// # Errors
    /// Those of [`Self::all`].
    pub(crate) async fn used(&self, gateway: &dyn Gateway) -> Result<Vec<Arc<Remote>>, ApiError> {
        let mut remotes = self.all(gateway).await?;
        remotes.retain(|remote| remote.is_used());
        Ok(remotes)
    }

    /// Returns the versions of groups that APIServices give to other servers, in the order of their names.
    ///
    /// # Errors
    /// If the cache is not loaded in time.
    pub(crate) async fn all(&self, gateway: &dyn Gateway) -> Result<Vec<Arc<Remote>>, ApiError> {
        let sources = gateway.cache().all_of(&[kind_of::<ApiService>()]).await?;
        let names: HashSet<&String> = sources.iter().map(|source| &source.key.name).collect();
        self.known.write().retain(|name, _| names.contains(name));
        let remotes = sources
            .iter()
            .filter_map(|source| self.read(gateway, source));
        Ok(remotes.collect())
    }

    /// Returns what an APIService says. It is decoded once; its server stays the same while its address and trust do.
    fn read(&self, gateway: &dyn Gateway, source: &Arc<Cached>) -> Option<Arc<Remote>> {
        let name = &source.key.name;
        let before = match self.known.read().get(name) {
            Some(known) if Arc::ptr_eq(&known.source, source) => return known.remote.clone(),
            known => known.and_then(|known| known.remote.clone()),
        };
        let decoded = ApiService::decode(source.raw.as_ref()).ok()?;
        let remote = Remote::of(&decoded, before.as_deref(), gateway).map(Arc::new);
        let known = Known {
            source: source.clone(),
            remote: remote.clone(),
        };
        self.known.write().insert(name.clone(), known);
        remote
    }
}

/// Sorts servers as upstream does: by the highest priority of their group, then by the names of their APIServices.
pub(crate) fn sort_by_priority(remotes: &mut [Arc<Remote>]) {
    let mut highest = HashMap::<_, i32>::new();
    for remote in &*remotes {
        let highest = highest.entry(remote.group.clone()).or_insert(i32::MIN);
        *highest = remote.priorities.0.max(*highest);
    }
    remotes.sort_by_cached_key(|remote| {
        let priority = highest.get(&remote.group).copied();
        (std::cmp::Reverse(priority), remote.name.clone())
    });
}
