//! The other versions of stored kinds. Requests and responses are in the version that is served; everything between
//! them works on the stored form.

mod event;
mod horizontalpodautoscaler;

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::LazyLock;

use bytes::Bytes;
use setpoint_codec::{Error, Kind, Object};
use setpoint_proto::{Body, for_each_version};

use super::{StoredKind, custom};
use crate::validation::field_errors::FieldErrors;

/// Another version of a stored kind. Converting an object to it and back loses nothing.
pub trait Version: Body + Object {
    /// The stored kind.
    type Stored: StoredKind + Object;

    /// Converts to the stored form.
    fn into_stored(self) -> Self::Stored;
    /// Converts from the stored form.
    fn of_stored(stored: Self::Stored) -> Self;
    /// Validates a new object by the rules of this version only. The stored kind has validated it.
    fn validate_create(_new: &Self::Stored, _errors: &mut FieldErrors) {}
    /// Validates a change by the rules of this version only.
    fn validate_update(_new: &Self::Stored, _old: &Self::Stored, _errors: &mut FieldErrors) {}
}

/// The hooks of [`Version`], with objects of any type.
trait Converter: Send + Sync {
    fn to_stored(&self, object: Box<dyn Object>) -> Box<dyn Object>;
    fn of_stored(&self, object: Box<dyn Object>) -> Box<dyn Object>;
    fn validate(&self, new: &dyn Object, old: Option<&dyn Object>, errors: &mut FieldErrors);
}

struct ConverterOf<T>(PhantomData<fn() -> T>);

impl<T: Version> Converter for ConverterOf<T> {
    fn to_stored(&self, object: Box<dyn Object>) -> Box<dyn Object> {
        convert(object, T::into_stored)
    }

    fn of_stored(&self, object: Box<dyn Object>) -> Box<dyn Object> {
        convert(object, T::of_stored)
    }

    fn validate(&self, new: &dyn Object, old: Option<&dyn Object>, errors: &mut FieldErrors) {
        let old = old.map(|old| old.downcast_ref::<T::Stored>());
        match (new.downcast_ref::<T::Stored>(), old) {
            (Some(new), None) => T::validate_create(new, errors),
            (Some(new), Some(Some(old))) => T::validate_update(new, old, errors),
            _ => unreachable!("the stored kind of a version is that of its objects"),
        }
    }
}

/// Converts an object; one of another type stays as it is.
fn convert<From: 'static, To: Object>(
    object: Box<dyn Object>,
    by: fn(From) -> To,
) -> Box<dyn Object> {
    if object.downcast_ref::<From>().is_none() {
        return object;
    }
    match object.into_any().downcast::<From>() {
        Ok(object) => Box::new(by(*object)),
        Err(_) => unreachable!("the type was compared"),
    }
}

macro_rules! converters {
    ($($message:path => $name:literal,)*) => {
        /// The converters of all other versions, by the full name of their message.
        static CONVERTERS: LazyLock<HashMap<&str, &dyn Converter>> = LazyLock::new(|| {
            HashMap::from([$((
                $name,
                &ConverterOf::<$message>(PhantomData) as &dyn Converter,
            )),*])
        });
    };
}
for_each_version!(converters);

fn find(kind: &Kind) -> Option<&'static dyn Converter> {
    kind.version_of.as_ref()?;
    CONVERTERS.get(kind.message.full_name()).copied()
}

/// Returns an object in the form that requests are processed in: that of the stored kind. Objects of custom kinds are
/// processed in the version of the request.
pub fn to_stored(object: Box<dyn Object>) -> Box<dyn Object> {
    match find(object.kind()) {
        Some(converter) => converter.to_stored(object),
        None => object,
    }
}

/// Returns a stored object in the form of `served`, another version of its kind; for any other kind, as it is. A custom
/// object that a webhook has to convert stays in its version, too.
pub fn of_stored(object: Box<dyn Object>, served: &'static Kind) -> Box<dyn Object> {
    match find(served) {
        Some(converter) => converter.of_stored(object),
        None if served.is_custom() => custom::of_stored(object, served),
        None => object,
    }
}

/// Decodes a stored object and returns it in the form of `served`.
///
/// # Errors
/// If the bytes are malformed.
pub fn decode(served: &'static Kind, raw: &[u8]) -> Result<Box<dyn Object>, Error> {
    Ok(of_stored(served.stored().decode(raw)?, served))
}

/// Returns the encoding of an encoded stored object in the form of `served`.
///
/// # Errors
/// If the bytes are malformed.
pub fn recode(served: &'static Kind, raw: &Bytes) -> Result<Bytes, Error> {
    match find(served) {
        None if !served.is_custom() => Ok(raw.clone()),
        _ => Ok(decode(served, raw)?.encode()),
    }
}

/// Validates an object, with `old` an update of it, by the rules that only the version `served` has.
pub fn validate(
    served: &Kind,
    new: &dyn Object,
    old: Option<&dyn Object>,
    errors: &mut FieldErrors,
) {
    if let Some(converter) = find(served) {
        converter.validate(new, old, errors);
    }
}
