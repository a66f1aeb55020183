//! The subresource `log`: streams the log of a container from the agent of its node.

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{SinkExt as _, StreamExt as _, TryStreamExt as _, stream};
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use setpoint_proto::ApiError;
use setpoint_proto::core::Pod;
use setpoint_proto::setpoint::LogsRequest;
use setpoint_proto::setpoint::node_client::NodeClient;
use tokio_tungstenite::tungstenite::Message;
use tonic::Status;

use super::upgrade::{Upgrade, upgrade};
use super::websocket::{Socket, close, handshake, socket};
use super::{ConnectRequest, kubelet, target};
use crate::agents;
use crate::http::write_options;
use crate::request::Query;

/// The subprotocols of WebSocket, and whether their messages are texts in base64.
const PROTOCOLS: [(&str, bool); 3] = [
    ("", false),
    ("binary.k8s.io", false),
    ("base64.binary.k8s.io", true),
];

/// The bytes of a log, as they arrive.
pub(super) type Pieces = BoxStream<'static, Result<Bytes, Status>>;

/// Returns the log of a container, as the body of the response or in messages of a WebSocket.
pub(super) async fn connect(mut request: ConnectRequest) -> Result<Response, ApiError> {
    let upgrades = Upgrade::of(&request.parts.headers) == Ok(Upgrade::WebSocket);
    let handshake = match upgrades {
        true => Some(handshake(&request.parts.headers, &PROTOCOLS)?),
        false => None,
    };
    let pieces = pieces(&request).await?;
    let stop = request.streams.stop.clone();
    let pieces = pieces.take_until(stop.cancelled_owned());
    let Some((headers, is_base64)) = handshake else {
        let plain = [(CONTENT_TYPE, "text/plain")];
        return Ok((plain, Body::from_stream(pieces)).into_response());
    };
    upgrade(
        &mut request,
        Upgrade::WebSocket,
        headers,
        async move |connection| {
            send(pieces.boxed(), socket(connection).await, is_base64).await;
        },
    )
}

/// Sends a log in messages, unless the client leaves.
async fn send(mut pieces: Pieces, socket: Socket, is_base64: bool) {
    let (mut sink, mut stream) = socket.split();
    let sending = async {
        while let Some(Ok(piece)) = pieces.next().await {
            let message = match is_base64 {
                true => Message::text(BASE64_STANDARD.encode(&piece)),
                false => Message::Binary(piece),
            };
            if sink.send(message).await.is_err() {
                return;
            }
        }
        let _ = close(&mut sink).await;
    };
    let leaving = async { while let Some(Ok(_)) = stream.next().await {} };
    tokio::select! {
        () = sending => {}
        () = leaving => {}
    }
}

/// Opens a log. That of a Pod without a node is empty.
async fn pieces(request: &ConnectRequest) -> Result<Pieces, ApiError> {
    let mut logs = logs_request(&request.query)?;
    let context = write_options::context(&request.query, &request.parts.headers)?;
    let context = context.as_user(&request.user);
    let (registry, route) = (&request.registry, &request.route);
    let pod: Pod = target::read(registry, &context, &route.namespace, &route.name).await?;
    logs.namespace.clone_from(&pod.metadata.namespace);
    logs.pod.clone_from(&pod.metadata.name);
    let named = request.query.get("container").unwrap_or_default();
    logs.container = target::container(&pod, named)?;
    if pod.spec.node_name.is_empty() {
        return Ok(stream::empty().boxed());
    }
    let node = target::node_of(registry, &context, &pod).await?;
    if kubelet::runs(&node) {
        let call = kubelet::Call::log(&pod, &logs.container, &request.query);
        return kubelet::read(request, &node, call).await;
    }
    let agent = agents::connect(registry.dial_policy(), &node).await?;
    let mut agent = NodeClient::new(agent);
    let pieces = agents::answer(agent.logs(logs)).await?.into_inner();
    Ok(pieces.map_ok(|piece| piece.data).boxed())
}

/// Returns the request to the agent, with the parameters of the query.
fn logs_request(query: &Query) -> Result<LogsRequest, ApiError> {
    let at_least = |name: &'static str, least: i64, words: &str| match query.number(name)? {
        Some(number) if number < least => Err(write_options::invalid("", name, words)),
        number => Ok(number),
    };
    let seconds = at_least("sinceSeconds", 1, "must be greater than 0")?;
    let time = match query.get("sinceTime") {
        None => None,
        Some(text) => {
            let time = text.parse::<Timestamp>();
            let time = time.map_err(|_| {
                write_options::invalid("", "sinceTime", "must be a time as RFC 3339 writes it")
            })?;
            Some(time.as_second())
        }
    };
    if seconds.is_some() && time.is_some() {
        let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        return Err(write_options::invalid("", "sinceSeconds", detail));
    }
    let now = Timestamp::now().as_second();
    Ok(LogsRequest {
        previous: query.flag("previous"),
        follow: query.flag("follow"),
        timestamps: query.flag("timestamps"),
        tail_lines: at_least("tailLines", 0, "must be greater than or equal to 0")?,
        since_seconds: seconds.map(|seconds| now.saturating_sub(seconds)).or(time),
        limit_bytes: at_least("limitBytes", 1, "must be greater than 0")?,
        ..LogsRequest::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_parameters_are_refused() {
        let refused = |text| logs_request(&Query::parse(text)).is_err();
        for text in [
            "tailLines=-1",
            "limitBytes=0",
            "sinceSeconds=0",
            "tailLines=x",
            "sinceTime=x",
        ] {
            assert!(refused(text), "{text}");
        }
        assert!(refused("sinceSeconds=5&sinceTime=2026-11-21T07:00:00Z"));
        let request = logs_request(&Query::parse(
            "tailLines=0&follow=true&sinceTime=1970-01-01T00:01:00Z",
        ))
        .unwrap();
        assert_eq!(
            (request.tail_lines, request.follow, request.since_seconds),
            (Some(0), true, Some(60))
        );
    }
}
