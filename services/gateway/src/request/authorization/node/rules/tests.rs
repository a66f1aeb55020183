use http::Method;

use super::*;
use crate::request::RequestInfo;

fn rule(method: &str, uri: &str) -> Rule {
    let method: Method = method.parse().unwrap();
    let kinds = setpoint_codec::KindTable::default();
    let info = RequestInfo::of(&kinds, &method, &uri.parse().unwrap());
    of("a", &info.attributes)
}

/// The rule of each request, by a word: allowed, role, the relation that it needs, or the start of the reason.
#[test]
fn a_node_may_do_what_upstreams_may() {
    let slices = "/apis/resource.k8s.io/v1/resourceslices";
    let csi = "/apis/storage.k8s.io/v1/csinodes";
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let cases = [
        // Secrets and ConfigMaps: reads by name, in whatever form.
        ("GET", "/api/v1/namespaces/s/secrets/x", "Secret"),
        (
            "GET",
            "/api/v1/namespaces/s/secrets?fieldSelector=metadata.name%3Dx",
            "Secret",
        ),
        (
            "GET",
            "/api/v1/namespaces/s/secrets?watch=1&fieldSelector=metadata.name%3Dx",
            "Secret",
        ),
        ("GET", "/api/v1/namespaces/s/secrets", "No Object name"),
        (
            "GET",
            "/api/v1/secrets?fieldSelector=metadata.name%3Dx",
            "can only read namespaced",
        ),
        ("PUT", "/api/v1/namespaces/s/secrets/x", "can only read"),
        (
            "DELETE",
            "/api/v1/namespaces/s/secrets?fieldSelector=metadata.name%3Dx",
            "can only read",
        ),
        ("GET", "/api/v1/namespaces/s/configmaps/x", "ConfigMap"),
        ("GET", "/api/v1/namespaces/s/configmaps", "No Object name"),
        // Volumes.
        (
            "GET",
            "/api/v1/namespaces/s/persistentvolumeclaims/x",
            "Claim",
        ),
        (
            "GET",
            "/api/v1/namespaces/s/persistentvolumeclaims",
            "can only get individual",
        ),
        (
            "PUT",
            "/api/v1/namespaces/s/persistentvolumeclaims/x",
            "can only get individual",
        ),
        (
            "PATCH",
            "/api/v1/namespaces/s/persistentvolumeclaims/x/status",
            "Claim",
        ),
        (
            "GET",
            "/api/v1/namespaces/s/persistentvolumeclaims/x/status",
            "can only get/update/patch",
        ),
        ("GET", "/api/v1/persistentvolumes/x", "Volume"),
        (
            "GET",
            "/api/v1/persistentvolumes",
            "can only get individual",
        ),
        (
            "GET",
            "/api/v1/persistentvolumes?watch=1&labelSelector=setpoint.dev%2Fnode%3Da",
            "allowed",
        ),
        (
            "GET",
            "/api/v1/persistentvolumes?labelSelector=setpoint.dev%2Fnode%3Db",
            "can only get individual",
        ),
        ("PATCH", "/api/v1/persistentvolumes/x", "Directory"),
        (
            "PUT",
            "/api/v1/persistentvolumes/x/status",
            "can only get individual",
        ),
        (
            "DELETE",
            "/api/v1/persistentvolumes?labelSelector=setpoint.dev%2Fnode%3Da",
            "can only get individual",
        ),
        (
            "GET",
            "/apis/storage.k8s.io/v1/volumeattachments/x",
            "Attachment",
        ),
        (
            "GET",
            "/apis/storage.k8s.io/v1/volumeattachments/x/status",
            "cannot get subresource",
        ),
        (
            "GET",
            "/apis/resource.k8s.io/v1/namespaces/s/resourceclaims/x",
            "ResourceClaim",
        ),
        (
            "GET",
            "/apis/resource.k8s.io/v1/resourceclaims",
            "can only get individual",
        ),
        // ServiceAccounts and their tokens.
        (
            "GET",
            "/api/v1/namespaces/s/serviceaccounts/x",
            "ServiceAccount",
        ),
        (
            "GET",
            "/api/v1/namespaces/s/serviceaccounts",
            "can only create tokens",
        ),
        (
            "POST",
            "/api/v1/namespaces/s/serviceaccounts/x/token",
            "ServiceAccount",
        ),
        (
            "POST",
            "/api/v1/namespaces/s/serviceaccounts",
            "can only create tokens",
        ),
        (
            "PUT",
            "/api/v1/namespaces/s/serviceaccounts/x",
            "can only create tokens",
        ),
        // Leases and CSINodes of its own name.
        ("POST", leases, "allowed"),
        ("PUT", &format!("{leases}/a"), "allowed"),
        ("PUT", &format!("{leases}/b"), "can only access node lease"),
        ("GET", leases, "can only get, create"),
        (
            "GET",
            "/apis/coordination.k8s.io/v1/namespaces/s/leases/a",
            "can only access leases in",
        ),
        ("POST", csi, "allowed"),
        ("DELETE", &format!("{csi}/a"), "allowed"),
        ("GET", &format!("{csi}/b"), "can only access CSINode"),
        ("GET", csi, "can only get, create"),
        // ResourceSlices.
        ("POST", slices, "allowed"),
        ("GET", &format!("{slices}/x"), "ResourceSlice"),
        ("GET", slices, "can only list/watch/deletecollection"),
        (
            "GET",
            &format!("{slices}?fieldSelector=spec.nodeName%3Da"),
            "allowed",
        ),
        (
            "DELETE",
            &format!("{slices}?fieldSelector=spec.nodeName%3Da"),
            "allowed",
        ),
        (
            "DELETE",
            &format!("{slices}?fieldSelector=spec.nodeName%3Db"),
            "can only list/watch/deletecollection",
        ),
        // Nodes.
        ("POST", "/api/v1/nodes", "allowed"),
        ("GET", "/api/v1/nodes/a", "allowed"),
        (
            "GET",
            "/api/v1/nodes?watch=1&fieldSelector=metadata.name%3Da",
            "allowed",
        ),
        ("GET", "/api/v1/nodes/b", "node 'a' cannot read 'b'"),
        ("GET", "/api/v1/nodes", "node 'a' cannot read all nodes"),
        ("PATCH", "/api/v1/nodes/b/status", "allowed"),
        ("DELETE", "/api/v1/nodes/a", ""),
        ("GET", "/api/v1/nodes/a/proxy/x", ""),
        // Pods.
        ("GET", "/api/v1/namespaces/s/pods/x", "Pod"),
        (
            "GET",
            "/api/v1/pods?fieldSelector=spec.nodeName%3Da",
            "allowed",
        ),
        (
            "GET",
            "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Da,status.phase!%3DFailed",
            "allowed",
        ),
        (
            "GET",
            "/api/v1/pods?fieldSelector=spec.nodeName%3Db",
            "can only list/watch pods",
        ),
        (
            "GET",
            "/api/v1/pods?fieldSelector=spec.nodeName!%3Da",
            "can only list/watch pods",
        ),
        (
            "GET",
            "/api/v1/watch/pods?fieldSelector=spec.nodeName%3Da",
            "can only list/watch pods",
        ),
        ("GET", "/api/v1/pods", "can only list/watch pods"),
        (
            "GET",
            "/api/v1/namespaces/s/pods?fieldSelector=metadata.name%3Dx",
            "Pod",
        ),
        ("POST", "/api/v1/namespaces/s/pods", "allowed"),
        ("DELETE", "/api/v1/namespaces/s/pods/x", "allowed"),
        ("PUT", "/api/v1/namespaces/s/pods/x", ""),
        ("PATCH", "/api/v1/namespaces/s/pods/x/status", "allowed"),
        ("PUT", "/api/v1/namespaces/s/pods/x/ephemeralcontainers", ""),
        ("POST", "/api/v1/namespaces/s/pods/x/eviction", "allowed"),
        ("POST", "/api/v1/namespaces/s/pods/x/binding", ""),
        ("POST", "/api/v1/namespaces/s/pods/x/exec", ""),
        // Others by the role.
        ("POST", "/api/v1/namespaces/s/events", "role"),
        ("GET", "/api/v1/services", "role"),
        ("GET", "/metrics", "role"),
    ];
    for (method, uri, expected) in cases {
        let found = match rule(method, uri) {
            Rule::Allowed => "allowed".to_owned(),
            Rule::OfRole => "role".to_owned(),
            Rule::Related(kind) => format!("{kind:?}"),
            Rule::Denied(reason) => reason.into_owned(),
        };
        let is_as_expected = match expected {
            "" => found.is_empty(),
            _ => found.starts_with(expected),
        };
        assert!(
            is_as_expected,
            "{method} {uri}: {found:?} is not {expected:?}"
        );
    }
}

#[test]
fn a_node_without_a_name_may_do_nothing() {
    let node = Attributes::of_path("get", "/version");
    assert_eq!(of("", &node), Rule::Denied("".into()));
    assert_eq!(of("a", &node), Rule::OfRole);
}
