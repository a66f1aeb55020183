//! The decisions of the namespace-controller: properties of its plan, and simulations of whole deletions with crashes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;
use setpoint_controller::{Outcome, Plan, Whole};
use setpoint_model::{Key, Meta, condition};
use setpoint_namespace_controller::{Action, BURST, Content, Failure, Item, World, plan, status};
use setpoint_proto::core::{Namespace, NamespaceCondition, NamespaceStatus};
use setpoint_proto::meta::Time;
use setpoint_proto::{ApiError, Reason};

const RESOURCES: [&str; 4] = ["configmaps", "pods", "secrets", "tabs.example.com"];
const HELD: &str = "example.com/held";

fn item(resource: &str, name: &str) -> Item {
    Item {
        resource: resource.into(),
        key: Key::new("shop", name),
        uid: format!("{resource}-{name}"),
        deleting: false,
        finalizers: Vec::new(),
    }
}

fn ending(finalizers: &[&str]) -> Namespace {
    let mut namespace = Namespace::default();
    namespace.metadata.name = "shop".into();
    namespace.metadata.uid = "u1".into();
    namespace.metadata.resource_version = "7".into();
    namespace.spec.finalizers = finalizers.iter().map(|&one| one.to_owned()).collect();
    namespace
}

fn world(namespace: &Namespace, content: Content) -> World {
    let meta = Meta {
        deleting: true,
        ..Meta::of(&namespace.metadata)
    };
    let namespace = Arc::new(Whole {
        meta,
        object: namespace.clone(),
    });
    World {
        namespace,
        content,
        undiscovered: Vec::new(),
        failures: BTreeMap::new(),
        now: Timestamp::UNIX_EPOCH,
    }
}

fn holding(items: Vec<Item>) -> World {
    world(&ending(&["kubernetes"]), Content::Known(items))
}

fn deleted(plan: &Plan<Action>) -> Vec<&Item> {
    let steps = plan.steps.iter().map(|step| &step.action);
    let items = steps.filter_map(|action| match action {
        Action::Delete(item) => Some(item),
        Action::Finalize => None,
    });
    items.collect()
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    let one = (0..RESOURCES.len(), 0..6_usize, any::<bool>(), any::<bool>());
    vec(one, 0..20).prop_map(|drawn| {
        let mut seen = BTreeSet::new();
        let mut items = Vec::new();
        for (kind, name, deleting, held) in drawn {
            if seen.insert((kind, name)) {
                items.push(Item {
                    deleting,
                    finalizers: held.then(|| HELD.to_owned()).into_iter().collect(),
                    ..item(RESOURCES[kind], &format!("o{name}"))
                });
            }
        }
        items
    })
}

proptest! {
    /// Checks K9 and V19 (CVE-2024-7598): NetworkPolicies go after the Pods that they guard.
    #[test]
    fn nothing_but_pods_is_deleted_while_there_are_pods(items in items()) {
        let plan = plan(&holding(items.clone()));
        let pods = items.iter().any(Item::is_pod);
        prop_assert!(deleted(&plan).iter().all(|item| item.is_pod() == pods));
    }

    #[test]
    fn each_object_that_is_not_being_deleted_is_deleted_once_and_no_other(items in items()) {
        let plan = plan(&holding(items.clone()));
        let pods = items.iter().any(Item::is_pod);
        let wanted = items.iter().filter(|item| !item.deleting && item.is_pod() == pods);
        let wanted: BTreeSet<_> = wanted.collect();
        let found = deleted(&plan);
        prop_assert_eq!(found.len(), wanted.len());
        prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), wanted);
    }

    #[test]
    fn the_order_of_the_content_is_irrelevant(
        (items, shuffled) in items().prop_flat_map(|items| (Just(items.clone()), Just(items).prop_shuffle())),
    ) {
        let (one, other) = (holding(items), holding(shuffled));
        prop_assert_eq!(plan(&one), plan(&other));
        let nothing = Outcome::default();
        prop_assert_eq!(status(&one, &nothing), status(&other, &nothing));
    }

    #[test]
    fn the_finalizer_is_removed_only_from_a_namespace_that_is_empty_and_says_so(items in items()) {
        let world = holding(items.clone());
        let plan = plan(&world);
        let finalizes = plan.steps.iter().any(|step| step.action == Action::Finalize);
        prop_assert!(!finalizes, "its conditions do not say yet that it is empty");
        prop_assert_eq!(plan.again.is_some(), !items.is_empty());
    }

    /// A deletion converges, whatever part of each plan is executed before a crash.
    #[test]
    fn a_deletion_ends_although_the_controller_crashes_between_any_two_actions(
        items in items(),
        crashes in vec(0..4_usize, 0..30),
    ) {
        let mut simulation = Simulation::new(items);
        for steps in crashes {
            simulation.round(Some(steps));
        }
        prop_assert!(simulation.runs_to_its_end());
    }
}

