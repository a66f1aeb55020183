//! Streams of Pods on nodes that have a kubelet, which serves them by HTTP/1.1 at the port of its node.

use axum::body::Body;
use axum::response::Response;
use futures::{StreamExt as _, TryStreamExt as _};
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use setpoint_model::version;
use setpoint_proto::core::{Node, Pod};
use setpoint_proto::setpoint::OpenContainer;
use setpoint_proto::{ApiError, Reason};
use tonic::Status;

use super::super::forwarding;
use super::ConnectRequest;
use super::log::Pieces;
use crate::agents::{AgentAddress, Protocol, Verb};
use crate::request::Query;

/// The longest text of an error of a kubelet, as upstream reads it.
const MAX_ERROR: usize = 2048;
/// The parameters of logs, which kubelets know by the same names.
const LOG: [&str; 8] = [
    "follow",
    "previous",
    "timestamps",
    "sinceSeconds",
    "sinceTime",
    "tailLines",
    "limitBytes",
    "stream",
];

/// Returns whether a kubelet runs the Pods of a node. Else it is an agent of Setpoint.
pub(super) fn runs(node: &Node) -> bool {
    let version = node.status.node_info.kubelet_version.as_str();
    !version.is_empty() && !version::is_own(version)
}

/// A path of a kubelet, with parameters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call(String);

impl Call {
    /// Reads the log of a container, as this query says.
    pub(super) fn log(pod: &Pod, container: &str, query: &Query) -> Self {
        let given = LOG
            .iter()
            .filter_map(|name| Some((*name, query.get(name)?)));
        Self::new("containerLogs", pod, &[container], given)
    }

    /// Opens the streams of a container.
    pub(super) fn container(verb: Verb, pod: &Pod, container: &str, open: &OpenContainer) -> Self {
        let streams = [
            ("input", open.stdin),
            ("output", open.stdout),
            ("error", open.stderr),
            ("tty", open.tty),
        ];
        let wanted = streams.into_iter().filter(|(_, is_wanted)| *is_wanted);
        let wanted = wanted.map(|(name, _)| (name, "1"));
        let command = open.command.iter().map(|word| ("command", word.as_str()));
        let path = match verb {
            Verb::Exec => "exec",
            Verb::Attach => "attach",
        };
        Self::new(path, pod, &[container], wanted.chain(command))
    }

    /// Forwards connections to ports.
    pub(super) fn port_forward(pod: &Pod, ports: &[u16]) -> Self {
        let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
        let ports = ports.join(",");
        let given = (!ports.is_empty()).then_some(("port", ports.as_str()));
        Self::new("portForward", pod, &[], given.into_iter())
    }

    /// Names of Pods, namespaces and containers need no encoding.
    fn new<'a>(
        path: &str,
        pod: &Pod,
        more: &[&str],
        parameters: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let pod = [pod.metadata.namespace.as_str(), &pod.metadata.name];
        let path = [&[path], &pod[..], more].concat().join("/");
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(parameters)
            .finish();
        Self(format!("/{path}?{query}"))
    }
}

/// Reads what a kubelet answers.
///
/// # Errors
/// If it cannot be reached, or its error.
pub(super) async fn read(
    request: &ConnectRequest,
    node: &Node,
    call: Call,
) -> Result<Pieces, ApiError> {
    let outgoing = (Method::GET, HeaderMap::new());
    let response = send(request, node, call, outgoing).await?;
    let pieces = accepted(response).await?.into_body().into_data_stream();
    Ok(pieces
        .map_err(|error| Status::unavailable(error.to_string()))
        .boxed())
}

/// Passes on a request to upgrade, and connects the client with what the kubelet upgrades to.
///
/// # Errors
/// Those of [`read`].
pub(super) async fn upgrade(
    request: &mut ConnectRequest,
    node: &Node,
    call: Call,
) -> Result<Response, ApiError> {
    let client = request.parts.extensions.remove::<OnUpgrade>();
    let headers = forwarding::headers(&mut request.parts);
    let outgoing = (request.parts.method.clone(), headers);
    let response = send(request, node, call, outgoing).await?;
    let response = accepted(response).await?;
    let switched = forwarding::switch(&request.streams, client, response, ());
    switched.ok_or_else(|| error("the connection cannot be upgraded"))
}

