//! Observes the load through watches: records the writes of the service with their terms, and the changes of Pods.

use std::sync::Arc;

use parking_lot::Mutex;
use setpoint_controller::client::ListOptions;
use setpoint_controller::{Client, Delta, Reader, View, Whole};
use setpoint_model::{Key, Revision, owner, pod};
use setpoint_proto::Resource;
use setpoint_proto::apps::{Deployment, ReplicaSet};
use setpoint_proto::core::Pod;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::report_data::{PodChange, PodCounter, Write};

/// The observations of the current round.
#[derive(Default)]
struct Record {
    writes: Vec<Write>,
    changes: Vec<(Revision, PodChange)>,
}

/// Watches the objects of the load until it is dropped.
pub struct Observer {
    record: Arc<Mutex<Record>>,
    notified: watch::Receiver<()>,
    counter: PodCounter,
    deployments: Reader<Whole<Deployment>>,
    pods: Reader<Whole<Pod>>,
    _watching: JoinSet<()>,
}

impl Observer {
    /// Starts to watch `namespace` and the writes of `service` there; returns when all caches are filled.
    pub async fn start(gateway: &Client, namespace: &str, service: &str) -> Self {
        let (notify, notified) = watch::channel(());
        let (notify, record) = (Arc::new(notify), Arc::new(Mutex::new(Record::default())));
        let mut watching = JoinSet::new();
        let mut watches = Watches {
            gateway,
            namespace,
            service,
            record: &record,
            notify: &notify,
            watching: &mut watching,
        };
        let deployments = watches.watch::<Deployment>(|_| None);
        let sets = watches.watch::<ReplicaSet>(set_change);
        let pods = watches.watch::<Pod>(pod_change);
        deployments.synced().await;
        sets.synced().await;
        pods.synced().await;
        Self {
            record,
            notified,
            counter: PodCounter::default(),
            deployments,
            pods,
            _watching: watching,
        }
    }

    /// Returns the load's Deployment from the cache.
    pub fn deployment(&self, key: &Key) -> Option<Arc<Whole<Deployment>>> {
        self.deployments.get(key)
    }

    /// Returns the number of active Pods in the cache.
    pub fn active(&self) -> usize {
        let pods = self.pods.list();
        pods.iter()
            .filter(|view| pod::is_active(&view.object))
            .count()
    }

    /// Returns the writes of the service in this round.
    pub fn writes(&self) -> Vec<Write> {
        self.record.lock().writes.clone()
    }

    /// Waits until `condition` holds; evaluates it now and after each event.
    pub async fn until(&self, condition: impl Fn(&Self) -> bool) {
        let mut notified = self.notified.clone();
        loop {
            notified.mark_unchanged();
            if condition(self) {
                return;
            }
            // The senders belong to the watches, which live as long as `self`.
            let _ = notified.changed().await;
        }
    }

    /// Ends a round: returns the writes of the service and the number of extra Pods.
    pub fn end_round(&mut self) -> (Vec<Write>, usize) {
        let mut record = std::mem::take(&mut *self.record.lock());
        let extra = self.counter.apply(&mut record.changes);
        (record.writes, extra)
    }

    /// Starts a round. The load must have settled.
    pub fn begin_round(&mut self) {
        self.end_round();
        self.counter.settle();
    }
}

/// Starts watches with the same event handler.
struct Watches<'a> {
    gateway: &'a Client,
    namespace: &'a str,
    service: &'a str,
    record: &'a Arc<Mutex<Record>>,
    notify: &'a Arc<watch::Sender<()>>,
    watching: &'a mut JoinSet<()>,
}

impl Watches<'_> {
    fn watch<T: Resource>(
        &mut self,
        change: fn(&Delta<Whole<T>>) -> Option<PodChange>,
    ) -> Reader<Whole<T>> {
        let only = ListOptions {
            namespace: self.namespace.to_owned(),
            ..ListOptions::default()
        };
        let informer = self.gateway.informer::<Whole<T>>().only(only);
        let (service, record, notify) = (
            self.service.to_owned(),
            self.record.clone(),
            self.notify.clone(),
        );
        let informer = informer.on_event(move |delta| {
            let mut record = record.lock();
            record.writes.extend(write(delta, &service));
            record
                .changes
                .extend(change(delta).map(|change| (revision(delta), change)));
            drop(record);
            notify.send_replace(());
        });
        let reader = informer.reader();
        self.watching.spawn(informer.run(CancellationToken::new()));
        reader
    }
}

/// Returns the revision of the commit. A list has one revision for all objects, so the object's own is used.
fn revision<T: Resource>(delta: &Delta<Whole<T>>) -> Revision {
    match &delta.new {
        Some(view) => view.meta().revision,
        None => delta.revision,
    }
}

fn write<T: Resource>(delta: &Delta<Whole<T>>, service: &str) -> Option<Write> {
    let cause = delta.cause.as_ref()?;
    (cause.writer == service).then(|| Write {
        term: cause.term,
        revision: revision(delta),
        at: Instant::now(),
    })
}

fn set_change(delta: &Delta<Whole<ReplicaSet>>) -> Option<PodChange> {
    let view = delta.new.as_ref().or(delta.old.as_ref())?;
    let gone = delta.new.is_none();
    let replicas = view.object.spec.replicas.unwrap_or(1);
    Some(PodChange::Wanted {
        set: view.object.metadata.uid.clone(),
        replicas: usize::try_from(replicas).unwrap_or_default() * usize::from(!gone),
    })
}

fn pod_change(delta: &Delta<Whole<Pod>>) -> Option<PodChange> {
    let view = delta.new.as_ref().or(delta.old.as_ref())?;
    let pod = view.object.metadata.uid.clone();
    let counts = delta.new.is_some() && pod::is_active(&view.object);
    match (counts, owner::controller_of(&view.object.metadata)) {
        (true, Some(owner)) => {
            let set = owner.uid.clone();
            Some(PodChange::Active { set, pod })
        }
        _ => Some(PodChange::Ended { pod }),
    }
}
