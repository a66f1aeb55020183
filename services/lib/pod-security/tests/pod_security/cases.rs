//! Cases of checks: a change of a Pod that `restricted` allows, and its violations from each version on.

use serde_json::{Value, json};
use setpoint_pod_security::checks::ALL;
use setpoint_pod_security::{LevelVersion, Version, evaluate};
use setpoint_proto::core::Pod;

use crate::{baseline, restricted};

/// A change of a Pod.
pub enum Change {
    /// A merge patch of the Pod.
    OfPod(Value),
    /// A merge patch of one container, of each list in turn. `NAME` in the violations is its name.
    OfContainer(Value),
}

/// A case of a check. The violations of its level are those of the last entry whose minor version is not later.
pub struct Case {
    pub check: &'static str,
    pub change: Change,
    pub violations: &'static [(i64, &'static str)],
}

pub fn pod(check: &'static str, patch: Value, violations: &'static [(i64, &'static str)]) -> Case {
    Case {
        check,
        change: Change::OfPod(patch),
        violations,
    }
}

pub fn container(
    check: &'static str,
    patch: Value,
    violations: &'static [(i64, &'static str)],
) -> Case {
    Case {
        check,
        change: Change::OfContainer(patch),
        violations,
    }
}

/// The lists of containers, with the name of the container in each.
const LISTS: [(&str, &str); 3] = [
    ("initContainers", "init"),
    ("containers", "main"),
    ("ephemeralContainers", "debug"),
];

/// A Pod that every version of `restricted` allows.
pub fn allowed() -> Value {
    let context = json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } });
    let mut spec = json!({
        "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
    });
    for (list, name) in LISTS {
        spec[list] = json!([{ "name": name, "image": "nginx", "securityContext": context }]);
    }
    json!({ "metadata": { "name": "web" }, "spec": spec })
}

/// Applies a merge patch.
fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                match value {
                    Value::Null => drop(into.remove(key)),
                    value => merge(into.entry(key).or_insert(Value::Null), value),
                }
            }
        }
        (into, patch) if patch.is_object() => {
            *into = json!({});
            merge(into, patch);
        }
        (into, patch) => *into = patch.clone(),
    }
}

impl Case {
    /// Returns the Pods of the case, with the name of the container that is changed.
    fn pods(&self) -> Vec<(Value, &'static str)> {
        match &self.change {
            Change::OfPod(patch) => {
                let mut pod = allowed();
                merge(&mut pod, patch);
                vec![(pod, "")]
            }
            Change::OfContainer(patch) => {
                let changed = LISTS.map(|(list, name)| {
                    let mut pod = allowed();
                    merge(&mut pod["spec"][list][0], patch);
                    (pod, name)
                });
                changed.into()
            }
        }
    }

    fn violations_of(&self, minor: i64) -> &'static str {
        let known = self.violations.iter().rev();
        let mut known = known.filter(|(since, _)| *since <= minor);
        known.next().map_or("", |(_, text)| text)
    }
}

fn all() -> Vec<Case> {
    let mut all = baseline::cases();
    all.extend(restricted::cases());
    all
}

pub fn read(pod: &Value) -> Pod {
    serde_json::from_value(pod.clone()).unwrap()
}

/// Checks V12: a container is checked in whichever list it is.
#[test]
fn every_case_has_its_violations_in_every_version_and_list() {
    for case in all() {
        let check = ALL.iter().find(|check| check.name == case.check);
        let level = check.unwrap().level;
        for (value, name) in case.pods() {
            let pod = read(&value);
            for minor in 0..=40 {
                let version = match minor {
                    40 => Version::Latest,
                    _ => Version::Minor(minor),
                };
                let against = LevelVersion { level, version };
                let found = evaluate(against, &pod.metadata, &pod.spec).to_string();
                let expected = case.violations_of(minor).replace("NAME", name);
                assert_eq!(found, expected, "{} {against} {value}", case.check);
            }
        }
    }
}

#[test]
fn every_revision_of_a_check_has_a_case_that_it_decides() {
    let cases = all();
    for check in ALL {
        for since in check.since() {
            let of_check = cases.iter().filter(|case| case.check == check.name);
            let mut versions = of_check.flat_map(|case| case.violations);
            assert!(
                versions.any(|(from, _)| *from == since),
                "no case of {} since 1.{since}",
                check.name
            );
        }
    }
}

#[test]
fn privileged_allows_everything() {
    for case in all() {
        for (value, _) in case.pods() {
            let pod = read(&value);
            let found = evaluate(LevelVersion::PRIVILEGED, &pod.metadata, &pod.spec);
            assert!(found.is_empty(), "{value}");
        }
    }
}
