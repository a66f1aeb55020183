//! Converts custom objects between the requested and the storage version.
//!
//! ```text
//! stored bytes ──▶ version of the request: defaults, changes, validation, response ──▶ storage version
//! ```
//! Each arrow is a conversion if the versions differ. Reads and writes of metadata alone keep the version that an object is stored
//! in: they need no conversion, so that deletions go on while a webhook is broken.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use setpoint_codec::fields::{self, ApplyError};
use setpoint_codec::{CustomObject, Kind, Object};
use setpoint_kinds as kinds;
use setpoint_kinds::custom::{self, is_converted_by_webhook};
use setpoint_model::Revision;
use setpoint_proto::{ApiError, Cause, EventType, Reason};
use setpoint_store::cache::{Cached, Event, Filter, Watch};

use crate::converter::OBJECT_SIZE;
use crate::offload::offload;
use crate::registry::selection::Selection;
use crate::registry::write::current::Current;
use crate::registry::{ObjectResponse, Registry, Target, errors};

/// The maximum number of events of a watch that are converted by one call.
const EVENTS: usize = 64;

/// The treatment, by a write, of fields whose managers have recorded them in another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// It takes those that it changes.
    Taken,
    /// It fails if it changes one of them.
    Checked,
}

impl Registry {
    /// Returns the listed objects that a filter selects in the version that it names, if a webhook has to convert them; others as they
    /// are. All are converted by one call.
    ///
    /// # Errors
    /// `InternalError` if the conversion fails.
    pub async fn list_in_version(
        &self,
        filter: &Filter,
        items: Vec<Arc<Cached>>,
    ) -> Result<Vec<Arc<Cached>>, ApiError> {
        let mut items = self.in_version(filter.served(), items).await?;
        if filter.needs_conversion() {
            items.retain(|item| filter.matches_converted(item));
        }
        Ok(items)
    }

    async fn in_version(
        &self,
        served: &'static Kind,
        mut items: Vec<Arc<Cached>>,
    ) -> Result<Vec<Arc<Cached>>, ApiError> {
        if !is_converted_by_webhook(served) {
            return Ok(items);
        }
        let bytes = items.iter().map(|item| item.raw.len()).sum();
        let decoded = offload(bytes, || decoded(items.iter())).await?;
        let converted = self.of_storage(decoded, served).await?;
        offload(bytes, || {
            for (item, object) in items.iter_mut().zip(converted) {
                *item = Arc::new(item.in_version(served, &object.encode()));
            }
        })
        .await;
        Ok(items)
    }

    /// Returns the events of a watch in the version that its filter names, if a webhook has to convert their objects. The stream ends
    /// with an error if that fails.
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
        let converted = match self.in_version(served, objects).await {
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

    /// Returns a response in the version `served` of its kind; an object that is not stored, such as a `Scale`, as it is.
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
        let object = self.one_of_storage(response.into_object()?, served).await?;
        Ok(encoded.with_object(object))
    }

    /// Returns the response to a write of `new`, which was stored as `stored` if that has another version. As upstream, it is what a
    /// read returns. If that cannot be converted any more, it is the object of the write, which has been done.
    pub(crate) async fn written(
        &self,
        new: Box<dyn Object>,
        stored: Option<Box<dyn Object>>,
        raw: &Bytes,
        (revision, cause): (Revision, Option<Cause>),
    ) -> ObjectResponse {
        let Some(stored) = stored else {
            return ObjectResponse::written(new, raw, revision, cause);
        };
        let response = ObjectResponse::written(stored, raw, revision, cause.clone());
        match self.response_in_version(response, new.kind()).await {
            Ok(response) => response,
            Err(_) => {
                let raw = new.encode();
                ObjectResponse::written(new, &raw, revision, cause)
            }
        }
    }

