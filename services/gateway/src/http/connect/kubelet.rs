//! Streams of Pods on nodes that have a kubelet, which serves them by HTTP/1.1 at the port of its node.

use std::time::Duration;

use axum::BoxError;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Incoming};
use hyper::upgrade::OnUpgrade;
use setpoint_model::version;
use setpoint_proto::core::{Node, Pod};
use setpoint_proto::setpoint::OpenContainer;
use setpoint_proto::{ApiError, Reason};
use tokio::time::{sleep, timeout};
use tonic::Status;

use super::super::forwarding;
use super::ConnectRequest;
use super::log::Pieces;
use crate::agents::{AgentAddress, Protocol, Verb};
use crate::request::Query;

/// The longest text of an error of a kubelet, as upstream reads it.
const MAX_ERROR: usize = 2048;
/// The time that the body of an error has, after its head; upstream's for those that it passes on.
const ERROR_TIMEOUT: Duration = Duration::from_secs(10);
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

/// Passes on a request to upgrade, and connects the client with what the kubelet upgrades to. An error of the kubelet
/// is the client's response.
///
/// # Errors
/// If the kubelet cannot be reached, refuses the gateway, or neither upgrades nor fails.
pub(super) async fn upgrade(
    request: &mut ConnectRequest,
    node: &Node,
    call: Call,
) -> Result<Response, ApiError> {
    let client = request.parts.extensions.remove::<OnUpgrade>();
    let headers = forwarding::headers(&mut request.parts);
    let outgoing = (request.parts.method.clone(), headers);
    let response = send(request, node, call, outgoing).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return not_upgraded(response).await;
    }
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

/// Returns a response that is a success, or else the error: its status, with the text of the kubelet.
async fn accepted<B>(response: http::Response<B>) -> Result<http::Response<B>, ApiError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let text = beginning(response.into_body()).await;
    Err(match status {
        StatusCode::BAD_REQUEST => ApiError::new(Reason::BadRequest, text),
        StatusCode::NOT_FOUND => ApiError::new(Reason::NotFound, text),
        _ if is_about_gateway(status) => refused(&text),
        _ => error(&format!("the node's kubelet answers {status}: {text}")),
    })
}

/// Returns the client's response to a request that the kubelet has not upgraded. As upstream, that of an error has the
/// status and the text of the kubelet, and anything else is an error itself: the client waits for streams.
async fn not_upgraded<B>(response: http::Response<B>) -> Result<Response, ApiError>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let (mut head, body) = response.into_parts();
    let status = head.status;
    if is_about_gateway(status) {
        return Err(refused(&beginning(body).await));
    }
    if !status.is_client_error() && !status.is_server_error() {
        let message =
            format!("the node's kubelet answers {status} to a request to upgrade the connection");
        return Err(error(&message));
    }
    let body = body.into_data_stream().take_until(sleep(ERROR_TIMEOUT));
    let mut response = Response::new(Body::from_stream(body));
    *response.status_mut() = status;
    // The other headers concern the connection, or the origin that the client believes the response to have.
    if let Some(kind) = head.headers.remove(CONTENT_TYPE) {
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    Ok(response)
}

/// Returns whether it is the gateway that the kubelet does not know or allow, and not the client.
fn is_about_gateway(status: StatusCode) -> bool {
    [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status)
}

fn refused(text: &str) -> ApiError {
    error(&format!("the node's kubelet refuses the gateway: {text}"))
}

/// Returns the beginning of a text: no more than [`MAX_ERROR`] bytes, and what has come within [`ERROR_TIMEOUT`].
async fn beginning(mut body: impl HttpBody<Data = Bytes> + Unpin) -> String {
    let mut text = Vec::new();
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let data = frame.into_data().unwrap_or_default();
            let room = MAX_ERROR.saturating_sub(text.len());
            text.extend(data.into_iter().take(room));
            if text.len() == MAX_ERROR {
                break;
            }
        }
    };
    timeout(ERROR_TIMEOUT, reading).await.ok();
    let text = String::from_utf8_lossy(&text);
    // The end may be within a character.
    let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    text.trim().to_owned()
}

fn error(message: &str) -> ApiError {
    ApiError::new(Reason::InternalError, message)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;
    use tokio::time::Instant;

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

    fn response(status: StatusCode, body: Body) -> http::Response<Body> {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        response
    }

    /// Returns a body that begins with this text and does not end.
    fn endless(text: &'static str) -> Body {
        let text = stream::iter([Ok::<_, Infallible>(Bytes::from(text))]);
        Body::from_stream(text.chain(stream::pending()))
    }

    async fn failed(response: http::Response<Body>) -> (u16, String) {
        let error = accepted(response).await.unwrap_err();
        (error.reason.http(), error.message)
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_has_the_beginning_of_a_text_that_is_long_or_does_not_end() {
        let long = format!("{}é", "a".repeat(MAX_ERROR - 1));
        let told = failed(response(StatusCode::NOT_FOUND, long.into())).await;
        assert_eq!(told, (404, "a".repeat(MAX_ERROR - 1)));
        let began = Instant::now();
        let told = failed(response(StatusCode::BAD_REQUEST, endless("it waits\n"))).await;
        assert_eq!(told, (400, "it waits".to_owned()));
        assert_eq!(began.elapsed().as_secs(), ERROR_TIMEOUT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_in_place_of_an_upgrade_is_passed_on() {
        for code in [400, 404, 500, 503] {
            let mut answer = response(
                StatusCode::from_u16(code).unwrap(),
                endless("pod does not exist\n"),
            );
            let headers = answer.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
            headers.insert("set-cookie", HeaderValue::from_static("a=b"));
            let passed_on = not_upgraded(answer).await.unwrap();
            assert_eq!(passed_on.status(), code);
            let headers = Vec::from_iter(passed_on.headers().keys());
            assert_eq!(headers, [CONTENT_TYPE]);
            let text = passed_on.into_body().collect().await.unwrap();
            assert_eq!(text.to_bytes(), "pod does not exist\n");
        }
    }

    #[tokio::test]
    async fn what_is_neither_an_upgrade_nor_an_error_of_the_client_is_an_internal_error() {
        for (code, expected) in [
            (
                200,
                "the node's kubelet answers 200 OK to a request to upgrade the connection",
            ),
            (
                302,
                "the node's kubelet answers 302 Found to a request to upgrade the connection",
            ),
            (401, "the node's kubelet refuses the gateway: no"),
            (403, "the node's kubelet refuses the gateway: no"),
        ] {
            let answer = response(StatusCode::from_u16(code).unwrap(), "no".into());
            let error = not_upgraded(answer).await.unwrap_err();
            assert_eq!((error.reason.http(), &*error.message), (500, expected));
        }
    }
}
