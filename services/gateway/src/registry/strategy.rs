//! What is particular to a kind: the moments at which its own rules are asked.

use std::any::type_name;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::LazyLock;

use setpoint_codec::{Kind, Object};
use setpoint_model::names;
use setpoint_proto::{Resource, apps, coordination, core};

use super::problems::Problems;

/// The rules of one kind, asked in this order: `fill_defaults`, `prepare_…`, `validate…`. All have a plain default.
pub trait Rules: Resource {
    /// Does `metadata.generation` count changes of intent?
    const COUNTS_GENERATIONS: bool = false;
    /// May an update leave `metadata.resourceVersion` out, and so replace whatever there is?
    const ALLOWS_UNCONDITIONAL_UPDATE: bool = true;

    /// Says what the user left unsaid. Asked on create and on update.
    fn fill_defaults(&mut self) {}
    /// Takes out what a creator may not set.
    fn prepare_create(&mut self) {}
    /// Takes from `old` what an update of the whole object may not change: above all the status.
    fn prepare_update(&mut self, _old: &Self) {}
    /// Takes from `old` what a write of the status may not change: the spec, and what of the metadata is not for those
    /// who write a status.
    fn prepare_status_update(&mut self, _old: &Self) {}
    /// Is something else wanted than before?
    fn intent_changed(&self, _old: &Self) -> bool {
        false
    }
    /// Does its status say that this generation was observed, and that all it asks for is there and ready? `None` for
    /// kinds whose status does not say.
    fn is_met(&self) -> Option<bool> {
        None
    }
    /// What is wrong with its name.
    fn check_name(name: &str) -> Vec<String> {
        names::validate_dns_subdomain(name)
    }
    /// What is wrong with it, metadata apart.
    fn validate(&self, _problems: &mut Problems) {}
    /// What is wrong with it as a new one. `validate` has been asked before.
    fn validate_create(&self, _problems: &mut Problems) {}
    /// What is wrong with the change. `validate` has been asked before.
    fn validate_update(&self, _old: &Self, _problems: &mut Problems) {}
    /// What is wrong with the change of the status. `validate` is not asked.
    fn validate_status_update(&self, _old: &Self, _problems: &mut Problems) {}
}

/// [`Rules`] of whatever kind an object is.
pub(super) trait Strategy: Send + Sync {
    fn counts_generations(&self) -> bool;
    fn allows_unconditional_update(&self) -> bool;
    fn fill_defaults(&self, new: &mut dyn Object);
    fn prepare_create(&self, new: &mut dyn Object);
    fn prepare_update(&self, new: &mut dyn Object, old: &dyn Object);
    fn prepare_status_update(&self, new: &mut dyn Object, old: &dyn Object);
    fn intent_changed(&self, new: &dyn Object, old: &dyn Object) -> bool;
    fn is_met(&self, object: &dyn Object) -> Option<bool>;
    fn check_name(&self, name: &str) -> Vec<String>;
    fn validate(&self, new: &dyn Object, problems: &mut Problems);
    fn validate_create(&self, new: &dyn Object, problems: &mut Problems);
    fn validate_update(&self, new: &dyn Object, old: &dyn Object, problems: &mut Problems);
    fn validate_status_update(&self, new: &dyn Object, old: &dyn Object, problems: &mut Problems);
}

/// The object as its own type. The caller looked its kind up, so it is of that type.
pub(super) fn typed<T: Resource>(object: &dyn Object) -> &T {
    object
        .as_any()
        .downcast_ref()
        .unwrap_or_else(|| wrong::<T>())
}

/// As [`typed`], to be changed.
pub(super) fn typed_mut<T: Resource>(object: &mut dyn Object) -> &mut T {
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

impl<T: Rules> Strategy for Of<T> {
    fn counts_generations(&self) -> bool {
        T::COUNTS_GENERATIONS
    }
    fn allows_unconditional_update(&self) -> bool {
        T::ALLOWS_UNCONDITIONAL_UPDATE
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
    fn validate(&self, new: &dyn Object, problems: &mut Problems) {
        typed::<T>(new).validate(problems);
    }
    fn validate_create(&self, new: &dyn Object, problems: &mut Problems) {
        typed::<T>(new).validate_create(problems);
    }
    fn validate_update(&self, new: &dyn Object, old: &dyn Object, problems: &mut Problems) {
        typed::<T>(new).validate_update(typed(old), problems);
    }
    fn validate_status_update(&self, new: &dyn Object, old: &dyn Object, problems: &mut Problems) {
        typed::<T>(new).validate_status_update(typed(old), problems);
    }
}

type Table = HashMap<&'static str, Box<dyn Strategy>>;

static STRATEGIES: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::new();
    add::<apps::Deployment>(&mut table);
    add::<apps::ReplicaSet>(&mut table);
    add::<coordination::Lease>(&mut table);
    add::<core::ConfigMap>(&mut table);
    add::<core::Event>(&mut table);
    add::<core::Namespace>(&mut table);
    add::<core::Node>(&mut table);
    add::<core::Pod>(&mut table);
    add::<core::Secret>(&mut table);
    add::<core::Service>(&mut table);
    add::<core::ServiceAccount>(&mut table);
    table
});

fn add<T: Rules>(table: &mut Table) {
    table.insert(T::TYPE_URL, Box::new(Of::<T>(PhantomData)));
}

/// The rules of a stored kind.
pub(super) fn of(kind: &Kind) -> &'static dyn Strategy {
    let strategy = STRATEGIES.get(kind.type_url.as_str());
    strategy
        .expect("a test asks for the rules of every kind")
        .as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_kind_has_its_rules() {
        for kind in setpoint_codec::kinds().iter() {
            assert!(!of(kind).check_name("no/good name").is_empty());
        }
    }
}
