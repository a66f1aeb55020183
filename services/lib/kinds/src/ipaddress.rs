//! IPAddress: the name is the address, and the parent is immutable.
//!
//! The gateway creates none for the addresses of Services, whose uniqueness it guarantees in another way.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::networking::{IpAddress, ParentReference};

use super::StoredKind;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::ip;

impl StoredKind for IpAddress {
    fn check_name(name: &str) -> Vec<String> {
        ip::check_canonical(name)
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let path = FieldPath::root("spec");
        let path = path.field("parentRef");
        match &self.spec.parent_ref {
            None => errors.required(&path, ""),
            Some(parent) => validate_parent(parent, &path, errors),
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        let path = FieldPath::root("spec");
        let (new, old) = (&self.spec.parent_ref, &old.spec.parent_ref);
        errors.immutable(&path.field("parentRef"), new, old);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let parent = self.spec.parent_ref.as_ref();
        (column == "ParentRef").then(|| parent.map_or_else(|| "<none>".into(), parent_cell))
    }
}

fn validate_parent(parent: &ParentReference, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if !parent.group.is_empty() {
        let at = path.field("group");
        errors.check(&at, &parent.group, names::validate_dns_subdomain);
    }
    let check = names::validate_path_segment;
    errors.check_required(&path.field("resource"), &parent.resource, check);
    errors.check_required(&path.field("name"), &parent.name, check);
    errors.check(&path.field("namespace"), &parent.namespace, check);
}

fn parent_cell(parent: &ParentReference) -> Value {
    let resource = match parent.group.as_str() {
        "" => parent.resource.to_lowercase(),
        group => format!("{}.{group}", parent.resource).to_lowercase(),
    };
    match parent.namespace.as_str() {
        "" => format!("{resource}/{}", parent.name).into(),
        namespace => format!("{resource}/{namespace}/{}", parent.name).into(),
    }
}
