//! [`StoredKind`]: what a kind adds to the options of its message.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_codec::Object;
use setpoint_model::names;
use setpoint_model::selector::Selector;
use setpoint_proto::setpoint::Wait;

use crate::validation::field_errors::FieldErrors;
use crate::validation::warnings::Warnings;
use crate::waits::Records;
use crate::{Identity, Subresource};

/// The role of a kind in running containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// None.
    Other,
    /// A node agent runs them.
    Pod,
    /// They control Pods, or other workloads.
    Workload,
}

/// The meaning of writes of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// They change intent or state: they are traced, counted, and checked for managers that overwrite each other.
    Changes,
    /// They renew something: they are traced only as parts of other traces.
    Heartbeats,
    /// They repeat the text of a span: they are never traced.
    Reports,
}

/// The replicas of an object with the subresource `scale`.
pub struct Replicas {
    /// The wanted number.
    pub desired: i32,
    /// The reason why `desired` is unknown, and 0: as upstream, a read fails with it, and a write does not.
    pub unknown: Option<String>,
    /// The number that the status reports.
    pub observed: i32,
    /// `None` if the object has no valid selector.
    pub selector: Option<Selector>,
}

/// Paths of fields.
pub type Paths = &'static [&'static [&'static str]];

/// A kind that is stored. A write calls `fill_defaults`, `prepare_…` and `validate…` in this order.
pub trait StoredKind: Object {
    /// Whether `metadata.generation` counts changes of the intent.
    const COUNTS_GENERATIONS: bool = false;
    /// Whether an update may leave out `metadata.resourceVersion`, and so replace any version.
    const ALLOWS_UNCONDITIONAL_UPDATE: bool = true;
    /// Whether an update of an object that does not exist creates it (upstream: `AllowCreateOnUpdate`).
    const CREATES_ON_UPDATE: bool = false;
    /// Whether the response to the deletion of an object is the object, instead of a `Status`.
    const RETURNS_DELETED: bool = false;
    /// Whether a deletion without a propagation policy orphans the dependants.
    const ORPHANS_BY_DEFAULT: bool = false;
    /// The warning of a deletion that orphans the dependants because it has no propagation policy.
    const ORPHAN_WARNING: Option<&'static str> = None;
    /// The version of Kubernetes that has deprecated the kind, and the kind to use instead.
    const DEPRECATION: Option<&'static str> = None;
    /// The role of its objects in running containers.
    const ROLE: Role = Role::Other;
    /// The fields that a write of the status restores, whatever it sends, so that nobody comes to own them by it.
    const STATUS_RESETS: Paths = &[&["spec"]];
    /// The meaning of its writes.
    const WRITES: Writes = Writes::Changes;
    /// Whether `waits` has the time of the next scheduled reconcile of an object.
    const WAITS_HAVE_NEXT_RECONCILE: bool = false;

    /// Sets the fields that the user left out. Called on create and on update.
    fn fill_defaults(&mut self) {}
    /// Removes the fields that a creator may not set.
    fn prepare_create(&mut self) {}
    /// Restores from `old` the fields that an update of the whole object may not change: above all the status.
    fn prepare_update(&mut self, _old: &Self) {}
    /// Restores from `old` the fields that a write of the status may not change: the spec, and parts of the metadata.
    fn prepare_status_update(&mut self, _old: &Self) {}
    /// Returns whether the intent differs from that of `old`.
    fn intent_changed(&self, _old: &Self) -> bool {
        false
    }
    /// Returns whether this generation was observed and everything it specifies is ready, according to the status;
    /// `None` for kinds without such a status.
    fn is_met(&self) -> Option<bool> {
        None
    }
    /// Returns the errors of a name.
    fn check_name(name: &str) -> Vec<String> {
        names::validate_dns_subdomain(name)
    }
    /// Validates the object except its metadata.
    fn validate(&self, _errors: &mut FieldErrors) {}
    /// Validates a new object. Called after `validate`.
    fn validate_create(&self, _errors: &mut FieldErrors) {}
    /// Validates a change. Called after `validate`.
    fn validate_update(&self, _old: &Self, _errors: &mut FieldErrors) {}
    /// Validates a change of the status. `validate` is not called.
    fn validate_status_update(&self, _old: &Self, _errors: &mut FieldErrors) {}

    /// Sets the fields that name the user who creates the object. Called before admission.
    fn set_requester(&mut self, _user: &Identity) {}
    /// Restores from `old` the fields that a write of the subresource may not change, for subresources that only this
    /// kind has.
    fn prepare_part_update(&mut self, _old: &Self, _part: Subresource) {}
    /// Validates a change of a subresource that only this kind has. `validate` is not called.
    fn validate_part_update(&self, _old: &Self, _part: Subresource, _errors: &mut FieldErrors) {}
    /// Warns of a valid object that is created, or that replaces `old` (upstream: `WarningsOnCreate`,
    /// `WarningsOnUpdate`). Called when generations have been counted.
    fn warn(&self, _old: Option<&Self>, _warnings: &mut Warnings) {}
    /// Warns of a valid status that is written.
    fn warn_of_status(&self, _warnings: &mut Warnings) {}

    /// Returns the replicas, for kinds with the subresource `scale`.
    fn scale(&self) -> Option<Replicas> {
        None
    }
    /// Sets the number of wanted replicas, for kinds with the subresource `scale`.
    fn set_replicas(&mut self, _replicas: i32) {}
    /// Assigns the object to a node, for kinds with the subresource `binding`.
    ///
    /// # Errors
    /// The reason why it cannot be assigned.
    fn bind(&mut self, _node: &str, _now: Timestamp) -> Result<(), String> {
        Err("objects of this kind are not assigned to nodes".to_owned())
    }
    /// Checks whether the object of this name may be deleted.
    ///
    /// # Errors
    /// The reason why it may not.
    fn check_delete(_name: &str) -> Result<(), &'static str> {
        Ok(())
    }
    /// Updates the status when a deletion begins. Returns the grace period in seconds; `requested` is that of the
    /// request.
    fn begin_deletion(&mut self, _requested: Option<i64>) -> i64 {
        0
    }
    /// Returns whether something besides `metadata.finalizers` holds back the end of a deletion.
    fn holds_deletion(&self) -> bool {
        false
    }

    /// Returns what the object waits for, as its spec and status and the records tell.
    fn waits(&self, _records: &Records<'_>) -> Vec<Wait> {
        Vec::new()
    }
    /// Returns the cell of a computed column of the kind's table; `None` if the column is not computed.
    fn cell(&self, _column: &str, _now: Timestamp) -> Option<Value> {
        None
    }
    /// Returns reason and message of the condition `Completed` of the object's row in a table, for kinds that come to
    /// an end.
    fn completion(&self) -> Option<(&str, &'static str)> {
        None
    }
}
