//! Converts custom objects between the requested and the storage version.
//!
//! ```text
//! stored bytes ──▶ version of the request: defaults, changes, validation, response ──▶ storage version
//! ```
//! Each arrow is a conversion if the versions differ. Reads and writes of metadata alone keep the version that an
//! object is stored in: they need no conversion, so that deletions go on while a webhook is broken.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use setpoint_codec::{Kind, Object as _};
use setpoint_kinds::custom::is_converted_by_webhook;
use setpoint_proto::{ApiError, EventType};
use setpoint_store::cache::{Cached, Event, Filter, Watch};

use crate::converter::downcast;
use crate::registry::selection::Selection;
use crate::registry::{ObjectResponse, Registry};

/// The maximum number of events of a watch that are converted by one call.
const EVENTS: usize = 64;

impl Registry {
    /// Returns the listed objects that a filter selects in the version that it names, if a webhook has to convert them;
    /// others as they are. All are converted by one call.
    ///
    /// # Errors
    /// `InternalError` if the conversion fails.
    pub async fn list_in_version(
        &self,
        filter: &Filter,
        items: Vec<Arc<Cached>>,
    ) -> Result<Vec<Arc<Cached>>, ApiError> {
        self.converter().list_in_version(filter, items).await
    }

    /// Returns the events of a watch in the version that its filter names, if a webhook has to convert their objects.
    /// The stream ends with an error if that fails.
    pub fn watch_in_version(self: &Arc<Self>, filter: Filter, events: Watch) -> Watch {
        if !filter.served().is_custom() {
            return events;
        }
        let state = (self.clone(), filter, Selection::default());
        let chunks = events.ready_chunks(EVENTS);
        let chunks = stream::unfold(Some((chunks, state)), |watch| async {
            let (mut chunks, mut state) = watch?;
            let (registry, filter, selection) = &mut state;
            let chunk = chunks.next().await?;
            let mut converted = registry.events_in_version(filter.served(), chunk).await;
            if filter.needs_conversion() {
                converted.retain_mut(|event| concerns(filter, selection, event));
            }
            let goes_on = converted.iter().all(Result::is_ok);
            Some((stream::iter(converted), goes_on.then_some((chunks, state))))
        });
        chunks.flatten().boxed()
    }

    async fn events_in_version(
        &self,
        served: &'static Kind,
        chunk: Vec<Result<Event, ApiError>>,
    ) -> Vec<Result<Event, ApiError>> {
        if !is_converted_by_webhook(served) {
            return chunk;
        }
        let (mut events, mut end) = (Vec::with_capacity(chunk.len()), None);
        for event in chunk {
            match event {
                Ok(event) => events.push(event),
                Err(error) => end = Some(error),
            }
        }
        let is_object = |event: &&mut Event| event.r#type != EventType::Bookmark;
        let objects = events.iter_mut().filter(is_object);
        let objects = objects.map(|event| event.object.clone()).collect();
        let converted = match self.converter().in_version(served, objects).await {
            Ok(converted) => converted,
            Err(error) => return vec![Err(error)],
        };
        let mut converted = converted.into_iter();
        for event in &mut events {
            event.object = match event.r#type {
                EventType::Bookmark => renamed(&event.object, served),
                _ => converted.next().unwrap_or_else(|| event.object.clone()),
            };
        }
        events.into_iter().map(Ok).chain(end.map(Err)).collect()
    }

    /// Returns a response in the version `served` of its kind; an object that is not stored, such as a `Scale`, as it
    /// is.
    ///
    /// # Errors
    /// `InternalError` if the conversion fails.
    pub async fn response_in_version(
        &self,
        response: ObjectResponse,
        served: &'static Kind,
    ) -> Result<ObjectResponse, ApiError> {
        if !response.kind.is_custom() || !is_converted_by_webhook(served) {
            return response.served_as(served);
        }
        let encoded = response.encoded();
        let object = self
            .converter()
            .one_of_storage(response.into_object()?, served)
            .await?;
        Ok(encoded.with_object(object))
    }
}

/// Returns the object of a bookmark, which has no fields but its metadata, in another version.
fn renamed(bookmark: &Arc<Cached>, served: &'static Kind) -> Arc<Cached> {
    match bookmark.decode().ok().and_then(downcast) {
        Some(object) => {
            let raw = object.with_kind(served).encode();
            Arc::new(bookmark.in_version(served, &raw))
        }
        None => bookmark.clone(),
    }
}

/// Returns whether an event concerns a watcher, and changes its type to that of the change of the selection.
fn concerns(
    filter: &Filter,
    selection: &mut Selection,
    event: &mut Result<Event, ApiError>,
) -> bool {
    let Ok(event) = event else { return true };
    if event.r#type == EventType::Bookmark {
        return true;
    }
    let is_selected = filter.matches_converted(&event.object);
    let told = selection.follow(&event.object.key, event.r#type, is_selected);
    told.map(|told| event.r#type = told).is_some()
}
