//! Queries of URLs. The first byte selects the request, the rest is the query.

use http::{Method, Uri};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use crate::dry;
use crate::gateway::json_request;
use crate::stretch::stretch;

/// Characters that must be escaped in URLs.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'`');

const REQUESTS: &[(Method, &str, &str)] = &[
    (Method::GET, "/api/v1/pods", ""),
    (Method::GET, "/api/v1/namespaces/default/pods", ""),
    (Method::GET, "/api/v1/namespaces/default/pods/web", ""),
    (Method::GET, "/api/v1/namespaces/default/pods/web/log", ""),
    (Method::GET, "/apis/apps/v1/deployments", ""),
    (
        Method::GET,
        "/apis/apps/v1/namespaces/default/deployments/web/scale",
        "",
    ),
    (Method::GET, "/api/v1/nodes", ""),
    (Method::GET, "/api/v1/events", ""),
    (Method::DELETE, "/api/v1/namespaces/default/pods/web", ""),
    (Method::DELETE, "/api/v1/namespaces/default/pods", ""),
    (
        Method::POST,
        "/api/v1/namespaces/default/configmaps",
        r#"{"metadata":{"name":"b"},"x":1}"#,
    ),
    (
        Method::PUT,
        "/api/v1/namespaces/default/configmaps/web",
        r#"{"metadata":{"name":"web"}}"#,
    ),
    (Method::GET, "/openapi/v3", ""),
    (Method::GET, "/version", ""),
];

/// Sends the request; a write as a dry run.
pub fn run(input: &[u8]) {
    let Some((first, query)) = input.split_first() else {
        return;
    };
    let (method, path, body) = &REQUESTS[usize::from(*first) % REQUESTS.len()];
    let query = percent_encode(&stretch(query), ESCAPED).to_string();
    let dry = if *method == Method::GET {
        ""
    } else {
        "&dryRun=All"
    };
    let path = format!("{path}?{query}{dry}");
    // The server rejects longer URLs.
    if path.parse::<Uri>().is_ok() {
        dry::send(json_request(method.clone(), &path, (*body).to_owned()));
    }
}
