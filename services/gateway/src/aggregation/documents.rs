//! The documents of a server about one version of a group: its resources, the place of its OpenAPI document of v3, and
//! that of v2.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH, USER_AGENT};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use serde::Deserialize as _;
use serde_json::{Value, json};
use setpoint_proto::apidiscovery::ApiResourceDiscovery;
use tokio::time::timeout;

use super::front_proxy::Certificate;
use super::{Gateway, Remote, Swagger, set_user, system_user};
use crate::outbound::cause;

/// The time in which a document must be there.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest size of a document in bytes.
const MAX_SIZE: usize = 4 << 20;
pub(super) const JSON: &str = "application/json";
/// The media types of aggregated discovery.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
const DISCOVERY_GROUP: &str = "g=apidiscovery.k8s.io";

/// The discovery document of a server for a version of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Documents {
    /// The resources, as in aggregated discovery.
    pub(crate) resources: Vec<Value>,
    /// Whether the server has answered when it was asked last.
    pub(crate) is_current: bool,
    /// The relative URL of the OpenAPI document of v3, if there is one.
    pub(crate) openapi: Option<String>,
    /// The OpenAPI document of v2.
    pub(crate) swagger: Swagger,
    etag: Option<String>,
}

impl Documents {
    /// Returns the documents as those of a server that may have others by now.
    fn outdated(&self) -> Self {
        Self {
            is_current: false,
            etag: None,
            ..self.clone()
        }
    }
}

impl Remote {
    /// Fetches the documents. Those of before stay if the server does not answer.
    pub(crate) async fn fetch_documents(&self, gateway: &dyn Gateway) {
        let before = self.server.documents();
        let certificate = gateway.front_proxy().certificate(gateway).await;
        let failed = |why: String| {
            tracing::debug!(name = self.name, why, "fetching discovery failed");
            before.outdated()
        };
        let documents = match certificate {
            Err(error) => failed(error.message),
            Ok(certificate) => {
                let (discovery, openapi, swagger) = tokio::join!(
                    self.discovery(&certificate, &before),
                    self.openapi(&certificate),
                    self.swagger(&certificate, &before.swagger),
                );
                let fetched = discovery.map(|discovery| Documents {
                    // Not all servers have OpenAPI of v3.
                    openapi: openapi.unwrap_or_default(),
                    ..discovery
                });
                Documents {
                    swagger,
                    ..fetched.unwrap_or_else(failed)
                }
            }
        };
        self.server.set_documents(documents);
    }

    /// Notes that the documents may be outdated.
    pub(crate) fn forget_freshness(&self) {
        let documents = self.server.documents();
        if documents.is_current {
            self.server.set_documents(documents.outdated());
        }
    }

