//! The controller: its triggers, its live reads, and its implementation of [`Reconciler`].

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::client::ListOptions;
use setpoint_controller::{
    Client, Controller, Delta, Hosted, Informer, Inputs, Outcome, Plan, QueueHandle, Reader,
    Receipt, Reconciler, Replica, Whole, runtime,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::{
    PersistentVolumeClaim, Pod, ResourceQuota, ResourceQuotaStatus, Service,
};
use setpoint_proto::resource::ResourceClaim;
use setpoint_proto::{ApiError, Reason, Resource as _};
use setpoint_workload::DefinitionView;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::warn;

use crate::follow::{Follower, Namespaces};
use crate::pace::Pace;
use crate::{Counted, Counting, Needs, Tally, World, plan, status};

/// The delay after a conflict: the quota was charged while its objects were counted.
const CONFLICT_DELAY: Duration = Duration::from_millis(100);

/// The reconciler of quotas.
pub struct Quotas {
    quotas: Reader<Whole<ResourceQuota>>,
    settings: Counting,
    /// The quotas as they were read for reconciles that run.
    reads: Mutex<HashMap<Key, Read>>,
    pace: Pace,
    namespaces: watch::Sender<Namespaces>,
}

/// The result of the live reads for one quota.
enum Read {
    Gone,
    Failed,
    Counted(Box<ResourceQuota>, Counted),
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted<Counting> = Hosted {
    name: "resourcequota-controller",
    resource: ResourceQuota::RESOURCE,
    run: |replica, settings, own| Box::pin(run(replica, settings, own)),
};

async fn run(
    replica: Replica,
    settings: runtime::Settings,
    counting: Counting,
) -> anyhow::Result<()> {
    let (client, queue) = (replica.client.clone(), QueueHandle::default());
    let (quotas, definitions) = (replica.informer(), replica.informer());
    let new = |reconciler| replica.controller(reconciler).queue(&queue);
    let controller = controller(quotas, definitions, counting, new);
    let quotas = controller.reconciler();
    tokio::select! {
        ended = replica.run(controller, settings) => ended,
        () = quotas.follow(&client, &queue) => Ok(()),
    }
}

/// Returns the controller over these informers; `new` makes it of the reconciler.
pub fn controller(
    quotas: Informer<Whole<ResourceQuota>>,
    definitions: Informer<DefinitionView>,
    settings: Counting,
    new: impl FnOnce(Quotas) -> Controller<Quotas>,
) -> Controller<Quotas> {
    let known = quotas.reader();
    new(Quotas::new(quotas.reader(), settings))
        .for_those(quotas, |_| true, needs_count)
        .depends_on(definitions, move |delta| counting(&known, delta))
}

/// Returns whether the quota is new or deleted, has another limit than its last count, or lacks a count. Charges do not
/// matter.
///
/// The write of a new limit is itself a change: what was created before it is not charged, and is found by the next
/// count.
fn needs_count(delta: &Delta<Whole<ResourceQuota>>) -> bool {
    let (Some(old), Some(new)) = (&delta.old, &delta.new) else {
        return true;
    };
    let (spec, status) = (&new.object.spec, &new.object.status);
    let mut names = spec.hard.keys();
    spec != &old.object.spec
        || spec.hard != status.hard
        || old.object.status.hard != status.hard
        || names.any(|name| !status.used.contains_key(name))
}

/// Returns the quotas that count objects of a kind that is defined or removed.
fn counting(quotas: &Reader<Whole<ResourceQuota>>, delta: &Delta<DefinitionView>) -> Vec<Key> {
    let Some(definition) = delta.new.as_ref().or(delta.old.as_ref()) else {
        return Vec::new();
    };
    let name = format!("count/{}", definition.meta.key.name);
    let mut counting = quotas.list();
    counting.retain(|quota| quota.object.spec.hard.contains_key(&name));
    let keys = counting.iter().map(|quota| quota.meta.key.clone());
    keys.collect()
}

impl Quotas {
    /// Returns a reconciler over this cache.
    pub fn new(quotas: Reader<Whole<ResourceQuota>>, settings: Counting) -> Self {
        Self {
            quotas,
            settings,
            reads: Mutex::default(),
            pace: Pace::default(),
            namespaces: watch::Sender::default(),
        }
    }

    /// Adds, in each term of the queue, the quotas of namespaces in which something has changed.
    pub async fn follow(&self, client: &Client, queue: &QueueHandle) {
        let supervised = || async {
            let tasks = client.tasks().clone();
            let start = || {
                let namespaces = self.namespaces.subscribe();
                Follower::new(&self.quotas, &self.pace, queue, namespaces).follow(client)
            };
            tasks.supervise("quota-changes", "", start).await;
        };
        queue.in_each_term(supervised).await;
    }

    /// Reads a quota, and then its objects: so that each write that is charged to this version of the quota is counted.
    async fn read(&self, client: &Client, key: &Key, now: Timestamp) -> Result<Read, ApiError> {
        let quota = match client.get::<ResourceQuota>(key).await {
            Err(error) if error.reason == Reason::NotFound => return Ok(Read::Gone),
            quota => quota?,
        };
        let Needs { numbers, objects } = Needs::of(&quota.spec);
        let mut tally = Tally::new(&quota.spec, now);
        if !numbers.is_empty() {
            let numbers = numbers.into_iter().collect();
            tally.numbers(&client.count(&key.namespace, numbers).await?);
        }
        let all = ListOptions {
            namespace: key.namespace.clone(),
            ..ListOptions::default()
        };
        if objects.contains(Pod::RESOURCE) {
            client.for_each(&all, |pod: Pod| tally.pod(&pod)).await?;
        }
        if objects.contains(Service::RESOURCE) {
            let add = |service: Service| tally.service(&service);
            client.for_each(&all, add).await?;
        }
        if objects.contains(PersistentVolumeClaim::RESOURCE) {
            let add = |claim: PersistentVolumeClaim| tally.claim(&claim);
            client.for_each(&all, add).await?;
        }
        if objects.contains(ResourceClaim::RESOURCE) {
            let add = |claim: ResourceClaim| tally.resource_claim(&claim);
            client.for_each(&all, add).await?;
        }
        let counted = tally.counted();
        Ok(Read::Counted(Box::new(quota), counted))
    }

    /// Notes whether the namespace has quotas, so that its changes are followed.
    fn note(&self, namespace: &str) {
        let has_quotas = !self.quotas.in_namespace(namespace).is_empty();
        self.namespaces.send_if_modified(|known| match has_quotas {
            true => known.insert(namespace.to_owned()),
            false => known.remove(namespace),
        });
    }
}

impl Reconciler for Quotas {
    type Object = ResourceQuota;
    type World = World;
    type Action = Infallible;

    fn begin(&self) {
        self.reads.lock().clear();
        self.pace.clear();
        self.namespaces.send_replace(Namespaces::new());
    }

    /// Reads the quota and counts.
    async fn fetch(&self, client: &Client, key: &Key, now: Timestamp) {
        self.note(&key.namespace);
        let began = Instant::now();
        let read = self.read(client, key, now).await;
        let read = read.unwrap_or_else(|error| {
            warn!(%key, %error, "the objects of a quota could not be counted");
            Read::Failed
        });
        match read {
            Read::Gone => self.pace.forget(key),
            Read::Failed | Read::Counted(..) => self.pace.rest(key, began),
        }
        self.reads.lock().insert(key.clone(), read);
    }

    /// Takes what was read, which is of no use for a later reconcile.
    fn observe(&self, key: &Key, Inputs { now, .. }: Inputs) -> Option<World> {
        let read = self.reads.lock().remove(key)?;
        let (quota, counted) = match read {
            Read::Gone => return None,
            Read::Failed => (self.quotas.get(key)?.object.clone(), None),
            Read::Counted(quota, counted) => (*quota, Some(counted)),
        };
        Some(World {
            meta: Meta::of(&quota.metadata),
            spec: quota.spec,
            status: quota.status,
            counted,
            sync_period: self.settings.sync_period,
            now,
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.meta
    }

    fn plan(world: &World) -> Plan<Infallible> {
        plan(world)
    }

    async fn act(&self, _: &Client, _: &World, action: &Infallible) -> Result<Receipt, ApiError> {
        match *action {}
    }

    fn status(world: &World, _: &Outcome<Infallible>) -> Option<ResourceQuotaStatus> {
        status(world)
    }

    fn retry_after(error: &ApiError) -> Option<Duration> {
        (error.reason == Reason::Conflict && !error.is_fenced()).then_some(CONFLICT_DELAY)
    }
}
