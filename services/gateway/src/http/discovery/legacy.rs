//! Legacy discovery: one document per group and version. `kubectl auth can-i`, `kubectl drain` and other clients still
//! use it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use setpoint_codec::Kind;
use setpoint_codec::rest::{subresource_kind, subresource_verbs};
use setpoint_proto::meta::{ApiGroup, ApiGroupList, ApiResourceList, ApiVersions};
use setpoint_proto::{ApiError, Reason};
use sha2::{Digest as _, Sha256};

use super::super::accept::Media;
use super::super::encoding;
use super::super::ordered::{self, Order};
use super::super::response::ApiResponse;
use super::catalog::{Catalog, Version};
use super::verbs;

/// The kind of a document, and its protobuf encoding.
#[derive(Clone, Copy)]
pub(super) struct Encoded<'a> {
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
    pub(super) protobuf: fn(&Value) -> serde_json::Result<Vec<u8>>,
    pub(super) order: &'static Order,
}

impl<'a> Encoded<'a> {
    const fn v1<T: prost::Message + DeserializeOwned>(
        kind: &'a str,
        order: &'static Order,
    ) -> Self {
        Self {
            api_version: "v1",
            kind,
            protobuf: protobuf::<T>,
            order,
        }
    }
}

pub(super) const VERSIONS: Encoded =
    Encoded::v1::<ApiVersions>("APIVersions", &ordered::API_VERSIONS);
pub(super) const GROUPS: Encoded =
    Encoded::v1::<ApiGroupList>("APIGroupList", &ordered::API_GROUP_LIST);
pub(super) const GROUP: Encoded = Encoded::v1::<ApiGroup>("APIGroup", &ordered::API_GROUP);
pub(super) const RESOURCES: Encoded =
    Encoded::v1::<ApiResourceList>("APIResourceList", &ordered::API_RESOURCE_LIST);

/// Encodes a document as the message `T`.
pub(super) fn protobuf<T: prost::Message + DeserializeOwned>(
    document: &Value,
) -> serde_json::Result<Vec<u8>> {
    T::deserialize(document).map(|message| message.encode_to_vec())
}

/// Encodes a document.
pub(super) fn encode(
    document: &Value,
    of: Encoded,
    media: Media,
    pretty: bool,
) -> Result<ApiResponse, ApiError> {
    if media != Media::Protobuf {
        return encoding::text(ordered::json(document, of.order), media, pretty);
    }
    let raw = (of.protobuf)(document)
        .map_err(|error| ApiError::new(Reason::InternalError, error.to_string()))?;
    Ok(encoding::protobuf(of.api_version, of.kind, &raw))
}

/// Returns the document at `/api`: the versions of the core group, and the addresses of this server.
pub(super) fn versions(catalog: &Catalog, addresses: Value) -> Value {
    let core = catalog.group("").unwrap_or_default().iter();
    json!({
        "kind": "APIVersions",
        "versions": core.map(|one| one.version.as_str()).collect::<Value>(),
        "serverAddressByClientCIDRs": addresses,
    })
}

/// Returns the document at `/apis`: every group except the core group.
pub(super) fn groups(catalog: &Catalog) -> Value {
    let groups = catalog.groups().filter_map(group_entry);
    let groups = groups.filter(|group| group["name"] != "");
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups.collect::<Value>() })
}

/// Returns the document at `/apis/<group>`.
pub(super) fn group(versions: &[Version]) -> Option<Value> {
    let mut group = group_entry(versions)?;
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    Some(group)
}

/// Returns the entry of a group. The first of its versions is the preferred one.
fn group_entry(versions: &[Version]) -> Option<Value> {
    let name = versions.first()?.group.as_str();
    let versions = versions
        .iter()
        .map(|one| json!({ "groupVersion": one.group_version(), "version": one.version }));
    let versions: Vec<_> = versions.collect();
    Some(json!({ "name": name, "preferredVersion": versions.first(), "versions": versions }))
}

/// Returns the entries of a kind and its subresources.
pub(super) fn resources(kind: &'static Kind) -> Vec<Value> {
    let definition = kind.definition();
    let subresources = definition.subresources.iter();
    let mut all = vec![resource(kind)];
    all.extend(subresources.map(|name| subresource(kind, name)));
    all
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
