//! The decisions of the resourcequota-controller: tables of what quotas count, properties of the status, and
//! simulations of counts between charges, deletions and crashes.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;
use setpoint_model::amounts::{self, Amounts};
use setpoint_model::quantity::Amount;
use setpoint_model::{Meta, quota};
use setpoint_proto::core::{
    Container, PersistentVolumeClaim, Pod, ResourceQuota, ResourceQuotaSpec, Service,
};
use setpoint_proto::meta::Quantity;
use setpoint_resourcequota_controller::{Counted, Needs, Tally, World, concerns, plan, status};

type List<'a> = &'a [(&'a str, &'a str)];

const NOW: i64 = 1_000;

fn list(amounts: List<'_>) -> BTreeMap<String, Quantity> {
    let entry = |(name, text): &(&str, &str)| ((*name).to_owned(), Quantity::new(*text));
    amounts.iter().map(entry).collect()
}

fn limiting(names: &[&str]) -> ResourceQuotaSpec {
    ResourceQuotaSpec {
        hard: names
            .iter()
            .map(|name| ((*name).to_owned(), Quantity::new("9")))
            .collect(),
        ..ResourceQuotaSpec::default()
    }
}

fn scoped(names: &[&str], scope: &str) -> ResourceQuotaSpec {
    ResourceQuotaSpec {
        scopes: vec![scope.to_owned()],
        ..limiting(names)
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time of a test is in range")
}

fn pod(cpu: &str) -> Pod {
    let mut container = Container::default();
    container.resources.requests = list(&[("cpu", cpu)]);
    let mut pod = Pod::default();
    pod.spec.containers.push(container);
    pod
}

fn ending(deleted: i64, grace: i64) -> Pod {
    let mut pod = pod("1");
    pod.metadata.deletion_timestamp = Some(at(deleted).into());
    pod.metadata.deletion_grace_period_seconds = Some(grace);
    pod
}

fn tally<'a>(spec: &'a ResourceQuotaSpec) -> Tally<'a> {
    Tally::new(spec, at(NOW))
}

fn written(counted: &Counted) -> String {
    let used = amounts::to_list(&counted.used);
    let used: Vec<_> = used
        .iter()
        .map(|(name, used)| format!("{name}={used}"))
        .collect();
    used.join(" ")
}

fn world(quota: &ResourceQuota, counted: Option<Counted>) -> World {
    World {
        meta: Meta::of(&quota.metadata),
        spec: quota.spec.clone(),
        status: quota.status.clone(),
        counted,
        sync_period: Duration::from_secs(300),
        now: at(NOW),
    }
}

#[test]
fn only_objects_that_use_different_amounts_are_read() {
    let table: &[(&[&str], &[&str], &[&str])] = &[
        (&["count/tabs.example.com"], &["tabs.example.com"], &[]),
        (&["secrets", "count/secrets"], &["secrets"], &[]),
        (&["services", "count/pods"], &["pods", "services"], &[]),
        (&["pods"], &[], &["pods"]),
        (&["requests.example.com/gpu"], &[], &["pods"]),
        (&["services.nodeports"], &[], &["services"]),
        (
            &["persistentvolumeclaims", "requests.storage"],
            &["persistentvolumeclaims"],
            &["persistentvolumeclaims"],
        ),
        (
            &["gold.storageclass.storage.k8s.io/requests.storage"],
            &[],
            &["persistentvolumeclaims"],
        ),
        (
            &["count/resourceclaims.resource.k8s.io"],
            &["resourceclaims.resource.k8s.io"],
            &[],
        ),
        (
            &["gold.deviceclass.resource.k8s.io/devices"],
            &[],
            &["resourceclaims.resource.k8s.io"],
        ),
        (&["count/events", "storage"], &[], &[]),
    ];
    for (names, numbers, objects) in table {
        let needs = Needs::of(&limiting(names));
        assert_eq!(Vec::from_iter(&needs.numbers), *numbers, "{names:?}");
        let read = Vec::from_iter(needs.objects);
        assert_eq!(read, *objects, "{names:?}");
    }
    let needs = Needs::of(&scoped(&["count/pods", "secrets"], "BestEffort"));
    assert_eq!(Vec::from_iter(needs.objects), ["pods"]);
    assert_eq!(Vec::from_iter(needs.numbers), ["secrets"]);
}

#[test]
fn a_count_has_what_the_quota_limits_and_nothing_of_kinds_that_do_not_exist() {
    let names = ["count/tabs.example.com", "pods", "requests.cpu", "secrets"];
    let spec = limiting(&names);
    let mut tally = tally(&spec);
    tally.numbers(&[("secrets".to_owned(), 3), ("configmaps".to_owned(), 5)].into());
    tally.pod(&pod("500m"));
    let mut ended = pod("1");
    ended.status.phase = "Succeeded".into();
    tally.pod(&ended);
    tally.pod(&pod("700m"));
    assert_eq!(
        written(&tally.counted()),
        "pods=2 requests.cpu=1200m secrets=3"
    );
}

