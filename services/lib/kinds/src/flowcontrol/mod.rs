//! Parts that FlowSchemas and PriorityLevelConfigurations share, and the objects of both that every cluster has:
//! upstream's mandatory and suggested configuration, and schemas for the services of the control plane. They are
//! created when the gateway starts, and when they are gone; [`revised`] says what else is changed in them.

mod revision;

use serde_json::{Value, json};
use setpoint_model::users;
use setpoint_proto::Resource;
use setpoint_proto::flowcontrol::{FlowSchema, PriorityLevelConfiguration};

use crate::identity::{AUTHENTICATED, UNAUTHENTICATED};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

pub use revision::{Configured, is_unwanted, revised};

/// A level with a limit: name, shares, percentage that can be lent, queues and hand size. Without queues, requests
/// beyond the limit are rejected.
type Limited = (&'static str, i32, i32, Option<(i32, i32)>);

const LEVELS: [Limited; 7] = [
    ("catch-all", 5, 0, None),
    ("system", 30, 33, Some((64, 6))),
    ("node-high", 40, 25, Some((64, 6))),
    ("leader-election", 10, 0, Some((16, 4))),
    ("workload-high", 40, 50, Some((128, 6))),
    ("workload-low", 100, 90, Some((128, 6))),
    ("global-default", 20, 50, Some((128, 6))),
];
/// The schemas that cover all requests of their subjects: name, level, precedence, distinguisher, subjects.
const SCHEMAS: [(&str, &str, i32, &str, &[Who]); 10] = [
    ("exempt", "exempt", 1, "", &[Who::Group("system:masters")]),
    ("catch-all", "catch-all", 10_000, "ByUser", EVERYBODY),
    ("system-nodes", "system", 500, "ByUser", NODES),
    (
        "setpoint-simulated-nodes",
        "system",
        501,
        "ByUser",
        SIMULATED_NODES,
    ),
    (
        "kube-controller-manager",
        "workload-high",
        800,
        "ByNamespace",
        &[CONTROLLER_MANAGER],
    ),
    (
        "kube-scheduler",
        "workload-high",
        800,
        "ByNamespace",
        &[SCHEDULER],
    ),
    (
        "setpoint-services",
        "workload-high",
        801,
        "ByUser",
        SERVICES,
    ),
    (
        "kube-system-service-accounts",
        "workload-high",
        900,
        "ByNamespace",
        &[Who::SystemAccounts],
    ),
    (
        "service-accounts",
        "workload-low",
        9_000,
        "ByUser",
        &[Who::Group("system:serviceaccounts")],
    ),
    (
        "global-default",
        "global-default",
        9_900,
        "ByUser",
        EVERYBODY,
    ),
];
const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

const EVERYBODY: &[Who] = &[Who::Group(UNAUTHENTICATED), Who::Group(AUTHENTICATED)];
const NODES: &[Who] = &[Who::Group(users::NODES)];
const SIMULATED_NODES: &[Who] = &[Who::Group(users::SIMULATED_NODES)];
/// The services of the control plane, each of which has a flow of its own.
const SERVICES: &[Who] = &[Who::Group(users::SERVICES)];
const CONTROLLER_MANAGER: Who = Who::User("system:kube-controller-manager");
const SCHEDULER: Who = Who::User("system:kube-scheduler");

/// A subject of a schema.
#[derive(Clone, Copy)]
enum Who {
    User(&'static str),
    Group(&'static str),
    /// All ServiceAccounts of the namespace `kube-system`.
    SystemAccounts,
}

impl Who {
    fn subject(self) -> Value {
        match self {
            Self::User(name) => json!({ "kind": "User", "user": { "name": name } }),
            Self::Group(name) => json!({ "kind": "Group", "group": { "name": name } }),
            Self::SystemAccounts => json!({
                "kind": "ServiceAccount",
                "serviceAccount": { "name": "*", "namespace": "kube-system" },
            }),
        }
    }
}

/// Returns the priority levels that every cluster has.
pub fn levels() -> impl Iterator<Item = PriorityLevelConfiguration> {
    let exempt = json!({ "nominalConcurrencyShares": 0, "lendablePercent": 0 });
    let exempt = ("exempt", json!({ "type": "Exempt", "exempt": exempt }));
    let limited = LEVELS.into_iter().map(|(name, shares, lendable, queues)| {
        let response = match queues {
            None => json!({ "type": "Reject" }),
            Some((queues, hand)) => json!({ "type": "Queue", "queuing": {
                "queues": queues, "handSize": hand, "queueLengthLimit": 50,
            } }),
        };
        let limited = json!({
            "nominalConcurrencyShares": shares,
            "lendablePercent": lendable,
            "limitResponse": response,
        });
        (name, json!({ "type": "Limited", "limited": limited }))
    });
    let all = [exempt].into_iter().chain(limited);
    all.map(|(name, spec)| PriorityLevelConfiguration {
        spec: read(spec),
        ..named(name)
    })
}

/// Returns the schemas that every cluster has.
pub fn schemas() -> impl Iterator<Item = FlowSchema> {
    let everything = json!([{
        "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true,
    }]);
    let paths = json!([{ "verbs": ["*"], "nonResourceURLs": ["*"] }]);
    let broad = SCHEMAS.into_iter().map(move |(name, level, at, by, who)| {
        let rules = json!({ "resourceRules": everything, "nonResourceRules": paths });
        schema(name, level, at, by, who, rules)
    });
    broad
        .chain([probes()])
        .chain(leader_election())
        .chain(node_high())
}

fn probes() -> FlowSchema {
    let paths = json!([{ "verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"] }]);
    let rules = json!({ "nonResourceRules": paths });
    schema("probes", "exempt", 2, "", EVERYBODY, rules)
}

/// Returns the schemas of who elects leaders.
fn leader_election() -> [FlowSchema; 2] {
    let rules = json!({ "resourceRules": [leases(&["get", "create", "update"])] });
    let of = |name, at, who| schema(name, "leader-election", at, "ByUser", who, rules.clone());
    let upstream = [CONTROLLER_MANAGER, SCHEDULER, Who::SystemAccounts];
    [
        of("system-leader-election", 100, &upstream),
        of("setpoint-leader-election", 101, SERVICES),
    ]
}

/// Returns the schemas of who keeps nodes ready.
fn node_high() -> [FlowSchema; 2] {
    let nodes = json!({
        "verbs": ["*"], "apiGroups": [""], "resources": ["nodes", "nodes/status"],
        "namespaces": ["*"], "clusterScope": true,
    });
    let rules = json!({ "resourceRules": [nodes, leases(&["*"])] });
    let of = |name, at, who| schema(name, "node-high", at, "ByUser", who, rules.clone());
    [
        of("system-node-high", 400, NODES),
        of("setpoint-simulated-node-high", 401, SIMULATED_NODES),
    ]
}

fn leases(verbs: &[&str]) -> Value {
    json!({
        "verbs": verbs, "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["*"],
    })
}

fn schema(
    name: &str,
    level: &str,
    precedence: i32,
    distinguisher: &str,
    who: &[Who],
    mut rules: Value,
) -> FlowSchema {
    rules["subjects"] = who.iter().map(|one| one.subject()).collect();
    let mut spec = json!({
        "priorityLevelConfiguration": { "name": level },
        "matchingPrecedence": precedence,
        "rules": [rules],
    });
    if !distinguisher.is_empty() {
        spec["distinguisherMethod"] = json!({ "type": distinguisher });
    }
    FlowSchema {
        spec: read(spec),
        ..named(name)
    }
}

fn read<T: serde::de::DeserializeOwned>(spec: Value) -> T {
    serde_json::from_value(spec).expect("a test reads all of them")
}

fn named<T: Resource>(name: &str) -> T {
    let mut object = T::default();
    object.meta_mut().name = name.into();
    let annotations = &mut object.meta_mut().annotations;
    annotations.insert(revision::AUTO_UPDATE.into(), "true".into());
    object
}

/// Returns the objects that are in force in any case.
pub fn mandatory() -> (Vec<PriorityLevelConfiguration>, Vec<FlowSchema>) {
    (mandatory_levels().collect(), mandatory_schemas().collect())
}

/// Returns the schemas whose spec cannot be changed.
pub(super) fn mandatory_schemas() -> impl Iterator<Item = FlowSchema> {
    schemas().filter(|schema| MANDATORY.contains(&schema.metadata.name.as_str()))
}

/// Returns the levels whose spec cannot be changed.
pub(super) fn mandatory_levels() -> impl Iterator<Item = PriorityLevelConfiguration> {
    levels().filter(|level| MANDATORY.contains(&level.metadata.name.as_str()))
}

/// Requires that the conditions of a status have types, each another one.
pub(super) fn validate_condition_types<'a>(
    types: impl Iterator<Item = &'a str>,
    errors: &mut FieldErrors,
) {
    let path = FieldPath::root("status");
    let path = path.field("conditions");
    let mut seen = Vec::new();
    for (index, of) in types.enumerate() {
        let at = path.index(index);
        if seen.contains(&of) {
            errors.duplicate(&at.field("type"), of);
        }
        errors.not_empty(&at.field("type"), of);
        seen.push(of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoredKind;

    #[test]
    fn the_initial_objects_are_valid_and_have_all_defaults() {
        let mut errors = FieldErrors::default();
        for schema in schemas() {
            let mut same = schema.clone();
            same.fill_defaults();
            assert_eq!(same, schema);
            schema.validate(&mut errors);
        }
        for level in levels() {
            let mut same = level.clone();
            same.fill_defaults();
            assert_eq!(same, level);
            level.validate(&mut errors);
        }
        assert_eq!(errors.to_string(), "[]");
        assert_eq!((schemas().count(), levels().count()), (15, 8));
    }
}
