//! The keys of the store: those of objects as Kubernetes lays them out, and those of Setpoint under `/setpoint/`.

use std::collections::HashMap;
use std::sync::LazyLock;

use setpoint_codec::{CustomKinds, Kind, kind_of, kinds};
use setpoint_model::{Fence, Key};
use setpoint_proto::core::Secret;

/// The prefix of the keys of all objects.
pub const ROOT: &str = "/registry/";

/// The key to which the transaction of a deletion writes its cause, for watchers, and its identity. Each deletion
/// overwrites it; the history has those before. Gateways of other versions read it, too, so its name is kept.
pub const TOMBSTONE: &str = "/setpoint/farewell";

/// The key that is written with each allocation of Service addresses or ports, so that concurrent allocations
/// conflict.
pub const ALLOTTED: &str = "/setpoint/allotted";

/// The key of the private key that signs tokens of ServiceAccounts.
pub const TOKEN_KEY: &str = "/setpoint/token-key";

/// The key of the list of the private keys that sign or have signed such tokens, the newest first, in JSON.
pub const TOKEN_KEYS: &str = "/setpoint/token-keys";

/// The key of the highest term of any deleted Lease. Its value never decreases.
pub const PAST_TERM: &str = "/setpoint/past-term";

/// The key of the number by which revisions are greater than etcd's, which a restore writes.
pub const REVISION_BUMP: &str = "/setpoint/revision-bump";

/// The prefix of all keys that are not of objects.
pub const OWN: &str = "/setpoint/";

/// The prefix of the keys of the terms of leases.
pub const TERMS: &str = "/setpoint/terms/";

/// Returns the key of the current term of a lease. It exists as long as the Lease does.
///
/// 2026-11: we chose a key outside of `/registry/` over the Lease's own, because a renewal must not conflict with the
/// writes that its term fences, and Kubernetes' tools should find nothing there that they do not know. Wrong if a
/// backup takes `/registry/` alone: the terms would begin anew.
pub fn term(lease: &Key) -> String {
    format!("{TERMS}{}/{}", lease.namespace, lease.name)
}

/// Returns the key of the current term of a fence's lease.
pub fn fence(fence: &Fence) -> String {
    term(&Key::new(&fence.namespace, &fence.lease))
}

/// Returns the key of an object.
pub fn object(kind: &Kind, key: &Key) -> String {
    format!("{ROOT}{}/{key}", kind.stored_as)
}

/// Returns the prefix of the keys of a kind's objects, in one namespace or, if that is empty, in all.
pub fn prefix(kind: &Kind, namespace: &str) -> String {
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{ROOT}{}/{namespace}{slash}", kind.stored_as)
}

/// The kinds that are stored and are not custom, by the folder of each.
static FOLDERS: LazyLock<HashMap<&str, &Kind>> = LazyLock::new(|| {
    kinds()
        .iter()
        .map(|kind| (kind.stored_as.as_str(), kind))
        .collect()
});

/// Returns the group and the resource to which the value at a key belongs; `None` if none does, or it is not known. The
/// keys that sign tokens belong to the Secrets: who reads one of them can make a token that reads all Secrets.
pub fn resource(path: &str) -> Option<(&str, &str)> {
    let Some(path) = path.strip_prefix(ROOT) else {
        let signs = [TOKEN_KEY, TOKEN_KEYS].contains(&path);
        let secrets = kind_of::<Secret>();
        return signs.then_some((&secrets.group, &secrets.plural));
    };
    let (first, rest) = path.split_once('/')?;
    let second = rest.split('/').next().unwrap_or_default();
    let both = path.get(..first.len() + 1 + second.len()).unwrap_or(path);
    let kind = FOLDERS.get(first).or_else(|| FOLDERS.get(both));
    match kind {
        Some(kind) => Some((&kind.group, &kind.plural)),
        // The folder of a custom resource is its group, which has a dot, and its plural.
        None => first.contains('.').then_some((first, second)),
    }
}

/// Returns the kind and name of the object at a key; `None` if it is not of an object of a known kind.
pub fn parse(custom: &CustomKinds, path: &str) -> Option<(&'static Kind, Key)> {
    let path = path.strip_prefix(ROOT)?;
    let mut slashes = path.match_indices('/').map(|(at, _)| at).take(2);
    let kind_of = |folder| {
        let built_in = FOLDERS.get(folder).copied();
        built_in.or_else(|| custom.by_folder(folder)?.stored())
    };
    let (kind, rest) = slashes.find_map(|at| Some((kind_of(&path[..at])?, &path[at + 1..])))?;
    let (namespace, name) = match kind.namespaced {
        true => rest.split_once('/')?,
        false => ("", rest),
    };
    (!name.is_empty() && !name.contains('/')).then(|| (kind, Key::new(namespace, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_an_object_of_any_kind_parses_to_its_kind_and_name() {
        let custom = CustomKinds::default();
        for kind in kinds().iter() {
            let namespace = if kind.namespaced { "production" } else { "" };
            let key = Key::new(namespace, "web");
            let path = object(kind, &key);
            assert!(path.starts_with(&prefix(kind, namespace)), "{path}");
            assert_eq!(parse(&custom, &path), Some((kind, key)), "{path}");
        }
    }

    #[test]
    fn the_resource_of_each_key_is_known() {
        for kind in kinds().iter() {
            let namespace = if kind.namespaced { "production" } else { "" };
            let path = object(kind, &Key::new(namespace, "web"));
            let named = (kind.group.as_str(), kind.plural.as_str());
            assert_eq!(resource(&path), Some(named), "{path}");
        }
        for (path, named) in [
            (
                "/registry/bears.example/pandas/a/b",
                Some(("bears.example", "pandas")),
            ),
            (TOKEN_KEY, Some(("", "secrets"))),
            (TOKEN_KEYS, Some(("", "secrets"))),
            (TOMBSTONE, None),
            ("/setpoint/terms/a/b", None),
            ("/registry/x/y", None),
            ("/registry/", None),
        ] {
            assert_eq!(resource(path), named, "{path}");
        }
    }

    #[test]
    fn objects_have_the_keys_that_kubernetes_gives_them() {
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
    fn a_path_that_is_not_of_an_object_is_not_parsed() {
        for path in [
            "/registry/pods",
            "/registry/pods/a",
            "/registry/x/y/z",
            "/registry/minions/a/b",
            "/other",
        ] {
            assert_eq!(parse(&CustomKinds::default(), path), None, "{path}");
        }
    }
}
