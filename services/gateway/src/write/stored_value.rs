//! The value that a write stores: it can be read again, and leaves room for the writes that must follow it.

use bytes::Bytes;
use setpoint_codec::{CustomObject, MAX_OBJECT_DEPTH, Object, envelope};
use setpoint_proto::{ApiError, Reason};
use setpoint_store as store;

use crate::offload::offload;
use crate::registry::Target;
use crate::write::current::Current;

/// The size of a transaction that etcd accepts by default, in bytes.
const TRANSACTION: usize = 1536 << 10;

/// The room that an update leaves for a deletion, and a creation for updates: both add to the metadata, as managers of
/// fields do.
const ROOM: usize = 32 << 10;

/// Checks the value of an object that a write stores instead of `old`.
///
/// # Errors
/// `RequestEntityTooLarge` if a creation or an update leaves no room, `BadRequest` if the object is nested too deeply
/// or could not be read again. An object that is beyond a limit may be written as long as it does not grow.
pub(crate) async fn check(
    target: &Target,
    new: &dyn Object,
    raw: &Bytes,
    value: &Bytes,
    old: Option<&Current>,
) -> Result<(), ApiError> {
    let grows = old.is_none_or(|old| raw.len() > old.raw.len());
    if grows && value.len() > limit(new, old) {
        return Err(store::Error::TooLarge.into());
    }
    if deepens(new, old) {
        let problem = format!("must not nest more than {MAX_OBJECT_DEPTH} levels");
        return Err(refused(target, &problem));
    }
    // What cannot fail is not tried: decoding would be a fifteenth of the work of a create.
    if new.kind().is_always_decodable() {
        return Ok(());
    }
    let read = offload(value.len(), || read_back(new, value)).await;
    read.map_err(|error| refused(target, &format!("could not be read again: {error}")))
}

/// Returns the largest size of a value. That of a deletion is what the store accepts.
fn limit(new: &dyn Object, old: Option<&Current>) -> usize {
    match old {
        _ if new.meta().deletion_timestamp.is_some() => usize::MAX,
        Some(_) => TRANSACTION - ROOM,
        None => TRANSACTION - 2 * ROOM,
    }
}

/// Returns whether an object of a custom kind exceeds the depth for such objects, and that of the old one.
fn deepens(new: &dyn Object, old: Option<&Current>) -> bool {
    let depth = |object: &dyn Object| {
        let custom = object.downcast_ref::<CustomObject>();
        custom.map_or(0, CustomObject::depth)
    };
    let new = depth(new);
    new > MAX_OBJECT_DEPTH && old.is_none_or(|old| new > depth(&*old.object))
}

fn read_back(new: &dyn Object, value: &Bytes) -> Result<(), String> {
    let read = envelope::read(value).map_err(|error| error.to_string())?;
    let decoded = new.kind().decode(&read.raw);
    decoded.map(drop).map_err(|error| error.to_string())
}

fn refused(target: &Target, problem: &str) -> ApiError {
    let message = format!("{} {:?} {problem}", target.served.resource(), target.name);
    ApiError::new(Reason::BadRequest, message)
}
