//! The last decisions of a process by object: bounded, in memory, and served to `setpoint why`.
//!
//! A round is found by the object that it looked at and by every object that one of its steps touched, so that a Pod
//! knows the rounds of its ReplicaSet. What became of an object stays known for a while after the object is gone.

mod note;
mod ring;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_proto::setpoint;
use setpoint_proto::setpoint::rounds_server::{Rounds, RoundsServer};
use setpoint_proto::setpoint::{RoundsRequest, RoundsResponse};
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::Ticket;

pub use note::Note;
use ring::{Ring, Seen};

/// The reconciles kept for each object: enough for the last steps of a rollout, or the last delays of a crash loop.
const ROUNDS: usize = 8;
/// So many objects; the one that was longest of no interest goes first. A round takes a few hundred bytes to a few
/// thousand, so that all of them take some 20 MiB.
const OBJECTS: usize = 2048;

/// An object by its name and the name of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectRef {
    /// The plural with its group, for example `deployments.apps`.
    pub resource: &'static str,
    /// Its namespace and name.
    pub key: Key,
}

impl ObjectRef {
    /// The object of this kind under this key.
    pub const fn new(resource: &'static str, key: Key) -> Self {
        Self { resource, key }
    }

    fn message(&self) -> setpoint::Subject {
        setpoint::Subject {
            resource: self.resource.to_owned(),
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
        }
    }
}

/// The rounds of one process. Clones share them.
#[derive(Clone, Debug)]
pub struct DecisionLog {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    service: String,
    instance: String,
    resource: &'static str,
    objects: usize,
    pages: Mutex<Pages>,
}

/// By object, and the objects in the order in which they were last written about.
#[derive(Debug, Default)]
struct Pages {
    rings: HashMap<ObjectRef, Ring>,
    order: BTreeMap<u64, ObjectRef>,
    clock: u64,
}

impl DecisionLog {
    /// The rounds of one instance of a service, which look at objects of this kind.
    pub fn new(service: &str, instance: &str, resource: &'static str) -> Self {
        Self::holding(service, instance, resource, OBJECTS)
    }

    fn holding(service: &str, instance: &str, resource: &'static str, objects: usize) -> Self {
        Self {
            shared: Arc::new(Shared {
                service: service.to_owned(),
                instance: instance.to_owned(),
                resource,
                objects,
                pages: Mutex::default(),
            }),
        }
    }

    /// Begins to take notes of a round.
    pub fn open(&self, ticket: &Ticket<Key>) -> Note {
        Note::new(
            self.clone(),
            ObjectRef::new(self.shared.resource, ticket.key.clone()),
            ticket,
        )
    }

    /// The service `setpoint.v1.Rounds` over it.
    pub fn server(&self) -> RoundsServer<Self> {
        RoundsServer::new(self.clone())
    }

    /// Like [`Self::server`], without other services.
    pub fn routes(&self) -> Routes {
        Routes::new(self.server()).prepare()
    }

    /// The rounds that were about one of these objects, or touched one, newest first.
    fn of(&self, subjects: &[setpoint::Subject]) -> Vec<setpoint::Round> {
        let pages = self.shared.pages.lock();
        let asked = |subject: &&ObjectRef| subjects.contains(&subject.message());
        let rings = pages.rings.iter().filter(|(subject, _)| asked(subject));
        let mut rounds: Vec<_> = rings
            .flat_map(|(subject, ring)| ring.rounds(subject))
            .collect();
        rounds.sort_by_key(|round| std::cmp::Reverse(round.last_ns));
        rounds
    }

    /// Enters a round under its object and those that it touched. A look at what nobody has heard of is not kept.
    fn enter(
        &self,
        subject: ObjectRef,
        round: setpoint::Round,
        touched: Vec<(ObjectRef, setpoint::Step)>,
    ) {
        let mut pages = self.shared.pages.lock();
        if round.outcome == note::GONE && !pages.rings.contains_key(&subject) {
            return;
        }
        let round = Arc::new(round);
        for (other, step) in touched {
            pages.enter(other, Seen::touched(&round, step));
        }
        pages.enter(subject, Seen::whole(&round));
        while pages.rings.len() > self.shared.objects {
            pages.forget_one();
        }
    }
}

impl Pages {
    fn enter(&mut self, subject: ObjectRef, seen: Seen) {
        self.clock += 1;
        let ring = self.rings.entry(subject.clone()).or_default();
        self.order.remove(&ring.entered);
        ring.enter(seen, self.clock);
        self.order.insert(self.clock, subject);
    }