    /// Fetches aggregated discovery or, from a server without it, the list of resources.
    async fn discovery(
        &self,
        certificate: &Arc<Certificate>,
        before: &Documents,
    ) -> Result<Documents, String> {
        let etag = before.etag.as_deref();
        let (status, headers, body) = self.get(certificate, "/apis", AGGREGATED, etag).await?;
        if status == StatusCode::NOT_MODIFIED && before.etag.is_some() {
            return Ok(before.clone());
        }
        let of = headers.get(CONTENT_TYPE).and_then(|of| of.to_str().ok());
        let is_aggregated = of.is_some_and(|of| of.contains(DISCOVERY_GROUP));
        if status.is_success() && is_aggregated {
            let etag = headers.get(ETAG).and_then(|etag| etag.to_str().ok());
            return Ok(Documents {
                resources: valid(resources_of(&parse(&body)?, &self.group, &self.version)),
                is_current: true,
                etag: etag.map(str::to_owned),
                ..Documents::default()
            });
        }
        let path = self.path();
        let (status, _, body) = self.get(certificate, &path, JSON, None).await?;
        if !status.is_success() {
            return Err(format!("failed to download discovery for {path}: {status}"));
        }
        let list = parse(&body)?;
        let resources = list["resources"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(Documents {
            resources: valid(aggregate(resources, &self.group, &self.version)),
            is_current: true,
            ..Documents::default()
        })
    }

    /// Fetches the URL of the OpenAPI document of v3, which the index of the server has.
    async fn openapi(&self, certificate: &Arc<Certificate>) -> Result<Option<String>, String> {
        let (status, _, body) = self.get(certificate, "/openapi/v3", JSON, None).await?;
        if !status.is_success() {
            return Ok(None);
        }
        let path = self.path();
        let entry = &parse(&body)?["paths"][path.trim_start_matches('/')];
        let url = entry["serverRelativeURL"].as_str().map(str::to_owned);
        // Any other place is not forwarded to this server.
        let document = format!("/openapi/v3{path}");
        Ok(url.filter(|url| url.split('?').next() == Some(document.as_str())))
    }

    /// Fetches a document of the server.
    pub(super) async fn get(
        &self,
        certificate: &Arc<Certificate>,
        path: &str,
        accept: &str,
        etag: Option<&str>,
    ) -> Result<(StatusCode, HeaderMap, Bytes), String> {
        let mut request = Request::get(self.server.url(path))
            .header(ACCEPT, accept)
            .header(USER_AGENT, "setpoint-gateway");
        if let Some(etag) = etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        let request = request.body(Body::empty());
        let mut request = request.map_err(|error| error.to_string())?;
        set_user(request.headers_mut(), &system_user());
        let fetched = async {
            let response = self.server.send(certificate.clone(), request).await;
            let (head, body) = response.map_err(|error| error.to_string())?.into_parts();
            let body = Limited::new(body, MAX_SIZE).collect().await;
            let body = body.map_err(|error| cause(&*error))?.to_bytes();
            Ok((head.status, head.headers, body))
        };
        let fetched = timeout(TIMEOUT, fetched).await;
        fetched.unwrap_or_else(|_| Err("request timed out".to_owned()))
    }
}

fn parse(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

/// Returns the resources that are valid entries of aggregated discovery, so that one server's documents do not make the
/// document of all groups unreadable.
fn valid(mut resources: Vec<Value>) -> Vec<Value> {
    resources.retain(|resource| ApiResourceDiscovery::deserialize(resource).is_ok());
    resources
}

/// Returns the resources of a version in a document of aggregated discovery.
fn resources_of(document: &Value, group: &str, version: &str) -> Vec<Value> {
    let find = |list: &Value, is_it: &dyn Fn(&Value) -> bool| {
        let mut items = list.as_array().into_iter().flatten();
        items.find(|item| is_it(item)).cloned()
    };
    let group = find(&document["items"], &|item| {
        item["metadata"]["name"] == group
    });
    let versions = group.unwrap_or_default()["versions"].take();
    let version = find(&versions, &|item| item["version"] == version);
    match version.unwrap_or_default()["resources"].take() {
        Value::Array(resources) => resources,
        _ => Vec::new(),
    }
}

/// Converts resources of a list to those of aggregated discovery, as upstream does: a subresource without its resource
/// gets one without verbs.
pub(crate) fn aggregate(resources: &[Value], group: &str, version: &str) -> Vec<Value> {
    let mut converted: Vec<Value> = Vec::new();
    let name = |resource: &Value| resource["name"].as_str().unwrap_or_default().to_owned();
    let tops = resources.iter().filter(|one| !name(one).contains('/'));
    converted.extend(tops.map(|one| top(one, group, version)));
    let mut places = HashMap::new();
    for (place, one) in converted.iter().enumerate() {
        let name = one["resource"].as_str().unwrap_or_default().to_owned();
        places.entry(name).or_insert(place);
    }
    for resource in resources {
        let name = name(resource);
        let Some((parent, part)) = name.split_once('/') else {
            continue;
        };
        let place = *places.entry(parent.to_owned()).or_insert_with(|| {
            converted.push(json!({
                "resource": parent,
                "responseKind": { "group": "", "version": "", "kind": "" },
                "scope": scope(resource),
                "singularResource": "",
                "verbs": [],
            }));
            converted.len() - 1
        });
        let part = json!({
            "subresource": part,
            "responseKind": response_kind(resource, group, version),
            "verbs": resource["verbs"],
        });
        match converted[place]["subresources"].as_array_mut() {
            Some(all) => all.push(part),
            None => converted[place]["subresources"] = json!([part]),
        }
    }
    converted
}

fn top(resource: &Value, group: &str, version: &str) -> Value {
    let mut converted = json!({
        "resource": resource["name"],
        "responseKind": response_kind(resource, group, version),
        "scope": scope(resource),
        "singularResource": resource["singularName"].as_str().unwrap_or_default(),
        "verbs": resource["verbs"],
    });
    for field in ["shortNames", "categories"] {
        if resource[field].is_array() {
            converted[field] = resource[field].clone();
        }
    }
    converted
}

fn scope(resource: &Value) -> &'static str {
    match resource["namespaced"].as_bool() {
        Some(true) => "Namespaced",
        _ => "Cluster",
    }
}

/// Returns the kind of the responses. A resource of a list that names no group has that of the list.
fn response_kind(resource: &Value, group: &str, version: &str) -> Value {
    let own = |field: &str| resource[field].as_str().filter(|own| !own.is_empty());
    json!({
        "group": own("group").unwrap_or(group),
        "version": own("version").unwrap_or(version),
        "kind": own("kind").unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_the_wrong_type_is_left_out() {
        let good = json!({ "resource": "flunders", "scope": "Namespaced", "verbs": ["get"] });
        let bad = json!({ "resource": "flunders", "verbs": { "get": true } });
        assert_eq!(valid(vec![bad, good.clone()]), [good]);
    }

    #[test]
    fn a_list_of_resources_is_converted_as_upstream_does() {
        let list = json!([
            { "name": "flunders", "singularName": "flunder", "namespaced": true, "kind": "Flunder", "verbs": ["get"], "shortNames": ["fl"] },
            { "name": "flunders/scale", "namespaced": true, "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["update"] },
            { "name": "orphans/status", "namespaced": false, "kind": "Orphan", "verbs": ["get"] },
        ]);
        let converted = aggregate(list.as_array().unwrap(), "example.com", "v1");
        let expected = json!([
            {
                "resource": "flunders", "singularResource": "flunder", "scope": "Namespaced", "verbs": ["get"],
                "shortNames": ["fl"],
                "responseKind": { "group": "example.com", "version": "v1", "kind": "Flunder" },
                "subresources": [{
                    "subresource": "scale", "verbs": ["update"],
                    "responseKind": { "group": "autoscaling", "version": "v1", "kind": "Scale" },
                }],
            },
            {
                "resource": "orphans", "singularResource": "", "scope": "Cluster", "verbs": [],
                "responseKind": { "group": "", "version": "", "kind": "" },
                "subresources": [{
                    "subresource": "status", "verbs": ["get"],
                    "responseKind": { "group": "example.com", "version": "v1", "kind": "Orphan" },
                }],
            },
        ]);
        assert_eq!(Value::from(converted), expected);
    }

    #[test]
    fn only_the_resources_of_the_version_are_kept() {
        let document = json!({ "items": [
            { "metadata": { "name": "other.io" }, "versions": [{ "version": "v1", "resources": [{ "resource": "a" }] }] },
            { "metadata": { "name": "example.com" }, "versions": [
                { "version": "v1", "resources": [{ "resource": "b" }] },
                { "version": "v2", "resources": [{ "resource": "c" }] },
            ] },
        ] });
        let resources = resources_of(&document, "example.com", "v2");
        assert_eq!(resources, [json!({ "resource": "c" })]);
        assert!(resources_of(&document, "example.com", "v3").is_empty());
        assert!(resources_of(&json!([]), "example.com", "v1").is_empty());
    }
}
