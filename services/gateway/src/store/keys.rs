//! Where things stand in the store: objects as Kubernetes lays them out, our own keys beside them.

use std::collections::HashMap;
use std::sync::LazyLock;

use setpoint_codec::{Kind, kinds};
use setpoint_model::Key;

/// What every object's key begins with.
pub const ROOT: &str = "/registry/";

/// What a delete leaves behind in its own transaction, so that watchers learn its cause. Overwritten each time.
pub const FAREWELL: &str = "/setpoint/farewell";

/// Rewritten whenever Services are given addresses or ports, so that two gateways never give the same.
pub const ALLOTTED: &str = "/setpoint/allotted";

/// The highest term of any Lease that is gone. It never falls.
pub const PAST_TERM: &str = "/setpoint/past-term";

/// Where the standing term of a lease is kept, as long as there is the Lease.
pub fn term(lease: &Key) -> String {
    format!("/setpoint/terms/{}/{}", lease.namespace, lease.name)
}

/// The key of an object.
pub fn object(kind: &Kind, key: &Key) -> String {
    format!("{ROOT}{}/{key}", folder(kind))
}

/// What the keys of a kind's objects begin with; those of one namespace unless it is empty.
pub fn prefix(kind: &Kind, namespace: &str) -> String {
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{ROOT}{}/{namespace}{slash}", folder(kind))
}

/// The object that a key is of; `None` for kinds that are not known here.
pub fn parse(path: &str) -> Option<(&'static Kind, Key)> {
    static FOLDERS: LazyLock<HashMap<&str, &Kind>> =
        LazyLock::new(|| kinds().iter().map(|kind| (folder(kind), kind)).collect());
    let path = path.strip_prefix(ROOT)?;
    let mut slashes = path.match_indices('/').map(|(at, _)| at).take(2);
    let (kind, rest) =
        slashes.find_map(|at| Some((*FOLDERS.get(&path[..at])?, &path[at + 1..])))?;
    let (namespace, name) = match kind.namespaced {
        true => rest.split_once('/')?,
        false => ("", rest),
    };
    (!name.is_empty() && !name.contains('/')).then(|| (kind, Key::new(namespace, name)))
}

/// Kubernetes kept the first names of two kinds.
fn folder(kind: &Kind) -> &str {
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "nodes") => "minions",
        ("", "services") => "services/specs",
        (_, plural) => plural,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_again_by_its_key() {
        for kind in kinds().iter() {
            let namespace = if kind.namespaced { "production" } else { "" };
            let key = Key::new(namespace, "web");
            let path = object(kind, &key);
            assert!(path.starts_with(&prefix(kind, namespace)), "{path}");
            assert_eq!(parse(&path), Some((kind, key)), "{path}");
        }
    }

    #[test]
    fn objects_stand_where_kubernetes_looks_for_them() {
        let path = |resource: &str, key: Key| object(kinds().by_resource(resource).unwrap(), &key);
        let web = || Key::new("production", "web");
        assert_eq!(path("pods", web()), "/registry/pods/production/web");
        assert_eq!(
            path("deployments.apps", web()),
            "/registry/deployments/production/web"
        );
        assert_eq!(
            path("services", web()),
            "/registry/services/specs/production/web"
        );
        assert_eq!(path("nodes", Key::new("", "n1")), "/registry/minions/n1");
    }

    #[test]
    fn a_key_of_something_else_is_passed_over() {
        for path in [
            "/registry/pods",
            "/registry/pods/a",
            "/registry/x/y/z",
            "/registry/minions/a/b",
            "/other",
        ] {
            assert_eq!(parse(path), None, "{path}");
        }
    }
}