    fn forget_one(&mut self) {
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

/// The most objects of one request: a Deployment, its sets, and its Pods that are not ready are fewer.
const SUBJECTS: usize = 64;

#[tonic::async_trait]
impl Rounds for DecisionLog {
    async fn of(
        &self,
        request: Request<RoundsRequest>,
    ) -> Result<Response<RoundsResponse>, Status> {
        let mut subjects = request.into_inner().subjects;
        subjects.truncate(SUBJECTS);
        Ok(Response::new(RoundsResponse {
            controller: self.shared.service.clone(),
            instance: self.shared.instance.clone(),
            rounds: Self::of(self, &subjects),
        }))
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::setpoint::{Round, Step};

    use super::*;

    const SETS: &str = "replicasets.apps";

    fn subject(resource: &'static str, name: &str) -> ObjectRef {
        ObjectRef::new(resource, Key::new("production", name))
    }

    fn decision_log(objects: usize) -> DecisionLog {
        DecisionLog::holding(
            "replicaset-controller",
            "replicaset-controller-0",
            SETS,
            objects,
        )
    }

    fn round(outcome: &str, last_ns: i64, steps: &[&str]) -> Round {
        let step = |action: &&str| Step {
            action: (*action).to_owned(),
            because: "fewer Pods than replicas".to_owned(),
        };
        Round {
            outcome: outcome.to_owned(),
            began_ns: last_ns,
            last_ns,
            times: 1,
            steps: steps.iter().map(step).collect(),
            ..Round::default()
        }
    }

    fn told(decision_log: &DecisionLog, subject: &ObjectRef) -> Vec<(String, u32)> {
        let rounds = decision_log.of(&[subject.message()]);
        let told = rounds.into_iter().map(|round| (round.outcome, round.times));
        told.collect()
    }

    #[test]
    fn equal_rounds_without_work_are_counted_and_not_multiplied() {
        let (decision_log, web) = (decision_log(10), subject(SETS, "web"));
        decision_log.enter(web.clone(), round("done", 1, &["Create a"]), Vec::new());
        for at in 2..1000 {
            decision_log.enter(web.clone(), round(note::NOTHING, at, &[]), Vec::new());
        }
        let expected = [(note::NOTHING.to_owned(), 998), ("done".to_owned(), 1)];
        assert_eq!(told(&decision_log, &web), expected);
        let newest = &decision_log.of(&[web.message()])[0];
        assert_eq!((newest.began_ns, newest.last_ns), (2, 999));
    }

    #[test]
    fn an_object_knows_the_rounds_whose_steps_touched_it() {
        let (decision_log, web) = (decision_log(10), subject(SETS, "web"));
        let (a, b) = (subject("pods", "web-a"), subject("pods", "web-b"));
        let steps = round("", 0, &["Create a", "Create b"]).steps;
        let touched = [a.clone(), b.clone()].into_iter().zip(steps).collect();
        decision_log.enter(
            web.clone(),
            round("done", 1, &["Create a", "Create b"]),
            touched,
        );
        let of_b = decision_log.of(&[b.message()]);
        assert_eq!(of_b.len(), 1);
        assert_eq!(of_b[0].touched, Some(b.message()));
        let steps: Vec<_> = of_b[0].steps.iter().map(|step| &*step.action).collect();
        assert_eq!(steps, ["Create b"]);
        assert_eq!(decision_log.of(&[web.message()])[0].steps.len(), 2);
        assert_eq!(decision_log.of(&[a.message(), web.message()]).len(), 2);
    }

    #[test]
    fn rounds_and_objects_are_bounded_and_those_of_no_interest_go_first() {
        let (decision_log, kept) = (decision_log(3), subject(SETS, "kept"));
        for at in 0..100 {
            let other = subject(SETS, &format!("web-{at}"));
            decision_log.enter(other, round("done", at, &["Create"]), Vec::new());
            let own = [format!("Create {at}")];
            let own: Vec<_> = own.iter().map(String::as_str).collect();
            decision_log.enter(kept.clone(), round("done", at, &own), Vec::new());
        }
        assert_eq!(told(&decision_log, &kept).len(), ROUNDS);
        assert_eq!(told(&decision_log, &subject(SETS, "web-99")).len(), 1);
        assert!(told(&decision_log, &subject(SETS, "web-1")).is_empty());
        let pages = decision_log.shared.pages.lock();
        assert_eq!((pages.rings.len(), pages.order.len()), (3, 3));
    }

    #[test]
    fn the_end_of_an_object_is_kept_if_anything_was_known_of_it() {
        let (decision_log, web) = (decision_log(10), subject(SETS, "web"));
        decision_log.enter(web.clone(), round(note::GONE, 1, &[]), Vec::new());
        assert!(told(&decision_log, &web).is_empty());
        decision_log.enter(web.clone(), round("done", 2, &["Create"]), Vec::new());
        decision_log.enter(web.clone(), round(note::GONE, 3, &[]), Vec::new());
        assert_eq!(told(&decision_log, &web).len(), 2);
    }
}
