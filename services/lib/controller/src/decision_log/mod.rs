//! The decision log of a process: its last reconciles by object, bounded, in memory, and served to `setpoint why`.
//!
//! A reconcile is found by its object and by every object that one of its steps touched, so that the reconciles of a
//! ReplicaSet are also found by its Pods. Entries outlive their object for a while.

mod note;
mod ring;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use setpoint_host::serve::ConnectionInfo;
use setpoint_model::Key;
use setpoint_proto::setpoint::reconciles_server::{Reconciles, ReconcilesServer};
use setpoint_proto::setpoint::{
    ListReconcilesRequest, ListReconcilesResponse, Reconcile, ReconcileOutcome, Step,
};
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::Ticket;

pub use note::Note;
use ring::{Entry, Ring};
pub use setpoint_proto::setpoint::ObjectRef;

/// The maximum number of entries of an object: enough for the last steps of a rollout, or the last delays of a crash
/// loop.
const ENTRIES: usize = 8;
/// The maximum number of objects; the least recently entered one is evicted first. An entry takes a few hundred bytes
/// to a few thousand, so that a full log takes about 20 MiB.
const OBJECTS: usize = 2048;
/// The maximum number of objects in a request: a Deployment, its ReplicaSets, and its Pods that are not ready are
/// fewer.
const SUBJECTS: usize = 64;

/// The decision log of one process. Clones share it.
#[derive(Clone, Debug)]
pub struct DecisionLog {
    shared: Arc<Shared>,
    /// The kind of the reconciled objects.
    resource: &'static str,
}

#[derive(Debug)]
struct Shared {
    service: String,
    instance: String,
    capacity: usize,
    objects: Mutex<Objects>,
}

/// The entries by object, and the objects in the order in which they were last entered.
#[derive(Debug, Default)]
struct Objects {
    rings: HashMap<ObjectRef, Ring>,
    order: BTreeMap<u64, ObjectRef>,
    clock: u64,
}

impl DecisionLog {
    /// Returns the log of an instance of a service that reconciles objects of `resource`.
    pub fn new(service: &str, instance: &str, resource: &'static str) -> Self {
        Self::with_capacity(service, instance, resource, OBJECTS)
    }

    fn with_capacity(
        service: &str,
        instance: &str,
        resource: &'static str,
        capacity: usize,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                service: service.to_owned(),
                instance: instance.to_owned(),
                capacity,
                objects: Mutex::default(),
            }),
            resource,
        }
    }

    /// Returns an empty log of the same replica with a lower maximum number of objects, for a process that never has
    /// many at a time.
    #[must_use]
    pub fn keeping(&self, objects: usize) -> Self {
        let Shared {
            service, instance, ..
        } = &*self.shared;
        Self::with_capacity(service, instance, self.resource, objects.min(OBJECTS))
    }

    /// Returns the same log, for a controller of the same process that reconciles objects of another kind.
    pub(crate) fn of_kind(&self, resource: &'static str) -> Self {
        Self {
            shared: self.shared.clone(),
            resource,
        }
    }

    /// Begins the record of a reconcile.
    pub fn open(&self, ticket: &Ticket<Key>) -> Note {
        let subject = ticket.key.clone().in_resource(self.resource);
        Note::new(self.clone(), subject, ticket)
    }

    /// Returns the service `setpoint.v1.Reconciles` over the log.
    pub fn server(&self) -> ReconcilesServer<Self> {
        ReconcilesServer::new(self.clone())
    }

    /// Like [`Self::server`], without other services.
    pub fn routes(&self) -> Routes {
        Routes::new(self.server()).prepare()
    }

    /// Returns the reconciles of these objects, and those with a step that touched one of them, newest first.
    fn of(&self, subjects: &[ObjectRef]) -> Vec<Reconcile> {
        let objects = self.shared.objects.lock();
        let rings = objects.rings.iter();
        let rings = rings.filter(|(subject, _)| subjects.contains(subject));
        let mut reconciles: Vec<_> = rings
            .flat_map(|(subject, ring)| ring.reconciles(subject))
            .collect();
        reconciles.sort_by_key(|reconcile| std::cmp::Reverse(reconcile.last_ns));
        reconciles
    }

    /// Enters a reconcile under its object and those that it touched. If the object is gone and has no entries yet,
    /// nothing is entered.
    fn enter(&self, subject: ObjectRef, reconcile: Reconcile, touched: Vec<(ObjectRef, Step)>) {
        let mut objects = self.shared.objects.lock();
        let gone = reconcile.outcome() == ReconcileOutcome::Gone;
        if gone && !objects.rings.contains_key(&subject) {
            return;
        }
        let reconcile = Arc::new(reconcile);
        for (other, step) in touched {
            objects.enter(other, Entry::touched(&reconcile, step));
        }
        objects.enter(subject, Entry::whole(&reconcile));
        while objects.rings.len() > self.shared.capacity {
            objects.evict();
        }
    }
}

