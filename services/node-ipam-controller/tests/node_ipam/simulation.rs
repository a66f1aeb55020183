//! Simulates the assignment under writes whose answer is lost, caches that lag, and leaders that crash.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use setpoint_model::Cidr;
use setpoint_node_ipam_controller::{Action, Candidate, plan};

use crate::decisions::{node, world};
use crate::settings::settings;

#[derive(Clone, Debug)]
enum Event {
    Add(u8),
    Remove(u8),
    /// The cache catches up.
    See,
    /// A reconcile that ends after this number of writes.
    Reconcile(usize),
    /// As [`Event::Reconcile`], but the writes are committed only at [`Event::Commit`], if they are.
    Lose(usize),
    Commit,
    /// Another leads: its cache is up to date, and writes of the former one are fenced.
    FailOver,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0_u8..8).prop_map(Event::Add),
        2 => (0_u8..8).prop_map(Event::Remove),
        4 => Just(Event::See),
        4 => (0_usize..9).prop_map(Event::Reconcile),
        2 => (0_usize..4).prop_map(Event::Lose),
        2 => Just(Event::Commit),
        1 => Just(Event::FailOver),
    ]
}

/// Nodes by name, with their uid and their range.
type Nodes = BTreeMap<String, (u32, Option<Cidr>)>;

#[derive(Default)]
struct Simulation {
    stored: Nodes,
    seen: Nodes,
    uids: u32,
    reserved: BTreeMap<u32, Cidr>,
    /// Writes under way.
    late: Vec<(String, u32, Cidr)>,
}

impl Simulation {
    fn happen(&mut self, event: &Event) {
        match event {
            Event::Add(n) => {
                self.uids += 1;
                let new = (self.uids, None);
                self.stored.entry(format!("n{n}")).or_insert(new);
            }
            Event::Remove(n) => drop(self.stored.remove(&format!("n{n}"))),
            Event::See => self.seen.clone_from(&self.stored),
            Event::Reconcile(count) => {
                for (name, uid, range) in self.decide(*count) {
                    self.commit(&name, uid, range);
                }
            }
            Event::Lose(count) => {
                let lost = self.decide(*count);
                self.late.extend(lost);
            }
            Event::Commit => {
                for (name, uid, range) in std::mem::take(&mut self.late) {
                    self.commit(&name, uid, range);
                }
            }
            Event::FailOver => {
                self.late.clear();
                self.reserved.clear();
                self.seen.clone_from(&self.stored);
            }
        }
        self.check();
    }

    /// Plans by the cache, and reserves the ranges of the writes that begin.
    fn decide(&mut self, count: usize) -> Vec<(String, u32, Cidr)> {
        let waiting = self.seen.values().filter(|(_, range)| range.is_none());
        let waiting: Vec<_> = waiting.map(|(uid, _)| *uid).collect();
        self.reserved.retain(|uid, _| waiting.contains(uid));
        let nodes = self.seen.iter().map(|(name, (uid, range))| {
            let range = range.map(Cidr::prefixed).unwrap_or_default();
            let one = node(name, &range);
            let mut view = (*one.node).clone();
            view.meta.uid = uid.to_string();
            Candidate {
                node: Arc::new(view),
                reserved: self.reserved.get(uid).copied(),
                told: false,
            }
        });
        let world = world(&settings(&["10.244.0.0/22"], 25), nodes.collect());
        let steps = plan(&world).steps.into_iter().take(count);
        let writes = steps.filter_map(|step| match step.action {
            Action::Assign { node, range, .. } => {
                Some((node.key.name.clone(), node.uid.parse().ok()?, range))
            }
            Action::Report { .. } => None,
        });
        let writes: Vec<_> = writes.collect();
        let begun = writes.iter().map(|(_, uid, range)| (*uid, *range));
        self.reserved.extend(begun);
        writes
    }

    /// Patches as the gateway does: the uid must be that of the Node, and a range that is set stays.
    fn commit(&mut self, name: &str, uid: u32, range: Cidr) {
        if let Some((found, stored)) = self.stored.get_mut(name)
            && *found == uid
        {
            stored.get_or_insert(range);
        }
    }

    fn check(&self) {
        let ranges: Vec<_> = self
            .stored
            .values()
            .filter_map(|(_, range)| *range)
            .collect();
        for (index, range) in ranges.iter().enumerate() {
            let mut earlier = ranges[..index].iter();
            assert!(
                !earlier.any(|other| other.overlaps(*range)),
                "{:?}",
                self.stored
            );
        }
    }

    /// Nothing goes wrong any more.
    fn settle(&mut self) {
        for _ in 0..2 {
            self.happen(&Event::See);
            self.happen(&Event::Reconcile(usize::MAX));
        }
        self.happen(&Event::See);
        assert_eq!(self.decide(usize::MAX), [], "it has settled");
        let mut all = self.stored.values();
        assert!(all.all(|(_, range)| range.is_some()), "{:?}", self.stored);
    }
}

proptest! {
    #[test]
    fn no_range_is_given_twice_and_every_node_gets_one(
        events in prop::collection::vec(event(), 0..60),
    ) {
        let mut simulation = Simulation::default();
        events.iter().for_each(|event| simulation.happen(event));
        simulation.settle();
    }
}
