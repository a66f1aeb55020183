//! [`Strategy`]: the [`StoredKind`] of an object whose type is known only at run time.

use std::any::type_name;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_codec::{CustomObject, Kind, Object};
use setpoint_proto::setpoint::Wait;
use setpoint_proto::{Resource, for_each_stored_kind};

use super::{Identity, Paths, Replicas, Role, StoredKind, Subresource, Writes};
use crate::validation::field_errors::FieldErrors;
use crate::validation::warnings::Warnings;
use crate::waits::Records;

struct StrategyOf<T>(PhantomData<fn() -> T>);

/// Defines [`Strategy`], and implements it for `T: StoredKind` by the expressions.
macro_rules! strategy {
    ($(fn $name:ident $(<$life:lifetime>)? ($($arg:ident: $type:ty),*) $(-> $result:ty)? => $call:expr;)*) => {
        /// The hooks of [`StoredKind`], with objects of any type.
        pub trait Strategy: Send + Sync {
            $(
                /// Returns or calls the item of [`StoredKind`] of this name, for an object that must be of the kind.
                fn $name $(<$life>)? (&self, $($arg: $type),*) $(-> $result)?;
            )*
        }

        impl<T: StoredKind> Strategy for StrategyOf<T> {
            $(fn $name $(<$life>)? (&self, $($arg: $type),*) $(-> $result)? {
                $call
            })*
        }
    };
}
strategy! {
    fn counts_generations() -> bool => T::COUNTS_GENERATIONS;
    fn allows_unconditional_update() -> bool => T::ALLOWS_UNCONDITIONAL_UPDATE;
    fn creates_on_update() -> bool => T::CREATES_ON_UPDATE;
    fn returns_deleted() -> bool => T::RETURNS_DELETED;
    fn orphans_by_default() -> bool => T::ORPHANS_BY_DEFAULT;
    fn orphan_warning() -> Option<&'static str> => T::ORPHAN_WARNING;
    fn deprecation() -> Option<&'static str> => T::DEPRECATION;
    fn role() -> Role => T::ROLE;
    fn writes() -> Writes => T::WRITES;
    fn waits_have_next_reconcile() -> bool => T::WAITS_HAVE_NEXT_RECONCILE;
    fn status_resets() -> Paths => T::STATUS_RESETS;
    fn fill_defaults(new: &mut dyn Object) => typed_mut::<T>(new).fill_defaults();
    fn prepare_create(new: &mut dyn Object) => typed_mut::<T>(new).prepare_create();
    fn prepare_update(new: &mut dyn Object, old: &dyn Object) => typed_mut::<T>(new).prepare_update(typed(old));
    fn prepare_status_update(new: &mut dyn Object, old: &dyn Object) =>
        typed_mut::<T>(new).prepare_status_update(typed(old));
    fn prepare_part_update(new: &mut dyn Object, old: &dyn Object, part: Subresource) =>
        typed_mut::<T>(new).prepare_part_update(typed(old), part);
    fn validate_part_update(new: &dyn Object, old: &dyn Object, part: Subresource, errors: &mut FieldErrors) =>
        typed::<T>(new).validate_part_update(typed(old), part, errors);
    fn intent_changed(new: &dyn Object, old: &dyn Object) -> bool => typed::<T>(new).intent_changed(typed(old));
    fn is_met(object: &dyn Object) -> Option<bool> => typed::<T>(object).is_met();
    fn check_name(name: &str) -> Vec<String> => T::check_name(name);
    fn validate(new: &dyn Object, errors: &mut FieldErrors) => typed::<T>(new).validate(errors);
    fn validate_create(new: &dyn Object, errors: &mut FieldErrors) => typed::<T>(new).validate_create(errors);
    fn validate_update(new: &dyn Object, old: &dyn Object, errors: &mut FieldErrors) =>
        typed::<T>(new).validate_update(typed(old), errors);
    fn validate_status_update(new: &dyn Object, old: &dyn Object, errors: &mut FieldErrors) =>
        typed::<T>(new).validate_status_update(typed(old), errors);
    fn set_requester(new: &mut dyn Object, user: &Identity) => typed_mut::<T>(new).set_requester(user);
    fn warn(new: &dyn Object, old: Option<&dyn Object>, warnings: &mut Warnings) =>
        typed::<T>(new).warn(old.map(typed), warnings);
    fn warn_of_status(new: &dyn Object, warnings: &mut Warnings) => typed::<T>(new).warn_of_status(warnings);
    fn scale(object: &dyn Object) -> Option<Replicas> => typed::<T>(object).scale();
    fn set_replicas(object: &mut dyn Object, replicas: i32) => typed_mut::<T>(object).set_replicas(replicas);
    fn bind(object: &mut dyn Object, node: &str, now: Timestamp) -> Result<(), String> =>
        typed_mut::<T>(object).bind(node, now);
    fn check_delete(name: &str) -> Result<(), &'static str> => T::check_delete(name);
    fn begin_deletion(object: &mut dyn Object, requested: Option<i64>) -> i64 =>
        typed_mut::<T>(object).begin_deletion(requested);
    fn holds_deletion(object: &dyn Object) -> bool => typed::<T>(object).holds_deletion();
    fn waits(object: &dyn Object, records: &Records<'_>) -> Vec<Wait> => typed::<T>(object).waits(records);
    fn cell(object: &dyn Object, column: &str, now: Timestamp) -> Option<Value> => typed::<T>(object).cell(column, now);
    fn completion<'a>(object: &'a dyn Object) -> Option<(&'a str, &'static str)> => typed::<T>(object).completion();
}

/// Returns the object as its own type. Its strategy was looked up by its kind, so it is of that type.
fn typed<T: 'static>(object: &dyn Object) -> &T {
    object
        .as_any()
        .downcast_ref()
        .unwrap_or_else(|| wrong_type::<T>())
}

/// As [`typed`], mutable.
fn typed_mut<T: 'static>(object: &mut dyn Object) -> &mut T {
    object
        .as_any_mut()
        .downcast_mut()
        .unwrap_or_else(|| wrong_type::<T>())
}

fn wrong_type<T>() -> ! {
    unreachable!(
        "the strategy is that of the kind of the object, which is not {}",
        type_name::<T>()
    )
}

macro_rules! strategies {
    ($($message:path => $name:literal,)*) => {
        /// The strategies of all stored kinds, by type URL. All custom kinds have one.
        static STRATEGIES: LazyLock<HashMap<&str, &dyn Strategy>> = LazyLock::new(|| {
            HashMap::from([
                (
                    CustomObject::TYPE_URL,
                    &StrategyOf::<CustomObject>(PhantomData) as &dyn Strategy,
                ),
                $((
                    <$message as Resource>::TYPE_URL,
                    &StrategyOf::<$message>(PhantomData) as &dyn Strategy,
                ),)*
            ])
        });
    };
}
for_each_stored_kind!(strategies);

/// Returns the strategy of a stored kind or of another version of it.
pub fn of(kind: &Kind) -> &'static dyn Strategy {
    find(kind).expect("the table has all stored kinds")
}

/// Returns the strategy of a kind or, for another version, of the stored one; `None` for kinds that are not stored.
pub fn find(kind: &Kind) -> Option<&'static dyn Strategy> {
    STRATEGIES.get(kind.stored().type_url.as_str()).copied()
}
