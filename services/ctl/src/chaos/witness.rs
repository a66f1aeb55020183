//! The witness: watches the load's objects and notes who wrote, under which term, and which Pods there were.

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

use super::account::{Census, Change, Write};

/// What has been noted of the round that goes on.
#[derive(Default)]
struct Notes {
    writes: Vec<Write>,
    changes: Vec<(Revision, Change)>,
}

/// Sees everything that happens to the load, until it is dropped.
pub struct Witness {
    notes: Arc<Mutex<Notes>>,
    told: watch::Receiver<()>,
    census: Census,
    deployments: Reader<Whole<Deployment>>,
    pods: Reader<Whole<Pod>>,
    _watching: JoinSet<()>,
}

impl Witness {
    /// Begins to watch `namespace`, and what `service` writes there.
    pub async fn begin(gateway: &Client, namespace: &str, service: &str) -> Self {
        let (tell, told) = watch::channel(());
        let (tell, notes) = (Arc::new(tell), Arc::new(Mutex::new(Notes::default())));
        let mut watching = JoinSet::new();
        let mut see = See {
            gateway,
            namespace,
            service,
            notes: &notes,
            tell: &tell,
            watching: &mut watching,
        };
        let deployments = see.all::<Deployment>(|_| None);
        let sets = see.all::<ReplicaSet>(wanted);
        let pods = see.all::<Pod>(counted);
        deployments.synced().await;
        sets.synced().await;
        pods.synced().await;
        Self {
            notes,
            told,
            census: Census::default(),
            deployments,
            pods,
            _watching: watching,
        }
    }

    /// The load's Deployment as last told.
    pub fn deployment(&self, key: &Key) -> Option<Arc<Whole<Deployment>>> {
        self.deployments.get(key)
    }

    /// How many Pods count.
    pub fn active(&self) -> usize {
        let pods = self.pods.list();
        pods.iter()
            .filter(|view| pod::is_active(&view.object))
            .count()
    }

    /// What the service wrote in this round.
    pub fn writes(&self) -> Vec<Write> {
        self.notes.lock().writes.clone()
    }

    /// Waits until `is_so` after something was told, or is so already.
    pub async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let mut told = self.told.clone();
        loop {
            told.mark_unchanged();
            if is_so(self) {
                return;
            }
            // The senders live as long as the watches, and those as long as this.
            let _ = told.changed().await;
        }
    }

    /// Ends a round: answers the writes of the service and how many Pods were created too many.
    pub fn close(&mut self) -> (Vec<Write>, usize) {
        let mut notes = std::mem::take(&mut *self.notes.lock());
        let doubled = self.census.follow(&mut notes.changes);
        (notes.writes, doubled)
    }

    /// Begins a round, from rest.
    pub fn open(&mut self) {
        self.close();
        self.census.rest();
    }
}

/// What all watches have in common.
struct See<'a> {
    gateway: &'a Client,
    namespace: &'a str,
    service: &'a str,
    notes: &'a Arc<Mutex<Notes>>,
    tell: &'a Arc<watch::Sender<()>>,
    watching: &'a mut JoinSet<()>,
}

impl See<'_> {
    fn all<T: Resource>(
        &mut self,
        change: fn(&Delta<Whole<T>>) -> Option<Change>,
    ) -> Reader<Whole<T>> {
        let only = ListOptions {
            namespace: self.namespace.to_owned(),
            ..ListOptions::default()
        };
        let informer = self.gateway.informer::<Whole<T>>().only(only);
        let (service, notes, tell) = (
            self.service.to_owned(),
            self.notes.clone(),
            self.tell.clone(),
        );
        let informer = informer.on_event(move |delta| {
            let mut notes = notes.lock();
            notes.writes.extend(write(delta, &service));
            notes
                .changes
                .extend(change(delta).map(|change| (revision(delta), change)));
            drop(notes);
            tell.send_replace(());
        });
        let reader = informer.reader();
        self.watching.spawn(informer.run(CancellationToken::new()));
        reader
    }
}

/// When it was committed: what a list tells together may have been written at any time before.
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

fn wanted(delta: &Delta<Whole<ReplicaSet>>) -> Option<Change> {
    let view = delta.new.as_ref().or(delta.old.as_ref())?;
    let gone = delta.new.is_none();
    let replicas = view.object.spec.replicas.unwrap_or(1);
    Some(Change::Wanted {
        set: view.object.metadata.uid.clone(),
        replicas: usize::try_from(replicas).unwrap_or_default() * usize::from(!gone),
    })
}

fn counted(delta: &Delta<Whole<Pod>>) -> Option<Change> {
    let view = delta.new.as_ref().or(delta.old.as_ref())?;
    let pod = view.object.metadata.uid.clone();
    let counts = delta.new.is_some() && pod::is_active(&view.object);
    match (counts, owner::controller_of(&view.object.metadata)) {
        (true, Some(owner)) => {
            let set = owner.uid.clone();
            Some(Change::Active { set, pod })
        }
        _ => Some(Change::Ended { pod }),
    }
}
