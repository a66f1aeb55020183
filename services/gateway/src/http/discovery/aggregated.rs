//! Aggregated discovery: all groups with their kinds in one document.

use serde_json::{Value, json};
use setpoint_codec::Kind;
use setpoint_codec::rest::{subresource_kind, subresource_verbs};
use setpoint_proto::ApiError;
use setpoint_proto::apidiscovery::ApiGroupDiscoveryList;

use super::super::accept::Media;
use super::super::ordered;
use super::super::response::ApiResponse;
use super::catalog::{Catalog, Version};
use super::legacy::{self, Encoded};
use super::verbs;

const LIST: &str = "APIGroupDiscoveryList";
const GROUP: &str = "apidiscovery.k8s.io";

/// Returns an `APIGroupDiscoveryList` of the given version with the wanted groups.
pub(super) fn groups(catalog: &Catalog, wanted: fn(&str) -> bool, version: &str) -> Value {
    let groups = catalog.groups().filter_map(group);
    let groups = groups.filter(|(name, _)| wanted(name));
    json!({
        "kind": LIST,
        "apiVersion": format!("{GROUP}/{version}"),
        "metadata": {},
        "items": groups.map(|(_, entry)| entry).collect::<Value>(),
    })
}

/// Encodes the document of the given version. Clients distinguish it from the legacy document by the parameters of its
/// content type.
pub(super) fn encode(
    document: &Value,
    version: &str,
    media: Media,
    pretty: bool,
) -> Result<ApiResponse, ApiError> {
    let of = Encoded {
        api_version: &format!("{GROUP}/{version}"),
        kind: LIST,
        protobuf: legacy::protobuf::<ApiGroupDiscoveryList>,
        order: &ordered::DISCOVERY,
    };
    let response = legacy::encode(document, of, media, pretty)?;
    let content_type = format!("{};g={GROUP};v={version};as={LIST}", media.name());
    Ok(response.with_content_type(content_type))
}

/// Returns the name of a group, and its entry.
fn group(versions: &[Version]) -> Option<(&str, Value)> {
    let name = versions.first()?.group.as_str();
    let metadata = match name {
        "" => json!({}),
        name => json!({ "name": name }),
    };
    let versions: Value = versions.iter().map(Version::aggregated).collect();
    Some((name, json!({ "metadata": metadata, "versions": versions })))
}

/// Returns the entry of a kind.
pub(super) fn resource(kind: &'static Kind) -> Value {
    let definition = kind.definition();
    let mut resource = json!({
        "resource": kind.plural,
        "singularResource": definition.singular,
        "responseKind": response_kind(kind),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "verbs": verbs(kind),
    });
    if !definition.short_names.is_empty() {
        resource["shortNames"] = definition.short_names.iter().cloned().collect();
    }
    if !definition.categories.is_empty() {
        resource["categories"] = definition.categories.iter().cloned().collect();
    }
    if !definition.subresources.is_empty() {
        let names = definition.subresources.iter();
        resource["subresources"] = names.map(|name| subresource(kind, name)).collect();
    }
    resource
}

fn subresource(kind: &'static Kind, name: &str) -> Value {
    json!({
        "subresource": name,
        "responseKind": response_kind(subresource_kind(kind, name)),
        "verbs": subresource_verbs(name),
    })
}

fn response_kind(kind: &Kind) -> Value {
    json!({ "group": kind.group, "version": kind.version, "kind": kind.kind })
}
