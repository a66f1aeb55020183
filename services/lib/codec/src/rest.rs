//! The resources of a kind over HTTP: their paths, verbs and media types.

use crate::{Kind, kinds};

/// A patch as operations on JSON (RFC 6902).
pub const JSON_PATCH: &str = "application/json-patch+json";
/// A patch as a partial object (RFC 7386).
pub const MERGE_PATCH: &str = "application/merge-patch+json";
/// A patch as a partial object whose lists are merged by keys.
pub const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
/// A configuration for server-side apply.
pub const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// Returns the path of a group and version.
pub fn path_of(group: &str, version: &str) -> String {
    match group {
        "" => format!("/api/{version}"),
        _ => format!("/apis/{group}/{version}"),
    }
}

/// Returns whether a subresource connects the client with a container, a Pod, a Service or a node.
pub fn is_connect(subresource: &str) -> bool {
    matches!(subresource, "exec" | "attach" | "portforward" | "proxy")
}

/// Returns the kind in which a subresource is read and written, by default that of its object.
pub fn subresource_kind(kind: &'static Kind, subresource: &str) -> &'static Kind {
    let own = match subresource {
        "scale" => kinds().by_kind("autoscaling/v1", "Scale"),
        "binding" => kinds().by_kind("v1", "Binding"),
        "eviction" => kinds().by_kind("policy/v1", "Eviction"),
        "token" => kinds().by_kind("authentication.k8s.io/v1", "TokenRequest"),
        "exec" => kinds().by_kind("v1", "PodExecOptions"),
        "attach" => kinds().by_kind("v1", "PodAttachOptions"),
        "portforward" => kinds().by_kind("v1", "PodPortForwardOptions"),
        "proxy" => kinds().by_kind("v1", &format!("{}ProxyOptions", kind.kind)),
        _ => None,
    };
    own.unwrap_or(kind)
}

/// Returns the verbs of a subresource.
pub fn subresource_verbs(subresource: &str) -> &'static [&'static str] {
    match subresource {
        "binding" | "eviction" | "token" => &["create"],
        "finalize" => &["update"],
        "log" => &["get"],
        "exec" | "attach" | "portforward" => &["create", "get"],
        "proxy" => &["create", "delete", "get", "patch", "update"],
        _ => &["get", "patch", "update"],
    }
}

/// Returns the media types of whole objects; custom ones have no protobuf encoding.
pub fn media_types(is_custom: bool) -> &'static [&'static str] {
    const TYPES: [&str; 3] = [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
    ];
    if is_custom { &TYPES[..2] } else { &TYPES }
}

/// Returns the media types of patches. Custom kinds have no rules for a strategic merge.
pub fn patch_types(is_custom: bool) -> &'static [&'static str] {
    match is_custom {
        true => &[JSON_PATCH, MERGE_PATCH, APPLY_PATCH],
        false => &[JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH],
    }
}