impl Objects {
    fn enter(&mut self, subject: ObjectRef, entry: Entry) {
        self.clock += 1;
        let ring = self.rings.entry(subject.clone()).or_default();
        self.order.remove(&ring.entered);
        ring.enter(entry, self.clock);
        self.order.insert(self.clock, subject);
    }

    fn evict(&mut self) {
        if let Some((_, oldest)) = self.order.pop_first() {
            self.rings.remove(&oldest);
        }
    }
}

impl Default for DecisionLog {
    /// Returns a log for tests.
    fn default() -> Self {
        Self::new("", "", "")
    }
}

#[tonic::async_trait]
impl Reconciles for DecisionLog {
    async fn list(
        &self,
        request: Request<ListReconcilesRequest>,
    ) -> Result<Response<ListReconcilesResponse>, Status> {
        let connection = request.extensions().get::<ConnectionInfo>();
        if connection.is_some_and(|connection| !connection.is_of_gateway()) {
            let refused =
                "reconciles are shown to gateways only, which check what their users may read";
            return Err(Status::permission_denied(refused));
        }
        let mut subjects = request.into_inner().subjects;
        subjects.truncate(SUBJECTS);
        Ok(Response::new(ListReconcilesResponse {
            controller: self.shared.service.clone(),
            instance: self.shared.instance.clone(),
            reconciles: self.of(&subjects),
        }))
    }
}

#[cfg(test)]
mod tests {
    use setpoint_tls::PeerIdentity;

    use super::*;
    use ReconcileOutcome::{Done, Gone, NothingToDo};

    const SETS: &str = "replicasets.apps";

    fn subject(resource: &'static str, name: &str) -> ObjectRef {
        Key::new("production", name).in_resource(resource)
    }

    fn decision_log(objects: usize) -> DecisionLog {
        DecisionLog::with_capacity(
            "replicaset-controller",
            "replicaset-controller-0",
            SETS,
            objects,
        )
    }

    fn reconcile(outcome: ReconcileOutcome, last_ns: i64, steps: &[&str]) -> Reconcile {
        let step = |action: &&str| Step {
            action: (*action).to_owned(),
            because: "fewer Pods than replicas".to_owned(),
        };
        Reconcile {
            outcome: outcome.into(),
            began_ns: last_ns,
            last_ns,
            times: 1,
            steps: steps.iter().map(step).collect(),
            ..Reconcile::default()
        }
    }

    fn entries(decision_log: &DecisionLog, subject: &ObjectRef) -> Vec<Reconcile> {
        decision_log.of(std::slice::from_ref(subject))
    }

    fn outcomes(decision_log: &DecisionLog, subject: &ObjectRef) -> Vec<(ReconcileOutcome, u32)> {
        let entries = entries(decision_log, subject);
        let outcomes = entries.iter().map(|entry| (entry.outcome(), entry.times));
        outcomes.collect()
    }

