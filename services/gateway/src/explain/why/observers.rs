//! Asks every process that is there what it did of late. Who does not answer in a moment is named.

use std::time::Duration;

use futures::StreamExt as _;
use http::uri::Authority;
use jiff::Timestamp;
use setpoint_model::replicas::{ADDRESS, NAMESPACE, SERVICE};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::Pod;
use setpoint_proto::setpoint::rounds_client::RoundsClient;
use setpoint_proto::setpoint::{Observer, Round, RoundsRequest, Subject};
use setpoint_proto::{ApiError, Resource as _};
use tokio::time::timeout;

use super::facts::{Related, kind};
use crate::peers::Peers;
use crate::registry::{AtLeast, Filter, Registry};

/// A process of the same machine answers in a millisecond.
const PATIENCE: Duration = Duration::from_secs(1);
/// So many are asked at once.
const AT_ONCE: usize = 32;
/// So many are asked at all; only node agents are ever so many.
const MOST: usize = 512;
/// The rounds of a few objects take some kilobytes.
const ANSWER_MAX: usize = 1 << 20;
/// Whoever runs Pods knows nothing of other objects.
const AGENT: &str = "node-agent";

/// A process that has said that it is there.
struct Replica {
    service: String,
    instance: String,
    address: String,
    /// For how long its sign of life has been overdue.
    overdue: Option<Duration>,
}

pub(super) async fn ask(
    registry: &Registry,
    related: &Related,
    now: Timestamp,
) -> Result<Vec<Observer>, ApiError> {
    let filter = Filter::all(kind::<Lease>(), NAMESPACE);
    let leases = registry.cache().list(&filter, AtLeast::Any).await?;
    let mut replicas = Vec::new();
    for cached in leases.items {
        let object = cached.decode()?;
        replicas.extend(
            object
                .downcast_ref()
                .and_then(|lease| Replica::of(lease, now)),
        );
    }
    let pods = related
        .subjects
        .iter()
        .any(|one| one.resource == Pod::RESOURCE);
    replicas.retain(|replica| pods || replica.service != AGENT);
    replicas.truncate(MOST);
    let asked = replicas
        .into_iter()
        .map(|replica| replica.ask(registry.peers(), &related.subjects));
    let asked: Vec<_> = asked.collect();
    let mut observers: Vec<_> = futures::stream::iter(asked)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    observers.sort_by(|a, b| (&a.service, &a.instance).cmp(&(&b.service, &b.instance)));
    Ok(observers)
}

impl Replica {
    fn of(lease: &Lease, now: Timestamp) -> Option<Self> {
        let meta = &lease.metadata;
        let holder = lease.spec.holder_identity.clone();
        let lasts = u64::try_from(lease.spec.lease_duration_seconds?).ok()?;
        let renewed = lease.spec.renew_time.as_ref()?.timestamp()?;
        let silent = Duration::try_from(now.duration_since(renewed)).unwrap_or_default();
        Some(Self {
            service: meta.labels.get(SERVICE)?.clone(),
            instance: holder.unwrap_or_else(|| meta.name.clone()),
            address: meta.annotations.get(ADDRESS)?.clone(),
            overdue: silent.checked_sub(Duration::from_secs(lasts)),
        })
    }

    async fn ask(self, peers: &Peers, subjects: &[Subject]) -> Observer {
        let (rounds, silent) = match self.response(peers, subjects).await {
            Ok(rounds) => (rounds, String::new()),
            Err(silent) => (Vec::new(), silent),
        };
        Observer {
            service: self.service,
            instance: self.instance,
            silent,
            rounds,
        }
    }

    async fn response(&self, peers: &Peers, subjects: &[Subject]) -> Result<Vec<Round>, String> {
        if let Some(overdue) = self.overdue {
            return Err(format!(
                "no sign of life for {}s more than expected",
                overdue.as_secs()
            ));
        }
        let context = async {
            let authority = self.address.parse::<Authority>();
            let authority = authority.map_err(|_| self.unreachable())?;
            let port = authority.port_u16().ok_or_else(|| self.unreachable())?;
            // Brackets tell an IPv6 address from its port.
            let host = authority.host().trim_matches(['[', ']']);
            let endpoint = peers.endpoint(host, port).await?;
            let channel = endpoint.connect().await.map_err(|_| self.unreachable())?;
            let request = RoundsRequest {
                subjects: subjects.to_vec(),
            };
            let mut client = RoundsClient::new(channel).max_decoding_message_size(ANSWER_MAX);
            let response = client.of(request).await;
            let response = response.map_err(|status| status.message().to_owned())?;
            Ok(response.into_inner().rounds)
        };
        match timeout(PATIENCE, context).await {
            Ok(response) => response,
            Err(_) => Err(format!("no answer within {PATIENCE:?}")),
        }
    }

    fn unreachable(&self) -> String {
        format!("{} cannot be reached", self.address)
    }
}
