//! Watch: a stream of events.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::future::ready;
use futures::{StreamExt as _, stream};
use http::header::CONTENT_TYPE;
use setpoint_codec::Kind;
use setpoint_model::Verb;
use setpoint_proto::{ApiError, EventType, Reason};

use super::encoder::Encoder;
use super::handler::ObjectRequest;
use super::watch_socket::{self, Handshake};
use super::{list_options, telemetry, write_options};
use crate::metrics::{RequestLabels, Watching};
use crate::registry::{Event, Start, Watch};
use crate::request::Query;
use crate::request::flow_control::Initialization;

/// The range of the default timeout. It is random, so that watches that began together do not end together.
const SECONDS: std::ops::Range<u64> = 1800..3600;

/// The maximum number of events that are sent as one chunk.
const CHUNK: usize = 64;

/// Returns a stream of events that ends after the timeout, or with an `ERROR` event: the body of the response, or the
/// messages of a WebSocket if the client asks for one.
pub(super) async fn watch(mut request: ObjectRequest) -> Result<Response, ApiError> {
    let encoder = Encoder::negotiate(&request)?;
    encoder.check_stream()?;
    let handshake = Handshake::of(&request.headers)?;
    let context = write_options::context(&request.query, &request.headers)?.as_user(&request.user);
    let spec = list_options::watch(&request.route, &request.query)?;
    let filter = spec.filter.clone();
    let served = filter.served();
    let timeout = timeout(&request.query)?;
    let is_marked = spec.bookmarks && matches!(spec.start, Start::Initial(_));
    let marked = list_options::sets_send_initial_events(&request.query);
    let events = match request.registry.watch(&context, spec).await {
        // Clients expect this error in the stream.
        Err(error) if error.reason == Reason::Expired => stream::iter([Err(error)]).boxed(),
        events if encoder.needs_content() || filter.needs_conversion() => {
            request.registry.watch_in_version(filter, events?)
        }
        events => events?,
    };
    let open = Watching::begin(RequestLabels {
        verb: Some(Verb::Watch),
        ..telemetry::labels(Some(&request.route))
    });
    let counted = request.registry.flow_control().begin_watch(&request.asked);
    let mut events = counted.over(open.over(events)).boxed();
    if let Some(admission) = &request.admission {
        let initialization = Initialization::of(admission, is_marked);
        events = initialization.over(events, ends_initial_state).boxed();
    }
    let lines = lines(events, encoder, served, marked).take_until(tokio::time::sleep(timeout));
    let chunks = lines.ready_chunks(CHUNK);
    if let Some(handshake) = handshake {
        return watch_socket::serve(&mut request, handshake, chunks, encoder.is_text());
    }
    let body = chunks.map(|lines| Ok::<_, Infallible>(Bytes::from(lines.concat())));
    let content_type = [(CONTENT_TYPE, encoder.stream_type())];
    Ok((content_type, Body::from_stream(body)).into_response())
}

/// Returns whether the initial state has been sent.
fn ends_initial_state(event: &Result<Event, ApiError>) -> bool {
    event.as_ref().is_ok_and(|event| event.initial_events_end)
}

fn timeout(query: &Query) -> Result<Duration, ApiError> {
    let seconds = query
        .number("timeoutSeconds")?
        .and_then(|seconds| u64::try_from(seconds).ok());
    let seconds = seconds.filter(|seconds| *seconds > 0);
    Ok(Duration::from_secs(
        seconds.unwrap_or_else(|| rand::random_range(SECONDS)),
    ))
}

/// Encodes the events. The bookmark at the end of the initial events is sent only if `marked`.
fn lines(
    events: Watch,
    encoder: Encoder,
    served: &'static Kind,
    marked: bool,
) -> impl futures::Stream<Item = Bytes> + Send {
    let mut first = true;
    events
        .filter(move |event| {
            let mark = event.as_ref().is_ok_and(|event| event.initial_events_end);
            ready(marked || !mark)
        })
        .map(move |event| {
            let event = event?;
            line(&encoder, served, &event, std::mem::take(&mut first))
        })
        .filter_map(move |line| ready(line.map_or_else(|error| last(&encoder, &error), Some)))
}

fn line(
    encoder: &Encoder,
    served: &'static Kind,
    event: &Event,
    first: bool,
) -> Result<Bytes, ApiError> {
    let name = match event.r#type {
        EventType::Added => "ADDED",
        EventType::Modified => "MODIFIED",
        EventType::Deleted => "DELETED",
        EventType::Bookmark | EventType::Unspecified => "BOOKMARK",
    };
    encoder.event(name, served, &event.object.raw, first)
}

/// Encodes the error that ends the stream. If the gateway shuts down there is none, so that clients resume at another
/// gateway.
fn last(encoder: &Encoder, error: &ApiError) -> Option<Bytes> {
    (error.reason != Reason::ServiceUnavailable).then(|| encoder.error(error))
}