#[test]
fn a_quota_with_scopes_counts_nothing_of_kinds_without() {
    let names = ["count/pods", "count/secrets", "count/services"];
    let spec = scoped(&names, "BestEffort");
    let mut tally = tally(&spec);
    tally.numbers(&[("secrets".to_owned(), 3)].into());
    tally.service(&Service::default());
    tally.pod(&Pod::default());
    tally.pod(&pod("1"));
    assert_eq!(
        written(&tally.counted()),
        "count/pods=1 count/secrets=0 count/services=0"
    );
    let spec = scoped(&["persistentvolumeclaims"], "VolumeAttributesClass");
    let mut tally = Tally::new(&spec, at(NOW));
    let mut claim = PersistentVolumeClaim::default();
    tally.claim(&claim);
    claim.spec.volume_attributes_class_name = Some("gold".into());
    tally.claim(&claim);
    assert_eq!(written(&tally.counted()), "persistentvolumeclaims=1");
}

/// The number and the objects of a kind are two reads: an object counts once.
#[test]
fn a_number_is_not_added_to_what_the_objects_say() {
    let spec = limiting(&["persistentvolumeclaims", "requests.storage"]);
    let mut tally = tally(&spec);
    tally.numbers(&[("persistentvolumeclaims".to_owned(), 1)].into());
    let mut claim = PersistentVolumeClaim::default();
    claim.spec.resources.requests = list(&[("storage", "1Gi")]);
    tally.claim(&claim);
    assert_eq!(
        written(&tally.counted()),
        "persistentvolumeclaims=1 requests.storage=1Gi"
    );
}

#[test]
fn changes_concern_the_quotas_that_count_the_kind() {
    let spec = limiting(&["count/tabs.example.com", "requests.cpu", "secrets"]);
    for resource in ["pods", "secrets", "tabs.example.com"] {
        assert!(concerns(&spec, resource), "{resource}");
    }
    for resource in ["configmaps", "events", "services"] {
        assert!(!concerns(&spec, resource), "{resource}");
    }
}

#[test]
fn a_quota_is_counted_again_when_the_next_grace_period_is_over() {
    let spec = limiting(&["pods"]);
    let again = |pods: &[Pod]| {
        let mut tally = tally(&spec);
        pods.iter().for_each(|pod| tally.pod(pod));
        let quota = ResourceQuota::default();
        plan(&world(&quota, Some(tally.counted()))).again
    };
    let sync = Some(Duration::from_secs(300));
    assert_eq!(again(&[]), sync);
    // Not counted any more.
    assert_eq!(again(&[ending(NOW - 31, 30)]), sync);
    let first = Some(Duration::from_millis(5_010));
    let pods = [ending(NOW, 60), ending(NOW - 25, 30), ending(NOW, 30)];
    assert_eq!(again(&pods), first);
    assert_eq!(again(&[ending(NOW, 600)]), sync);
    let unread = plan(&world(&ResourceQuota::default(), None));
    assert_eq!(unread.again, Some(Duration::from_secs(1)));
}

#[test]
fn nothing_is_written_of_a_quota_whose_objects_could_not_be_read() {
    let quota = ResourceQuota {
        spec: limiting(&["pods"]),
        ..ResourceQuota::default()
    };
    assert_eq!(status(&world(&quota, None)), None);
}

/// A namespace, its quota, and a controller that may be anywhere between two of its actions.
struct Simulation {
    pods: BTreeMap<usize, Pod>,
    quota: ResourceQuota,
    revision: u64,
    /// The quota as it was read, with its revision, and the count once it was made.
    reconcile: Option<(ResourceQuota, u64, Option<Counted>)>,
}

#[derive(Clone, Debug)]
enum Event {
    Create(usize, i64),
    Delete(usize),
    End(usize),
    Limit(i64, bool),
    Read,
    Count,
    Write,
    Crash,
}

impl Simulation {
    fn new(cpu: i64) -> Self {
        let mut simulation = Self {
            pods: BTreeMap::new(),
            quota: ResourceQuota::default(),
            revision: 0,
            reconcile: None,
        };
        simulation.limit(cpu, false);
        simulation.converge();
        simulation
    }

    fn limit(&mut self, cpu: i64, pods: bool) {
        let (cpu, number) = (cpu.to_string(), "4");
        self.quota.spec.hard = list(&[("requests.cpu", &cpu), ("pods", number)]);
        if !pods {
            self.quota.spec.hard.remove("pods");
        }
        self.revision += 1;
    }

