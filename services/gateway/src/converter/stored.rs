//! Stored objects in the version of a request.

use std::sync::Arc;

use setpoint_codec::{CustomObject, Kind, Object};
use setpoint_proto::ApiError;
use setpoint_store::cache::{Cached, Filter};

use super::{Converter, OBJECT_SIZE};
use crate::errors;
use crate::offload::offload;
use setpoint_kinds as kinds;
use setpoint_kinds::custom::{self, is_converted_by_webhook};

impl Converter {
    /// Returns the listed objects that a filter selects in the version that it names, if a webhook has to convert them;
    /// others as they are. All are converted by one call.
    ///
    /// # Errors
    /// `InternalError` if the conversion fails.
    pub(crate) async fn list_in_version(
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

    /// Returns stored objects in a version, if a webhook has to convert them; others as they are. All are converted by
    /// one call.
    ///
    /// # Errors
    /// `InternalError` if the conversion fails.
    pub(crate) async fn in_version(
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

    /// Returns stored objects in another version. As upstream, they get the defaults of the version that they are
    /// stored in, and lose the fields that the other version does not have.
    async fn of_storage(
        &self,
        mut objects: Vec<CustomObject>,
        to: &'static Kind,
    ) -> Result<Vec<CustomObject>, ApiError> {
        let bytes = objects.len() * OBJECT_SIZE;
        let fill_defaults = |object: &mut CustomObject| kinds::of(to).fill_defaults(object);
        offload(bytes, || objects.iter_mut().for_each(fill_defaults)).await;
        let mut converted = self.convert(objects, to).await?;
        offload(bytes, || converted.iter_mut().for_each(custom::prune)).await;
        Ok(converted)
    }

    /// Returns a stored object in another version.
    ///
    /// # Errors
    /// `InternalError` if the conversion fails.
    pub(crate) async fn one_of_storage(
        &self,
        object: Box<dyn Object>,
        to: &'static Kind,
    ) -> Result<Box<dyn Object>, ApiError> {
        let objects = downcast(object).into_iter().collect();
        let converted = self.of_storage(objects, to).await?;
        Ok(Box::new(only(converted, to)?))
    }
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

/// Returns the only object of a conversion.
///
/// # Errors
/// `InternalError` if there is none.
pub(crate) fn only(mut converted: Vec<CustomObject>, to: &Kind) -> Result<CustomObject, ApiError> {
    converted.pop().ok_or_else(|| errors::not_custom(to))
}

/// Returns an object of a custom kind.
pub(crate) fn downcast(object: Box<dyn Object>) -> Option<CustomObject> {
    let custom = object.into_any().downcast::<CustomObject>().ok();
    custom.map(|object| *object)
}
