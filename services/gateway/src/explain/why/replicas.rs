//! Reads the decision logs of all replicas that announced themselves.

use std::time::Duration;

use futures::StreamExt as _;
use http::uri::Authority;
use jiff::Timestamp;
use setpoint_model::replicas::{ADDRESS, NAMESPACE, NODE_AGENT, SERVICE};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::Pod;
use setpoint_proto::setpoint::reconciles_client::ReconcilesClient;
use setpoint_proto::setpoint::{ListReconcilesRequest, ObjectRef, Observer, Reconcile};
use setpoint_proto::{ApiError, Resource as _};
use tokio::time::timeout;

use super::objects::{Related, kind};
use crate::dial_policy::DialPolicy;
use crate::registry::{AtLeast, Filter, Registry};

/// The time within which a replica must answer. On the same machine it takes a millisecond.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of concurrent requests.
const CONCURRENCY: usize = 32;
/// The maximum number of replicas; only node agents reach it.
const REPLICAS: usize = 512;
/// The maximum size of a response in bytes. The reconciles of a few objects take some kilobytes.
const RESPONSE_MAX: usize = 1 << 20;

/// A replica of a service, by the Lease that announces it.
struct Replica {
    service: String,
    instance: String,
    address: String,
    /// The time since the Lease expired, if it did.
    overdue: Option<Duration>,
}

/// Returns the replicas with their reconciles of the objects, or with the reason for which they did not answer. Node
/// agents are left out unless a Pod is among the objects.
pub(super) async fn observers(
    registry: &Registry,
    related: &Related,
    now: Timestamp,
) -> Result<Vec<Observer>, ApiError> {
    let filter = Filter::all(kind::<Lease>(), NAMESPACE);
    let mut replicas = Vec::new();
    for cached in registry.cache().list(&filter, AtLeast::Any).await?.items {
        let object = cached.decode()?;
        let lease = object.downcast_ref();
        replicas.extend(lease.and_then(|lease| Replica::of(lease, now)));
    }
    let mut subjects = related.subjects.iter();
    let pods = subjects.any(|one| one.resource == Pod::RESOURCE);
    replicas.retain(|replica| pods || replica.service != NODE_AGENT);
    replicas.truncate(REPLICAS);
    let requests = replicas
        .into_iter()
        .map(|replica| replica.observer(registry.dial_policy(), &related.subjects));
    let requests: Vec<_> = requests.collect();
    let mut observers: Vec<_> = futures::stream::iter(requests)
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await;
    observers.sort_by(|a, b| (&a.service, &a.instance).cmp(&(&b.service, &b.instance)));
    Ok(observers)
}

impl Replica {
    fn of(lease: &Lease, now: Timestamp) -> Option<Self> {
        let meta = &lease.metadata;
        let holder = lease.spec.holder_identity.clone();
        let duration = u64::try_from(lease.spec.lease_duration_seconds?).ok()?;
        let renewed = lease.spec.renew_time.as_ref()?.timestamp()?;
        let age = Duration::try_from(now.duration_since(renewed)).unwrap_or_default();
        Some(Self {
            service: meta.labels.get(SERVICE)?.clone(),
            instance: holder.unwrap_or_else(|| meta.name.clone()),
            address: meta.annotations.get(ADDRESS)?.clone(),
            overdue: age.checked_sub(Duration::from_secs(duration)),
        })
    }

    async fn observer(self, policy: &DialPolicy, subjects: &[ObjectRef]) -> Observer {
        let (reconciles, silent) = match self.reconciles(policy, subjects).await {
            Ok(reconciles) => (reconciles, String::new()),
            Err(silent) => (Vec::new(), silent),
        };
        Observer {
            service: self.service,
            instance: self.instance,
            silent,
            reconciles,
        }
    }

    async fn reconciles(
        &self,
        policy: &DialPolicy,
        subjects: &[ObjectRef],
    ) -> Result<Vec<Reconcile>, String> {
        if let Some(overdue) = self.overdue {
            let seconds = overdue.as_secs();
            return Err(format!("no sign of life for {seconds}s more than expected"));
        }
        match timeout(TIMEOUT, self.list(policy, subjects)).await {
            Ok(reconciles) => reconciles,
            Err(_) => Err(format!("no answer within {TIMEOUT:?}")),
        }
    }

    async fn list(
        &self,
        policy: &DialPolicy,
        subjects: &[ObjectRef],
    ) -> Result<Vec<Reconcile>, String> {
        let authority = self.address.parse::<Authority>();
        let authority = authority.map_err(|_| self.unreachable())?;
        let port = authority.port_u16().ok_or_else(|| self.unreachable())?;
        // Brackets separate an IPv6 address from its port.
        let host = authority.host().trim_matches(['[', ']']);
        let channel = policy.replica(&self.service, host, port).await?;
        let request = ListReconcilesRequest {
            subjects: subjects.to_vec(),
        };
        let mut client = ReconcilesClient::new(channel).max_decoding_message_size(RESPONSE_MAX);
        let response = client.list(request).await;
        let response = response.map_err(|status| status.message().to_owned())?;
        Ok(response.into_inner().reconciles)
    }

    fn unreachable(&self) -> String {
        format!("{} cannot be reached", self.address)
    }
}
