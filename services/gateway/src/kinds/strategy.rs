//! The behaviour of a kind that is known only at run time.

use std::any::type_name;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_codec::{Kind, Object};
use setpoint_model::Verb;
use setpoint_proto::coordination::LeaseSpec;
use setpoint_proto::{Resource, for_each_stored_kind};

use super::{Admitting, Allocating, Replicas, Role, StoredKind, Writes};
use crate::flow_control::PriorityLevel;
use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::{Registry, Target};

/// The [`StoredKind`] of an object whose type is known only at run time.
pub(crate) trait Strategy: Send + Sync {
    fn counts_generations(&self) -> bool;
    fn allows_unconditional_update(&self) -> bool;
    fn deletes_collections(&self) -> bool;
    fn role(&self) -> Role;
    fn writes(&self) -> Writes;
    fn priority_level(&self, verb: Verb, namespace: &str) -> Option<PriorityLevel>;
    fn fill_defaults(&self, new: &mut dyn Object);
    fn prepare_create(&self, new: &mut dyn Object);
    fn prepare_update(&self, new: &mut dyn Object, old: &dyn Object);
    fn prepare_status_update(&self, new: &mut dyn Object, old: &dyn Object);
    fn intent_changed(&self, new: &dyn Object, old: &dyn Object) -> bool;
    fn is_met(&self, object: &dyn Object) -> Option<bool>;
    fn check_name(&self, name: &str) -> Vec<String>;
    fn validate(&self, new: &dyn Object, errors: &mut FieldErrors);
    fn validate_create(&self, new: &dyn Object, errors: &mut FieldErrors);
    fn validate_update(&self, new: &dyn Object, old: &dyn Object, errors: &mut FieldErrors);
    fn validate_status_update(&self, new: &dyn Object, old: &dyn Object, errors: &mut FieldErrors);
    fn admit<'a>(
        &self,
        new: &'a mut dyn Object,
        target: &'a Target,
        registry: &'a Registry,
    ) -> Option<Admitting<'a>>;
    fn allocate<'a>(
        &self,
        new: &'a mut dyn Object,
        old: Option<&'a dyn Object>,
        registry: &'a Registry,
    ) -> Option<Allocating<'a>>;
    fn lease<'a>(&self, object: &'a dyn Object) -> Option<&'a LeaseSpec>;
    fn scale<'a>(&self, object: &'a dyn Object) -> Option<Replicas<'a>>;
    fn set_replicas(&self, object: &mut dyn Object, replicas: i32);
    fn bind(&self, object: &mut dyn Object, node: &str, now: Timestamp) -> Result<(), String>;
    fn check_delete(&self, name: &str) -> Result<(), &'static str>;
    fn begin_deletion(&self, object: &mut dyn Object, asked: Option<i64>) -> i64;
    fn holds_deletion(&self, object: &dyn Object) -> bool;
    fn cell(&self, object: &dyn Object, column: &str, now: Timestamp) -> Option<Value>;
}

/// Returns the object as its own type. The caller looked its kind up, so it is of that type.
fn typed<T: Resource>(object: &dyn Object) -> &T {
    object
        .as_any()
        .downcast_ref()
        .unwrap_or_else(|| wrong::<T>())
}

/// Returns the object as its own type, for a change.
fn typed_mut<T: Resource>(object: &mut dyn Object) -> &mut T {
    object
        .as_any_mut()
        .downcast_mut()
        .unwrap_or_else(|| wrong::<T>())
}

fn wrong<T>() -> ! {
    unreachable!(
        "objects are looked up by their kind, and this is no {}",
        type_name::<T>()
    )
}

struct Of<T>(PhantomData<fn() -> T>);

