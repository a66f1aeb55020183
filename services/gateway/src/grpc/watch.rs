//! The method `Watch`. Each object is sent as the cache encoded it, once for all watchers; another version is encoded
//! for each.

use std::pin::Pin;
use std::sync::Arc;

use futures::{FutureExt as _, Stream, StreamExt as _};
use prost::Message as _;
use setpoint_codec::Kind;
use setpoint_fairness::ListRequest;
use setpoint_proto::setpoint::WatchRequest;
use setpoint_proto::{ApiError, WatchEvent};
use tonic::{Request, Status};

use super::method;
use super::request::{at_least, collection, filter, open, revision};
use super::telemetry::Call;
use crate::metrics::Watching;
use crate::registry::{Event, ObjectResponse, Registry, Start, WatchSpec};

/// The stream of a watch.
pub(super) type Events = Pin<Box<dyn Stream<Item = Result<WatchEvent, Status>> + Send>>;

/// Begins a watch. With `send_initial_events`, `revision` is the minimum revision of the initial state.
pub(super) async fn begin(
    registry: &Arc<Registry>,
    request: Request<WatchRequest>,
) -> Result<Events, ApiError> {
    let (caller, request) = open(request, |message| message.trace.take())?;
    let filter = filter(
        registry.cache().kinds(),
        &request.resource,
        &request.namespace,
        &request.label_selector,
        &request.field_selector,
    )?;
    let collection = collection(&filter);
    let (kind, converted) = (filter.served(), filter.clone());
    let call = Call::new(method::WATCH, &collection);
    let mut call = call.selected_by(&request.field_selector, &request.label_selector);
    if request.send_initial_events {
        call = call.reading(ListRequest::default());
    }
    let caller = call.identified(registry, caller).await?;
    let open = Watching::begin(call.info());
    let spec = WatchSpec {
        filter,
        start: start(&request)?,
        bookmarks: true,
    };
    let watched = registry.watch(&caller.context, spec);
    let counted = call.counted(registry);
    let is_marked = request.send_initial_events;
    let served = call.serve_watch(registry, &caller, watched.boxed(), is_marked);
    let (events, initialization) = served.await?;
    let events = registry.watch_in_version(converted, events);
    let events = initialization.over(counted.over(open.over(events)), ends_initial_state);
    Ok(Box::pin(events.map(|event| Ok(message(event?, kind)?))))
}

/// Returns whether the initial state has been sent.
fn ends_initial_state(event: &Result<Event, ApiError>) -> bool {
    event.as_ref().is_ok_and(|event| event.initial_events_end)
}

fn start(request: &WatchRequest) -> Result<Start, ApiError> {
    Ok(
        match (request.send_initial_events, request.revision.as_str()) {
            (true, text) => Start::Initial(at_least(text)?),
            (false, "") => Start::Now,
            (false, text) => Start::After(revision(text)?),
        },
    )
}

fn message(event: Event, served: &'static Kind) -> Result<WatchEvent, ApiError> {
    let object = match served == event.object.kind {
        true => event.object.object.clone(),
        false => {
            let object = ObjectResponse::from(&event.object).served_as(served)?;
            object.into_message().encode_to_vec().into()
        }
    };
    Ok(WatchEvent {
        r#type: event.r#type.into(),
        object,
        initial_events_end: event.initial_events_end,
    })
}