/// A namespace in a cluster without other writers, except for those that remove finalizers in the end.
struct Simulation {
    namespace: Namespace,
    items: Vec<Item>,
    gone: bool,
}

impl Simulation {
    fn new(items: Vec<Item>) -> Self {
        Self {
            namespace: ending(&["kubernetes"]),
            items,
            gone: false,
        }
    }

    /// Executes at most this number of steps, and the status after all of them. Returns whether anything was written.
    fn round(&mut self, steps: Option<usize>) -> bool {
        if self.gone {
            return false;
        }
        let world = world(&self.namespace, Content::Known(self.items.clone()));
        let mut outcome = Outcome::of(plan(&world));
        let all = outcome.plan.steps.len();
        let executed = steps.unwrap_or(all).min(all);
        for step in &outcome.plan.steps[..executed] {
            self.execute(&step.action);
        }
        outcome.done = executed;
        if executed < all || self.gone {
            return executed > 0;
        }
        let status = status(&world, &outcome);
        let written = executed > 0 || status.is_some();
        if let Some(status) = status {
            self.namespace.status = status;
        }
        written
    }

    fn execute(&mut self, action: &Action) {
        match action {
            Action::Delete(item) => {
                for found in self.items.iter_mut().filter(|found| found.uid == item.uid) {
                    found.deleting = true;
                }
                self.sweep();
            }
            Action::Finalize => {
                assert!(self.items.is_empty(), "{:?} is left", self.items);
                self.gone = true;
            }
        }
    }

    fn sweep(&mut self) {
        let is_gone = |item: &Item| item.deleting && item.finalizers.is_empty();
        self.items.retain(|item| !is_gone(item));
    }

    /// Runs until nothing is written; then others remove their finalizers, kind by kind.
    fn runs_to_its_end(&mut self) -> bool {
        for _ in 0..100 {
            if !self.round(None) {
                let held = self.items.iter_mut().find(|item| item.deleting);
                held.into_iter().for_each(|item| item.finalizers.clear());
                self.sweep();
            }
        }
        self.gone
    }
}

#[test]
fn nothing_is_planned_for_content_that_is_unknown_or_of_another_namespace() {
    for content in [Content::Unread, Content::Foreign] {
        let world = world(&ending(&["kubernetes"]), content.clone());
        assert!(plan(&world).is_empty());
        assert_eq!(plan(&world).again.is_some(), content == Content::Unread);
        assert_eq!(status(&world, &Outcome::default()), None);
    }
}

#[test]
fn a_namespace_that_waits_for_finalizers_of_others_is_left_alone() {
    let mut namespace = ending(&["example.com/a"]);
    let empty = world(&namespace, Content::Known(Vec::new()));
    namespace.status = status(&empty, &Outcome::of(plan(&empty))).unwrap();
    let world = world(&namespace, Content::Known(Vec::new()));
    assert_eq!(plan(&world), Plan::default());
    assert_eq!(status(&world, &Outcome::of(plan(&world))), None);
}

/// Checks RF11.
#[test]
fn a_namespace_keeps_the_finalizer_while_an_api_server_does_not_answer() {
    let mut namespace = ending(&["kubernetes"]);
    let empty = |namespace: &Namespace, undiscovered: &[&str]| World {
        undiscovered: undiscovered.iter().map(|&one| one.to_owned()).collect(),
        ..world(namespace, Content::Known(Vec::new()))
    };
    let dead = ["a.io/v1", "b.io/v1"];
    let waiting = empty(&namespace, &dead);
    let reported = status(&waiting, &Outcome::of(plan(&waiting))).unwrap();
    let kind = "NamespaceDeletionDiscoveryFailure";
    let condition = condition::get(&reported.conditions, kind).unwrap();
    assert_eq!(
        (&*condition.status, &*condition.reason, &*condition.message),
        (
            "True",
            "DiscoveryFailed",
            "Discovery failed for some groups, 2 failing: unable to retrieve the complete list of server APIs: \
             a.io/v1: stale GroupVersion discovery: a.io/v1, b.io/v1: stale GroupVersion discovery: b.io/v1"
        )
    );
    namespace.status = reported;
    let waiting = empty(&namespace, &dead);
    assert!(plan(&waiting).is_empty(), "it waits");
    assert!(plan(&waiting).again.is_some(), "until they answer");
    assert_eq!(status(&waiting, &Outcome::of(plan(&waiting))), None);

    let answered = empty(&namespace, &[]);
    let reported = status(&answered, &Outcome::of(plan(&answered))).unwrap();
    let condition = condition::get(&reported.conditions, kind).unwrap();
    assert_eq!(condition.status, "False");
    namespace.status = reported;
    let answered = empty(&namespace, &[]);
    let steps = plan(&answered).steps;
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0].action, Action::Finalize);
}