async fn send(
    request: &ConnectRequest,
    node: &Node,
    Call(uri): Call,
    (method, headers): (Method, HeaderMap),
) -> Result<http::Response<Incoming>, ApiError> {
    let kubelet = AgentAddress::of(node)?;
    let mut outgoing = Request::new(Body::empty());
    *outgoing.uri_mut() = uri
        .parse::<Uri>()
        .map_err(|error| ApiError::new(Reason::BadRequest, error.to_string()))?;
    (*outgoing.method_mut(), *outgoing.headers_mut()) = (method, headers);
    if let Ok(host) = HeaderValue::try_from(kubelet.socket().to_string()) {
        outgoing.headers_mut().insert(HOST, host);
    }
    let connection = kubelet
        .dial(request.registry.dial_policy(), Protocol::Http1)
        .await?;
    let sent = forwarding::send(&request.streams, connection, outgoing).await;
    sent.map_err(|error| kubelet.unreachable(&error.to_string()))
}

/// Returns a response that is no error, or else the error: its status, with the text of the kubelet.
async fn accepted(
    response: http::Response<Incoming>,
) -> Result<http::Response<Incoming>, ApiError> {
    let status = response.status();
    if status.is_success() || status == StatusCode::SWITCHING_PROTOCOLS {
        return Ok(response);
    }
    let text = Limited::new(response.into_body(), MAX_ERROR)
        .collect()
        .await;
    let text = text.map(|text| text.to_bytes()).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    match status {
        StatusCode::BAD_REQUEST => Err(ApiError::new(Reason::BadRequest, text)),
        StatusCode::NOT_FOUND => Err(ApiError::new(Reason::NotFound, text)),
        // It is the gateway that the kubelet does not know or allow.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(error(&format!(
            "the node's kubelet refuses the gateway: {text}"
        ))),
        _ => Err(error(&format!(
            "the node's kubelet answers {status}: {text}"
        ))),
    }
}

fn error(message: &str) -> ApiError {
    ApiError::new(Reason::InternalError, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Pod {
        let mut pod = Pod::default();
        (pod.metadata.namespace, pod.metadata.name) = ("a".into(), "web".into());
        pod
    }

    #[test]
    fn a_node_without_the_version_of_an_agent_has_a_kubelet() {
        let runs = |version: &str| {
            let mut node = Node::default();
            version.clone_into(&mut node.status.node_info.kubelet_version);
            runs(&node)
        };
        assert!(runs("v1.36.0") && runs("v1.30.1+k3s1"));
        // What has not registered yet is no kubelet.
        assert!(!runs("") && !runs(&version::git_version("0.1.0")));
    }

    /// As `streamParams` and `LogLocation` of upstream name them.
    #[test]
    fn calls_have_the_names_of_the_kubelet() {
        let open = OpenContainer {
            stdin: true,
            stdout: true,
            tty: true,
            command: vec!["sh".into(), "-c".into(), "echo a&b".into()],
            ..OpenContainer::default()
        };
        let exec = Call::container(Verb::Exec, &pod(), "main", &open);
        let expected =
            "/exec/a/web/main?input=1&output=1&tty=1&command=sh&command=-c&command=echo+a%26b";
        assert_eq!(exec.0, expected);
        let query = Query::parse("follow=true&tailLines=3&container=main&pretty=true");
        let log = Call::log(&pod(), "main", &query);
        assert_eq!(log.0, "/containerLogs/a/web/main?follow=true&tailLines=3");
        let forward = Call::port_forward(&pod(), &[80, 443]);
        assert_eq!(forward.0, "/portForward/a/web?port=80%2C443");
        assert_eq!(Call::port_forward(&pod(), &[]).0, "/portForward/a/web?");
    }
}
