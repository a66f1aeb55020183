//! The questions: every verb on every resource that the gateway serves or the table names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::identities::{Identity, NAMESPACE};
use super::table::{Question, Table};

/// The name of an object that does not exist.
pub const ABSENT: &str = "absent";
/// The verb of requests that act as somebody else.
pub const IMPERSONATE: &str = "impersonate";
/// The verbs of objects and collections.
const VERBS: [&str; 8] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];
/// The verbs of subresources, and of objects by their names.
const OF_PARTS: [&str; 5] = ["get", "create", "update", "patch", "delete"];
const OF_NAMES: [&str; 6] = ["get", "list", "watch", "update", "patch", "delete"];
/// The resources that are asked about in further namespaces, too.
const ELSEWHERE: [&str; 4] = [
    "configmaps",
    "leases.coordination.k8s.io",
    "pods",
    "secrets",
];
const NAMESPACES: [&str; 4] = [
    "default",
    "kube-node-lease",
    "setpoint-replicas",
    "setpoint-system",
];

/// A resource as it is served.
#[derive(Clone, Debug)]
pub struct Served {
    /// The path of its group and version.
    pub base: String,
    pub namespaced: bool,
    /// None if it is named by the table only.
    pub verbs: Vec<String>,
}

/// Resources by their names, such as `deployments.apps/scale`.
pub type Resources = BTreeMap<String, Served>;

/// Adds what a document of discovery, at a path, lists. The first version of a resource stays.
pub fn add_served(resources: &mut Resources, base: &str, group: &str, document: &Value) {
    for resource in document["resources"].as_array().unwrap() {
        let name = resource["name"].as_str().unwrap();
        let verbs = resource["verbs"].as_array().unwrap().iter();
        let verbs = verbs.map(|verb| verb.as_str().unwrap().to_owned());
        let served = Served {
            base: base.to_owned(),
            namespaced: resource["namespaced"] == true,
            verbs: verbs.collect(),
        };
        resources.entry(qualified(name, group)).or_insert(served);
    }
}

/// Adds the resources of the table that are not served, such as `pods/finalizers`.
pub fn add_listed(resources: &mut Resources, table: &Table) {
    let listed = table.0.iter().flat_map(|block| &block.resources);
    for name in listed.filter(|name| !name.starts_with(['/', '*'])) {
        let (whole, _) = name.split_once('/').unwrap_or((name, ""));
        let group = whole.split_once('.').map(|(_, group)| group);
        let unserved = || Served {
            base: match group {
                None => "/api/v1".to_owned(),
                Some(group) => format!("/apis/{group}/v1"),
            },
            namespaced: true,
            verbs: Vec::new(),
        };
        let of_whole = resources.get(whole).cloned();
        let of_whole = of_whole.map(|served| Served {
            verbs: Vec::new(),
            ..served
        });
        let served = of_whole.unwrap_or_else(unserved);
        resources.entry(name.clone()).or_insert(served);
    }
}

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() {
        return name.to_owned();
    }
    match name.split_once('/') {
        None => format!("{name}.{group}"),
        Some((plural, part)) => format!("{plural}.{group}/{part}"),
    }
}

/// Returns the questions that everybody asks.
pub fn of_everybody(resources: &Resources, table: &Table) -> BTreeSet<Question> {
    let mut all = BTreeSet::new();
    for (resource, served) in resources {
        let verbs: &[&str] = match resource.contains('/') {
            true => &OF_PARTS,
            false => &VERBS,
        };
        for verb in verbs {
            all.insert(question(verb, resource, served, NAMESPACE, ""));
            if ELSEWHERE.contains(&resource.as_str()) {
                let others = NAMESPACES.iter();
                all.extend(others.map(|other| question(verb, resource, served, other, "")));
            }
        }
    }
    for block in &table.0 {
        for resource in &block.resources {
            all.extend(of_block(
                resource,
                &block.names,
                &block.namespace,
                resources,
            ));
        }
    }
    all
}

/// Returns the questions about paths, and about the names of a block.
fn of_block(
    resource: &str,
    names: &[String],
    namespace: &str,
    resources: &Resources,
) -> Vec<Question> {
    let whole = |verb: &str, namespace: &str, name: &str| Question {
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    if resource.starts_with('/') {
        return vec![whole("get", "", "")];
    }
    let names = names.iter().filter(|name| *name != "itself");
    if ["users", "serviceaccounts"].contains(&resource)
        && names.clone().any(|one| one.contains(':'))
    {
        let of_account = |name: &str| name.split(':').nth(2).unwrap_or_default().to_owned();
        let namespace = |name: &str| match resource {
            "users" => String::new(),
            _ => of_account(name),
        };
        return names
            .map(|name| whole(IMPERSONATE, &namespace(name), name))
            .collect();
    }
    let is_part = resource.contains('/');
    let namespace = if namespace.is_empty() {
        NAMESPACE
    } else {
        namespace
    };
    let questions = names.flat_map(|name| {
        let verbs = OF_NAMES
            .iter()
            .filter(|verb| !is_part || OF_PARTS.contains(verb));
        let of_name = |verb: &&str| question(verb, resource, &resources[resource], namespace, name);
        verbs.map(of_name).collect::<Vec<_>>()
    });
    questions.collect()
}

/// Returns the questions about the Lease of an election: everybody's own, and that of one controller.
pub fn of_elections(who: &Identity, resources: &Resources) -> Vec<Question> {
    let leases = "leases.coordination.k8s.io";
    let names = [who.own_name(), "deployment-controller"];
    let questions = names.iter().flat_map(|name| {
        OF_NAMES.map(|verb| question(verb, leases, &resources[leases], "setpoint-system", name))
    });
    questions.collect()
}

/// Returns a question. Without a name, one about an object is about [`ABSENT`]. A Namespace is in itself.
fn question(verb: &str, resource: &str, served: &Served, namespace: &str, name: &str) -> Question {
    let is_part = resource.contains('/');
    let of_object = is_part || ["get", "update", "patch", "delete"].contains(&verb);
    let name = match name {
        "" if of_object => ABSENT,
        name => name,
    };
    let is_namespace = resource == "namespaces" || resource.starts_with("namespaces/");
    let namespace = match (is_namespace, served.namespaced) {
        (true, _) if of_object => name,
        (false, true) => namespace,
        _ => "",
    };
    Question {
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}