#[test]
fn a_plan_is_bounded_and_continued_soon() {
    let many = (0..2 * BURST).map(|n| item("configmaps", &format!("o{n:04}")));
    let plan = plan(&holding(many.collect()));
    assert_eq!(plan.steps.len(), BURST);
    assert!(plan.again.unwrap().as_millis() < 1000);
}

/// Checks I11: no step is started after one that failed.
#[test]
fn kinds_that_could_not_be_deleted_are_last_and_the_one_that_failed_least_often_is_tried_first() {
    let mut world = holding(RESOURCES.map(|kind| item(kind, "a")).to_vec());
    world.content = match world.content {
        Content::Known(items) => {
            Content::Known(items.into_iter().filter(|item| !item.is_pod()).collect())
        }
        other => other,
    };
    let failure = |times, message: &str| Failure {
        times,
        message: message.into(),
    };
    let failed = [
        ("configmaps".to_owned(), failure(2, "no")),
        ("secrets".to_owned(), failure(1, "denied")),
    ];
    world.failures = failed.into();
    let plan = plan(&world);
    let order: Vec<_> = deleted(&plan).iter().map(|item| &*item.resource).collect();
    assert_eq!(order, ["tabs.example.com", "secrets", "configmaps"]);

    let status = status(&world, &refused(&world)).unwrap();
    let failure = condition::get(&status.conditions, "NamespaceDeletionContentFailure").unwrap();
    assert_eq!(
        (&*failure.status, &*failure.reason, &*failure.message),
        (
            "True",
            "ContentDeletionFailed",
            "Failed to delete all resource types, 2 remaining: denied, no"
        )
    );
}

fn refused(world: &World) -> Outcome<Action> {
    let mut outcome = Outcome::of(plan(world));
    outcome.failed = Some(ApiError::new(Reason::Forbidden, "denied"));
    outcome
}

/// Returns type, status and message of the conditions.
fn conditions(status: &NamespaceStatus) -> Vec<(&str, &str, &str)> {
    let conditions = status.conditions.iter();
    conditions
        .map(|one| (&*one.r#type, &*one.status, &*one.message))
        .collect()
}

#[test]
fn nothing_is_reported_about_content_that_was_deleted_since_it_was_read() {
    let world = holding(vec![item("configmaps", "a")]);
    let outcome = Outcome::of(plan(&world));
    assert_eq!(outcome.plan.steps.len(), 1);
    assert_eq!(status(&world, &outcome), None);
}

#[test]
fn a_first_failure_is_reported_and_that_of_a_kind_of_which_nothing_is_left_is_not() {
    let mut world = holding(vec![item("configmaps", "a")]);
    let failure = Failure {
        times: 1,
        message: "no".into(),
    };
    world.failures = [("secrets".to_owned(), failure)].into();
    let reported = status(&world, &refused(&world)).unwrap();
    let expected = (
        "NamespaceDeletionContentFailure",
        "True",
        "Failed to delete all resource types, 1 remaining: denied",
    );
    assert!(conditions(&reported).contains(&expected), "{reported:?}");
}

#[test]
fn the_conditions_of_an_empty_namespace_hold_nothing_against_its_end() {
    let mut namespace = ending(&["kubernetes"]);
    let empty = world(&namespace, Content::Known(Vec::new()));
    let reported = status(&empty, &Outcome::of(plan(&empty))).unwrap();
    assert_eq!(reported.conditions.len(), 5);
    assert!(reported.conditions.iter().all(|one| one.status == "False"));
    let since = Time::from(empty.now);
    let all_since = |one: &NamespaceCondition| one.last_transition_time == since;
    assert!(reported.conditions.iter().all(all_since));

    namespace.status = reported.clone();
    namespace.status.conditions[0].status = "True".into();
    let differs = world(&namespace, Content::Known(Vec::new()));
    assert_eq!(status(&differs, &Outcome::default()), Some(reported));
}

/// Checks K9.
#[test]
fn conditions_name_the_remaining_content_with_upstreams_messages() {
    let held = |name: &str| Item {
        deleting: true,
        finalizers: vec![HELD.to_owned()],
        ..item("pods", name)
    };
    let world = holding(vec![held("a"), held("b"), item("tabs.example.com", "c")]);
    let outcome = Outcome::of(plan(&world));
    assert!(outcome.plan.is_empty(), "the Pods are held");
    let status = status(&world, &outcome).unwrap();
    let found: Vec<_> = status
        .conditions
        .iter()
        .map(|one| (&*one.r#type, &*one.status, &*one.reason, &*one.message))
        .collect();
    let expected = [
        (
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: pods. has 2 resource instances, tabs.example.com has 1 resource instances",
        ),
        (
            "NamespaceFinalizersRemaining",
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/held in 2 resource instances",
        ),
    ];
    assert_eq!(found, expected);
}
