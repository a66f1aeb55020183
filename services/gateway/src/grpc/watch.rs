//! A watch as gRPC carries it: each object as the cache encoded it, once for all watchers.

use std::pin::Pin;

use futures::{Stream, StreamExt as _};
use setpoint_model::Verb;
use setpoint_proto::setpoint::WatchRequest;
use setpoint_proto::{ApiError, WatchEvent};
use tonic::{Request, Status};

use super::request::{at_least, context, filter, revision};
use super::telemetry::About;
use crate::metrics::Watching;
use crate::registry::{Event, Registry, Start, WatchSpec};

/// What a watcher receives.
pub(super) type Events = Pin<Box<dyn Stream<Item = Result<WatchEvent, Status>> + Send>>;

/// Begins to watch. A watcher that asks for the state first may also say how new it must be.
pub(super) async fn begin(
    registry: &Registry,
    request: Request<WatchRequest>,
) -> Result<Events, ApiError> {
    let (metadata, extensions, asked) = request.into_parts();
    let context = context(&metadata, asked.trace)?;
    let filter = filter(
        &asked.resource,
        &asked.namespace,
        &asked.label_selector,
        &asked.field_selector,
    )?;
    let about = About {
        verb: Verb::Watch,
        kind: filter.kind(),
        subresource: "",
        namespace: &asked.namespace,
        name: "",
        dry_run: false,
    };
    let open = Watching::begin(about.labels());
    let spec = WatchSpec {
        filter,
        start: start(&asked)?,
        bookmarks: true,
    };
    let events = about
        .observe(&extensions, &context, registry.watch(&context, spec))
        .await?;
    let events = open.over(events);
    Ok(Box::pin(
        events.map(|event| event.map(message).map_err(Status::from)),
    ))
}

fn start(asked: &WatchRequest) -> Result<Start, ApiError> {
    Ok(match (asked.send_initial_events, asked.revision.as_str()) {
        (true, text) => Start::Initial(at_least(text)?),
        (false, "") => Start::Now,
        (false, text) => Start::After(revision(text)?),
    })
}

fn message(event: Event) -> WatchEvent {
    WatchEvent {
        r#type: event.r#type.into(),
        object: event.object.object.clone(),
        initial_events_end: event.initial_events_end,
    }
}
