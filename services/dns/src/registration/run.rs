//! Keeps the registration up to date: after each change of what it depends on, and again after errors.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_controller::client::ListOptions;
use setpoint_controller::{Backoff, Client, Delta, Informer, Reader, View as _, Whole};
use setpoint_model::{Key, endpointslice, replicas};
use setpoint_proto::ApiError;
use setpoint_proto::discovery::EndpointSlice;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::act::act;
use super::plan::{Action, plan};
use super::world::{LeaseView, Replica, World};
use super::{MANAGED_BY, NAMESPACE, Renewals, SERVICE};
use crate::records::ServiceView;

/// The time for removing the slice at shutdown. If it fails, another replica does it.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Settings of the registration.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Whether this replica is an endpoint of the Service, and creates that if it is missing. One that only the Pods of
    /// its own node ask is none.
    pub enabled: bool,
    /// Cluster IP of the Service, which the first replica creates; empty for any.
    pub cluster_ip: String,
    /// IP at which Pods reach this replica, or the name of a host that it reaches from there; empty for the IP of
    /// `dns_listen`, or if that is unspecified for the one from which it reaches the gateway.
    ///
    /// An address of the loopback cannot be an endpoint of a Service: such a replica is not registered.
    pub advertise_address: String,
    /// Time that a replica answers after its endpoint was removed.
    #[serde(with = "setpoint_host::DurationText")]
    pub lameduck: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enabled: true,
            cluster_ip: "10.96.0.10".to_owned(),
            advertise_address: String::new(),
            lameduck: Duration::from_secs(1),
        }
    }
}

/// The caches and the client of the registration.
pub struct Registration {
    client: Client,
    replica: Replica,
    cluster_ip: String,
    services: Reader<ServiceView>,
    slices: Informer<Whole<EndpointSlice>>,
    leases: Informer<LeaseView>,
    renewals: Arc<Mutex<Renewals>>,
    changed: Arc<Notify>,
}

impl Registration {
    /// Prepares the registration of an instance.
    pub fn new(
        client: &Client,
        instance: &str,
        (address, port): (IpAddr, u16),
        cluster_ip: &str,
        services: Reader<ServiceView>,
    ) -> Self {
        let replica = Replica {
            lease: Replica::lease(instance),
            address,
            port,
            serves: false,
        };
        let (renewals, changed) = (Arc::<Mutex<Renewals>>::default(), Arc::new(Notify::new()));
        let (count, own, wake) = (renewals.clone(), replica.lease.clone(), changed.clone());
        let leases = leases(client).on_event(move |change| {
            observe(&mut count.lock(), &own, change);
            wake.notify_one();
        });
        let wake = changed.clone();
        let slices = slices(client).on_event(move |_| wake.notify_one());
        Self {
            client: client.clone(),
            replica,
            cluster_ip: cluster_ip.to_owned(),
            services,
            slices,
            leases,
            renewals,
            changed,
        }
    }

    /// Returns what wakes it: a change of the Service is to be told by the caller.
    pub fn changed(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    /// Registers the replica while `ready` is true, and until `stop`; then removes its slice.
    pub async fn run(self, mut ready: watch::Receiver<bool>, stop: CancellationToken) {
        let (slices, leases) = (self.slices.reader(), self.leases.reader());
        let watching = CancellationToken::new();
        let _end = watching.clone().drop_guard();
        tokio::spawn(self.slices.share().run(watching.clone()));
        tokio::spawn(self.leases.share().run(watching.clone()));
        let synced = async { tokio::join!(slices.synced(), leases.synced()) };
        if stop.run_until_cancelled(synced).await.is_none() {
            return;
        }
        let keeping = self.keep(&slices, &mut ready);
        stop.run_until_cancelled(keeping).await;
        let leaving = self.round(&slices, false);
        if !matches!(timeout(LEAVE_TIMEOUT, leaving).await, Ok(Ok(()))) {
            warn!("the slice of this replica is left for others to remove");
        }
    }

    async fn keep(&self, slices: &Reader<Whole<EndpointSlice>>, ready: &mut watch::Receiver<bool>) {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut failed = false;
        loop {
            let changed = self.changed.notified();
            let serves = *ready.borrow_and_update();
            match self.round(slices, serves).await {
                Ok(()) => {
                    backoff.reset();
                    failed = false;
                    tokio::select! {
                        () = changed => {}
                        gone = ready.changed() => if gone.is_err() { return },
                    }
                }
                Err(error) => {
                    // Replicas that start together both make the Service, of which one gets the address.
                    match failed {
                        false => debug!(%error, "the replica is not registered yet"),
                        true => warn!(%error, "the replica is not registered"),
                    }
                    failed = true;
                    sleep(backoff.next_delay()).await;
                }
            }
        }
    }

    async fn round(
        &self,
        slices: &Reader<Whole<EndpointSlice>>,
        serves: bool,
    ) -> Result<(), ApiError> {
        let world = World {
            me: Replica {
                serves,
                ..self.replica.clone()
            },
            cluster_ip: self.cluster_ip.clone(),
            has_service: self.services.get(&Key::new(NAMESPACE, SERVICE)).is_some(),
            slices: slices.list(),
            reached: self.leases.reader().reached(),
            renewals: self.renewals.lock().clone(),
        };
        for step in plan(&world).steps {
            act(&self.client, &step.action).await?;
            info!(
                action = summary(&step.action),
                because = step.because,
                "registered"
            );
        }
        Ok(())
    }
}

fn summary(action: &Action) -> String {
    match action {
        Action::CreateService(service) => format!("create service {}", service.metadata.name),
        Action::CreateSlice(slice) => format!("create endpointslice {}", slice.metadata.name),
        Action::UpdateSlice(slice) => format!("update endpointslice {}", slice.metadata.name),
        Action::DeleteSlice { name, .. } => format!("delete endpointslice {name}"),
    }
}

fn observe(renewals: &mut Renewals, own: &str, change: &Delta<LeaseView>) {
    match (&change.old, &change.new) {
        (_, Some(new)) => renewals.renewed(&new.meta().key.name, own),
        (Some(old), None) => renewals.deleted(&old.meta().key.name),
        (None, None) => {}
    }
}

fn leases(client: &Client) -> Informer<LeaseView> {
    client.informer().only(ListOptions {
        namespace: replicas::NAMESPACE.to_owned(),
        labels: format!("{}=dns", replicas::SERVICE),
        ..ListOptions::default()
    })
}

fn slices(client: &Client) -> Informer<Whole<EndpointSlice>> {
    client.informer().only(ListOptions {
        namespace: NAMESPACE.to_owned(),
        labels: format!("{}={MANAGED_BY}", endpointslice::MANAGED_BY),
        ..ListOptions::default()
    })
}