    /// Checks V20.
    #[tokio::test]
    async fn over_tls_reconciles_are_shown_to_gateways_only() {
        let decision_log = decision_log(10);
        let over_tls = |client| {
            let mut request = Request::new(ListReconcilesRequest::default());
            let connection = ConnectionInfo::over_tls(([127, 0, 0, 1], 1).into(), Ok(client));
            request.extensions_mut().insert(connection);
            request
        };
        let client = |name: &str| PeerIdentity {
            name: name.to_owned(),
            groups: Vec::new(),
            uid: String::new(),
            fingerprint: String::new(),
            not_after: jiff::Timestamp::MAX,
        };
        let gateway = client("system:setpoint:gateway");
        decision_log.list(over_tls(Some(gateway))).await.unwrap();
        for other in [None, Some(client("system:setpoint:scheduler"))] {
            let refused = decision_log.list(over_tls(other)).await.unwrap_err();
            assert_eq!(refused.code(), tonic::Code::PermissionDenied);
        }
    }

    #[test]
    fn equal_reconciles_without_steps_share_an_entry() {
        let (decision_log, web) = (decision_log(10), subject(SETS, "web"));
        decision_log.enter(web.clone(), reconcile(Done, 1, &["Create a"]), Vec::new());
        for at in 2..1000 {
            decision_log.enter(web.clone(), reconcile(NothingToDo, at, &[]), Vec::new());
        }
        let expected = [(NothingToDo, 998), (Done, 1)];
        assert_eq!(outcomes(&decision_log, &web), expected);
        let newest = &entries(&decision_log, &web)[0];
        assert_eq!((newest.began_ns, newest.last_ns), (2, 999));
    }

    #[test]
    fn a_reconcile_is_also_found_by_the_objects_that_its_steps_touched() {
        let (decision_log, web) = (decision_log(10), subject(SETS, "web"));
        let (a, b) = (subject("pods", "web-a"), subject("pods", "web-b"));
        let steps = reconcile(Done, 0, &["Create a", "Create b"]).steps;
        let touched = [a.clone(), b.clone()].into_iter().zip(steps).collect();
        decision_log.enter(
            web.clone(),
            reconcile(Done, 1, &["Create a", "Create b"]),
            touched,
        );
        let of_b = entries(&decision_log, &b);
        assert_eq!(of_b.len(), 1);
        assert_eq!(of_b[0].touched, Some(b.clone()));
        let steps: Vec<_> = of_b[0].steps.iter().map(|step| &*step.action).collect();
        assert_eq!(steps, ["Create b"]);
        assert_eq!(entries(&decision_log, &web)[0].steps.len(), 2);
        assert_eq!(decision_log.of(&[a.clone(), web.clone()]).len(), 2);
    }

    #[test]
    fn entries_and_objects_are_bounded_and_the_least_recently_entered_object_is_evicted() {
        let (decision_log, kept) = (decision_log(9).keeping(3), subject(SETS, "kept"));
        for at in 0..100 {
            let other = subject(SETS, &format!("web-{at}"));
            decision_log.enter(other, reconcile(Done, at, &["Create"]), Vec::new());
            let own = [format!("Create {at}")];
            let own: Vec<_> = own.iter().map(String::as_str).collect();
            decision_log.enter(kept.clone(), reconcile(Done, at, &own), Vec::new());
        }
        assert_eq!(outcomes(&decision_log, &kept).len(), ENTRIES);
        assert_eq!(outcomes(&decision_log, &subject(SETS, "web-99")).len(), 1);
        assert!(outcomes(&decision_log, &subject(SETS, "web-1")).is_empty());
        let objects = decision_log.shared.objects.lock();
        assert_eq!((objects.rings.len(), objects.order.len()), (3, 3));
    }

    #[test]
    fn a_missing_object_is_entered_only_if_it_has_entries() {
        let (decision_log, web) = (decision_log(10), subject(SETS, "web"));
        decision_log.enter(web.clone(), reconcile(Gone, 1, &[]), Vec::new());
        assert!(outcomes(&decision_log, &web).is_empty());
        decision_log.enter(web.clone(), reconcile(Done, 2, &["Create"]), Vec::new());
        decision_log.enter(web.clone(), reconcile(Gone, 3, &[]), Vec::new());
        assert_eq!(outcomes(&decision_log, &web).len(), 2);
    }
}
