//! Watch: one event per line, sent as it happens.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::future::ready;
use futures::{StreamExt as _, stream};
use http::header::CONTENT_TYPE;
use setpoint_model::Verb;
use setpoint_proto::{ApiError, EventType, Reason};

use super::query::Query;
use super::resources::Asked;
use super::shape::Shape;
use super::{options, selection, telemetry};
use crate::metrics::{About, Watching};
use crate::registry::{Event, Watch};

/// A watch whose client does not say ends after half an hour to an hour, not all at once.
const SECONDS: std::ops::Range<u64> = 1800..3600;

/// How many events that are ready together are sent together.
const TOGETHER: usize = 64;

/// Answers with a stream that ends when the client's time is up, or with an `ERROR` that says why.
pub(super) async fn watch(asked: Asked) -> Result<Response, ApiError> {
    let shape = Shape::asked(&asked.query, &asked.headers)?;
    shape.check_stream()?;
    let context = options::context(&asked.query, &asked.headers)?;
    let spec = selection::watch(&asked.route, &asked.query)?;
    let timeout = timeout(&asked.query)?;
    let marked = selection::says_initial(&asked.query);
    let events = match asked.registry.watch(&context, spec).await {
        // Clients look for this one in the stream.
        Err(error) if error.reason == Reason::Expired => stream::iter([Err(error)]).boxed(),
        events => events?,
    };
    let open = Watching::begin(About {
        verb: Some(Verb::Watch),
        ..telemetry::about(Some(&asked.route))
    });
    let events = open.over(events).boxed();
    let lines = lines(events, shape, marked).take_until(tokio::time::sleep(timeout));
    let body = lines.map(Ok::<_, Infallible>);
    let content_type = [(CONTENT_TYPE, shape.stream_type())];
    Ok((content_type, Body::from_stream(body)).into_response())
}

fn timeout(query: &Query) -> Result<Duration, ApiError> {
    let asked = query
        .number("timeoutSeconds")?
        .and_then(|seconds| u64::try_from(seconds).ok());
    let seconds = asked.filter(|seconds| *seconds > 0);
    Ok(Duration::from_secs(
        seconds.unwrap_or_else(|| rand::random_range(SECONDS)),
    ))
}

/// The events as they are sent. The mark at the end of the initial state is for those alone who asked for it.
fn lines(events: Watch, shape: Shape, marked: bool) -> impl futures::Stream<Item = Bytes> + Send {
    events
        .filter(move |event| {
            let mark = event.as_ref().is_ok_and(|event| event.initial_events_end);
            ready(marked || !mark)
        })
        .map(move |event| event.and_then(|event| line(&shape, &event)))
        .filter_map(move |line| ready(line.map_or_else(|error| last(&shape, &error), Some)))
        .ready_chunks(TOGETHER)
        .map(|lines| Bytes::from(lines.concat()))
}

fn line(shape: &Shape, event: &Event) -> Result<Bytes, ApiError> {
    let name = match event.r#type {
        EventType::Added => "ADDED",
        EventType::Modified => "MODIFIED",
        EventType::Deleted => "DELETED",
        EventType::Bookmark | EventType::Unspecified => "BOOKMARK",
    };
    shape.event(name, event.object.kind, &event.object.raw)
}

/// A gateway that goes away says nothing: the client watches again elsewhere, from where it was.
fn last(shape: &Shape, error: &ApiError) -> Option<Bytes> {
    (error.reason != Reason::ServiceUnavailable).then(|| shape.error(error))
}
