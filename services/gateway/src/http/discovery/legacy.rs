//! Legacy discovery: one document per group and version. `kubectl auth can-i`, `kubectl drain` and other clients still use
//! it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use setpoint_codec::Kind;
use setpoint_proto::meta::{ApiGroup, ApiGroupList, ApiResourceList, ApiVersions};
use setpoint_proto::{ApiError, Reason};
use sha2::{Digest as _, Sha256};

use super::super::accept::Media;
use super::super::encoding;
use super::super::response::ApiResponse;
use super::{
    group_versions, groups_in_order, kinds_of, server_addresses, subresource_kind,
    subresource_verbs, verbs,
};

/// The kind of a document, and its protobuf encoding.
pub(super) type Encoded = (&'static str, fn(&Value) -> serde_json::Result<Vec<u8>>);

pub(super) const VERSIONS: Encoded = ("APIVersions", protobuf::<ApiVersions>);
pub(super) const GROUPS: Encoded = ("APIGroupList", protobuf::<ApiGroupList>);
pub(super) const GROUP: Encoded = ("APIGroup", protobuf::<ApiGroup>);
pub(super) const RESOURCES: Encoded = ("APIResourceList", protobuf::<ApiResourceList>);

fn protobuf<T: prost::Message + DeserializeOwned>(document: &Value) -> serde_json::Result<Vec<u8>> {
    T::deserialize(document).map(|message| message.encode_to_vec())
}

/// Encodes a document.
pub(super) fn encode(
    document: &Value,
    (kind, protobuf): Encoded,
    media: Media,
    pretty: bool,
) -> Result<ApiResponse, ApiError> {
    if media != Media::Protobuf {
        return encoding::text(document.to_string().into(), media, pretty);
    }
    let raw = protobuf(document)
        .map_err(|error| ApiError::new(Reason::InternalError, error.to_string()))?;
    Ok(encoding::protobuf("v1", kind, &raw))
}

/// Returns the document at `/api`: the versions of the core group.
pub(super) fn versions(kinds: &[&'static Kind], headers: &HeaderMap) -> Value {
    let versions = group_versions(kinds).into_iter();
    let versions = versions.filter_map(|(group, version)| group.is_empty().then_some(version));
    json!({
        "kind": "APIVersions",
        "versions": versions.collect::<Value>(),
        "serverAddressByClientCIDRs": server_addresses(headers),
    })
}

/// Returns the document at `/apis`: every group except the core group.
pub(super) fn groups(kinds: &[&'static Kind]) -> Value {
    let groups = groups_in_order(kinds)
        .filter(|group| !group.is_empty())
        .map(|name| group_entry(kinds, name));
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups.collect::<Value>() })
}

/// Returns the document at `/apis/<group>`.
pub(super) fn group(kinds: &[&'static Kind], name: &str) -> Value {
    let mut group = group_entry(kinds, name);
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    group
}

fn group_entry(kinds: &[&'static Kind], name: &str) -> Value {
    let versions: Vec<Value> = group_versions(kinds)
        .into_iter()
        .filter(|(group, _)| *group == name)
        .map(|(group, version)| json!({ "groupVersion": format!("{group}/{version}"), "version": version }))
        .collect();
    json!({ "name": name, "preferredVersion": versions.first(), "versions": versions })
}

/// Returns the document at `/api/v1` or `/apis/<group>/<version>`: the kinds and their subresources.
pub(super) fn resources(kinds: &[&'static Kind], group: &str, version: &str) -> Value {
    let group_version = if group.is_empty() {
        version.into()
    } else {
        format!("{group}/{version}")
    };
    let resources = kinds_of(kinds, group, version).flat_map(|kind| {
        let definition = kind.definition();
        let subresources = definition.subresources.iter();
        let mut all = vec![resource(kind)];
        all.extend(subresources.map(|name| subresource(kind, name)));
        all
    });
    json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources.collect::<Value>(),
    })
}

fn resource(kind: &Kind) -> Value {
    let definition = kind.definition();
    let mut resource = json!({
        "name": kind.plural,
        "singularName": definition.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs(kind),
    });
    if kind.stored().is_stored() {
        resource["storageVersionHash"] = storage_version_hash(kind.stored()).into();
    }
    if !definition.short_names.is_empty() {
        resource["shortNames"] = definition.short_names.iter().cloned().collect();
    }
    if !definition.categories.is_empty() {
        resource["categories"] = definition.categories.iter().cloned().collect();
    }
    resource
}

/// Returns the hash of the group, version and kind in which objects are stored.
fn storage_version_hash(kind: &Kind) -> String {
    let stored = format!("{}/{}/{}", kind.group, kind.version, kind.kind);
    BASE64.encode(&Sha256::digest(stored)[..8])
}

fn subresource(kind: &'static Kind, name: &str) -> Value {
    let of = subresource_kind(kind, name);
    let mut subresource = json!({
        "name": format!("{}/{name}", kind.plural),
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": of.kind,
        "verbs": subresource_verbs(name),
    });
    if of.group != kind.group {
        subresource["group"] = of.group.as_str().into();
        subresource["version"] = of.version.as_str().into();
    }
    subresource
}