    /// Returns the current object in the form that a request processes it in.
    ///
    /// # Errors
    /// `InternalError` if the conversion fails.
    pub(crate) async fn current_in_form(
        &self,
        target: &Target,
        mut current: Current,
    ) -> Result<Current, ApiError> {
        let form = target.form();
        let is_other = form.is_custom() && current.object.kind() != form;
        if target.keeps_version || !is_other {
            return Ok(current);
        }
        current.object = self.one_of_storage(current.object, form).await?;
        Ok(current)
    }

    /// Returns a new object in the version that is stored, if that is not its own.
    ///
    /// # Errors
    /// `InternalError` if the conversion fails.
    pub(crate) async fn in_storage_version(
        &self,
        target: &Target,
        new: &dyn Object,
    ) -> Result<Option<Box<dyn Object>>, ApiError> {
        let stored = new.kind().stored();
        if target.keeps_version || !new.kind().is_custom() || *stored == *new.kind() {
            return Ok(None);
        }
        let objects = downcast(new.clone_box()).into_iter().collect();
        let converted = self.converter().convert(objects, stored).await?;
        let mut object = only(converted, stored)?;
        custom::prune(&mut object);
        Ok(Some(Box::new(object)))
    }

    /// Takes the fields that a write changes from managers that have recorded them in versions to which a webhook converts.
    ///
    /// # Errors
    /// `InternalError` if the conversion fails, `Conflict` if the write may not take them.
    pub(crate) async fn settle_ownership(
        &self,
        target: &Target,
        old: &dyn Object,
        new: &mut dyn Object,
        ownership: Ownership,
    ) -> Result<(), ApiError> {
        if target.keeps_version || !new.kind().is_custom() {
            return Ok(());
        }
        let versions = fields::other_versions(new);
        if versions.is_empty() || fields::document(old) == fields::document(new) {
            return Ok(());
        }
        for version in versions {
            let both = [old.clone_box(), new.clone_box()];
            let both = both.into_iter().filter_map(downcast).collect();
            let both = self.converter().convert(both, version).await?;
            let [was, is] = both.as_slice() else { continue };
            let settled = fields::settle(new, was, is, ownership == Ownership::Checked);
            settled.map_err(|error| match error {
                ApplyError::Conflicts(conflicts) => conflicts.into(),
                ApplyError::Malformed(why) | ApplyError::Unfit(why) => {
                    ApiError::new(Reason::InternalError, why)
                }
            })?;
        }
        Ok(())
    }

    /// Returns stored objects in another version. As upstream, they get the defaults of the version that they are stored in, and lose
    /// the fields that the other version does not have.
    async fn of_storage(
        &self,
        mut objects: Vec<CustomObject>,
        to: &'static Kind,
    ) -> Result<Vec<CustomObject>, ApiError> {
        let bytes = objects.len() * OBJECT_SIZE;
        let fill_defaults = |object: &mut CustomObject| kinds::of(to).fill_defaults(object);
        offload(bytes, || objects.iter_mut().for_each(fill_defaults)).await;
        let mut converted = self.converter().convert(objects, to).await?;
        offload(bytes, || converted.iter_mut().for_each(custom::prune)).await;
        Ok(converted)
    }

    async fn one_of_storage(
        &self,
        object: Box<dyn Object>,
        to: &'static Kind,
    ) -> Result<Box<dyn Object>, ApiError> {
        let objects = downcast(object).into_iter().collect();
        let converted = self.of_storage(objects, to).await?;
        Ok(Box::new(only(converted, to)?))
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

fn decoded<'c>(
    items: impl Iterator<Item = &'c Arc<Cached>>,
) -> Result<Vec<CustomObject>, ApiError> {
    let mut decoded = Vec::new();
    for item in items {
        decoded.extend(downcast(errors::readable(item.decode())?));
    }
    Ok(decoded)
}

fn only(mut converted: Vec<CustomObject>, to: &Kind) -> Result<CustomObject, ApiError> {
    converted.pop().ok_or_else(|| errors::not_custom(to))
}

fn downcast(object: Box<dyn Object>) -> Option<CustomObject> {
    let custom = object.into_any().downcast::<CustomObject>().ok();
    custom.map(|object| *object)
}