impl<T: StoredKind> Strategy for Of<T> {
    fn counts_generations(&self) -> bool {
        T::COUNTS_GENERATIONS
    }
    fn allows_unconditional_update(&self) -> bool {
        T::ALLOWS_UNCONDITIONAL_UPDATE
    }
    fn deletes_collections(&self) -> bool {
        T::DELETES_COLLECTIONS
    }
    fn role(&self) -> Role {
        T::ROLE
    }
    fn writes(&self) -> Writes {
        T::WRITES
    }
    fn priority_level(&self, verb: Verb, namespace: &str) -> Option<PriorityLevel> {
        T::priority_level(verb, namespace)
    }
    fn fill_defaults(&self, new: &mut dyn Object) {
        typed_mut::<T>(new).fill_defaults();
    }
    fn prepare_create(&self, new: &mut dyn Object) {
        typed_mut::<T>(new).prepare_create();
    }
    fn prepare_update(&self, new: &mut dyn Object, old: &dyn Object) {
        typed_mut::<T>(new).prepare_update(typed(old));
    }
    fn prepare_status_update(&self, new: &mut dyn Object, old: &dyn Object) {
        typed_mut::<T>(new).prepare_status_update(typed(old));
    }
    fn intent_changed(&self, new: &dyn Object, old: &dyn Object) -> bool {
        typed::<T>(new).intent_changed(typed(old))
    }
    fn is_met(&self, object: &dyn Object) -> Option<bool> {
        typed::<T>(object).is_met()
    }
    fn check_name(&self, name: &str) -> Vec<String> {
        T::check_name(name)
    }
    fn validate(&self, new: &dyn Object, errors: &mut FieldErrors) {
        typed::<T>(new).validate(errors);
    }
    fn validate_create(&self, new: &dyn Object, errors: &mut FieldErrors) {
        typed::<T>(new).validate_create(errors);
    }
    fn validate_update(&self, new: &dyn Object, old: &dyn Object, errors: &mut FieldErrors) {
        typed::<T>(new).validate_update(typed(old), errors);
    }
    fn validate_status_update(&self, new: &dyn Object, old: &dyn Object, errors: &mut FieldErrors) {
        typed::<T>(new).validate_status_update(typed(old), errors);
    }
    fn admit<'a>(
        &self,
        new: &'a mut dyn Object,
        target: &'a Target,
        registry: &'a Registry,
    ) -> Option<Admitting<'a>> {
        typed_mut::<T>(new).admit(target, registry)
    }
    fn allocate<'a>(
        &self,
        new: &'a mut dyn Object,
        old: Option<&'a dyn Object>,
        registry: &'a Registry,
    ) -> Option<Allocating<'a>> {
        typed_mut::<T>(new).allocate(old.map(typed), registry)
    }
    fn lease<'a>(&self, object: &'a dyn Object) -> Option<&'a LeaseSpec> {
        typed::<T>(object).lease()
    }
    fn scale<'a>(&self, object: &'a dyn Object) -> Option<Replicas<'a>> {
        typed::<T>(object).scale()
    }
    fn set_replicas(&self, object: &mut dyn Object, replicas: i32) {
        typed_mut::<T>(object).set_replicas(replicas);
    }
    fn bind(&self, object: &mut dyn Object, node: &str, now: Timestamp) -> Result<(), String> {
        typed_mut::<T>(object).bind(node, now)
    }
    fn check_delete(&self, name: &str) -> Result<(), &'static str> {
        T::check_delete(name)
    }
    fn begin_deletion(&self, object: &mut dyn Object, asked: Option<i64>) -> i64 {
        typed_mut::<T>(object).begin_deletion(asked)
    }
    fn holds_deletion(&self, object: &dyn Object) -> bool {
        typed::<T>(object).holds_deletion()
    }
    fn cell(&self, object: &dyn Object, column: &str, now: Timestamp) -> Option<Value> {
        typed::<T>(object).cell(column, now)
    }
}

macro_rules! strategies {
    ($($message:path => $name:literal,)*) => {
        /// The strategies of all stored kinds, by type URL.
        static STRATEGIES: LazyLock<HashMap<&str, &dyn Strategy>> = LazyLock::new(|| {
            HashMap::from([$((
                <$message as Resource>::TYPE_URL,
                &Of::<$message>(PhantomData) as &dyn Strategy,
            )),*])
        });
    };
}
for_each_stored_kind!(strategies);

/// Returns the strategy of a stored kind.
pub(crate) fn of(kind: &Kind) -> &'static dyn Strategy {
    find(kind).expect("the table has all stored kinds")
}

/// Returns the strategy of a kind; `None` for request bodies, which are not stored.
pub(crate) fn find(kind: &Kind) -> Option<&'static dyn Strategy> {
    STRATEGIES.get(kind.type_url.as_str()).copied()
}