    /// Creates a Pod as the gateway admits it: charged in one transaction, if what is used is known.
    fn create(&mut self, name: usize, cpu: i64) {
        let pod = pod(&cpu.to_string());
        if self.pods.contains_key(&name) {
            return;
        }
        let status = &mut self.quota.status;
        let (hard, before) = (
            amounts::of_list(&status.hard),
            amounts::of_list(&status.used),
        );
        let mut charged = quota::of_pod(&pod, at(NOW));
        charged.retain(|name, _| hard.contains_key(name));
        let mut used = before.clone();
        amounts::add(&mut used, &charged);
        let known = charged.keys().all(|name| before.contains_key(name));
        if !known || charged.keys().any(|name| used[name] > hard[name]) {
            return;
        }
        if !charged.is_empty() {
            status.used = amounts::to_list(&used);
            self.revision += 1;
        }
        self.pods.insert(name, pod);
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Create(name, cpu) => self.create(name, cpu),
            Event::Delete(name) => drop(self.pods.remove(&name)),
            Event::End(name) => {
                if let Some(pod) = self.pods.get_mut(&name) {
                    pod.status.phase = "Failed".into();
                }
            }
            Event::Limit(cpu, pods) => self.limit(cpu, pods),
            Event::Read => self.reconcile = Some((self.quota.clone(), self.revision, None)),
            Event::Count => {
                if let Some((quota, _, counted)) = &mut self.reconcile {
                    *counted = Some(count(&self.pods, &quota.spec));
                }
            }
            Event::Write => self.write(),
            Event::Crash => self.reconcile = None,
        }
    }

    fn write(&mut self) {
        let Some((quota, revision, Some(counted))) = self.reconcile.take() else {
            return;
        };
        let new = status(&world(&quota, Some(counted)));
        if let Some(new) = new.filter(|_| revision == self.revision) {
            self.quota.status = new;
            self.revision += 1;
        }
    }

    /// Reconciles once without a disturbance.
    fn converge(&mut self) {
        let events = [Event::Read, Event::Count, Event::Write];
        events.into_iter().for_each(|event| self.apply(event));
    }

    fn exist(&self) -> Amounts {
        count(&self.pods, &self.quota.spec).used
    }

    fn used(&self) -> Amounts {
        amounts::of_list(&self.quota.status.used)
    }
}

fn count(pods: &BTreeMap<usize, Pod>, spec: &ResourceQuotaSpec) -> Counted {
    let mut tally = Tally::new(spec, at(NOW));
    pods.values().for_each(|pod| tally.pod(pod));
    tally.counted()
}

fn events(limits: bool) -> impl Strategy<Value = Vec<Event>> {
    let name = 0..6_usize;
    let one = prop_oneof![
        4 => (name.clone(), 1..4_i64).prop_map(|(name, cpu)| Event::Create(name, cpu)),
        2 => name.clone().prop_map(Event::Delete),
        1 => name.prop_map(Event::End),
        3 => Just(Event::Read),
        3 => Just(Event::Count),
        3 => Just(Event::Write),
        1 => Just(Event::Crash),
    ];
    let limit = (1..9_i64, any::<bool>()).prop_map(|(cpu, pods)| Event::Limit(cpu, pods));
    let one = prop_oneof![9 => one, u32::from(limits) => limit];
    vec(one, 0..60)
}

proptest! {
    /// Between any two actions of the controller there may be charges, deletions and crashes.
    #[test]
    fn no_quota_is_exceeded_and_no_charge_is_lost(events in events(false)) {
        let mut simulation = Simulation::new(6);
        for event in events {
            simulation.apply(event.clone());
            let (exist, used) = (simulation.exist(), simulation.used());
            for (name, amount) in &exist {
                prop_assert!(*amount <= Amount::from_value(6), "{name} after {event:?}");
                prop_assert!(*amount <= used[name], "{name} after {event:?}");
            }
        }
    }

    /// A new limit is taken over by one count; what was created before it was is found by the next one.
    #[test]
    fn two_counts_converge_whatever_has_happened(events in events(true)) {
        let mut simulation = Simulation::new(6);
        events.into_iter().for_each(|event| simulation.apply(event));
        simulation.converge();
        simulation.converge();
        prop_assert_eq!(simulation.used(), simulation.exist());
        prop_assert_eq!(&simulation.quota.status.hard, &simulation.quota.spec.hard);
        let counted = count(&simulation.pods, &simulation.quota.spec);
        prop_assert_eq!(status(&world(&simulation.quota, Some(counted))), None);
    }

    #[test]
    fn the_order_of_the_objects_is_irrelevant(cpus in vec(1..2_000_i64, 0..20), turn in 0..20_usize) {
        let spec = limiting(&["pods", "cpu", "requests.cpu", "limits.cpu"]);
        let sum = |cpus: &[i64]| {
            let mut tally = tally(&spec);
            cpus.iter().for_each(|cpu| tally.pod(&pod(&format!("{cpu}m"))));
            tally.counted()
        };
        let mut turned = cpus.clone();
        turned.rotate_left(turn.min(cpus.len()));
        prop_assert_eq!(sum(&cpus), sum(&turned));
    }
}
