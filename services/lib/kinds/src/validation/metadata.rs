//! Preparation and validation of the metadata of all kinds.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::Timestamp;
use prost::Message as _;
use setpoint_codec::Kind;
use setpoint_model::names;
use setpoint_proto::meta::{ObjectMeta, OwnerReference};
use setpoint_proto::{ApiError, Reason};
use uuid::Uuid;

use crate::Target;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// The largest total size of the keys and values of annotations, in bytes.
const ANNOTATIONS_MAX: usize = 256 << 10;

/// The finalizer of the garbage collector that orphans dependants. It needs no domain.
pub const ORPHAN: &str = "orphan";
/// The finalizer of the garbage collector that waits for the deletion of dependants. It needs no domain.
pub const FOREGROUND: &str = "foregroundDeletion";

/// Gives a new object its identity, and clears the fields that only the gateway may set.
///
/// # Errors
/// `BadRequest` when its namespace or name is not that of the target.
pub fn prepare_create(
    meta: &mut ObjectMeta,
    target: &Target,
    now: Timestamp,
) -> Result<(), ApiError> {
    match_target(meta, target)?;
    meta.uid = Uuid::new_v4().to_string();
    meta.creation_timestamp = now.into();
    meta.deletion_timestamp = None;
    meta.deletion_grace_period_seconds = None;
    meta.generation = 0;
    meta.self_link.clear();
    Ok(())
}

/// Restores from `old` the fields that an update may not change.
///
/// # Errors
/// `BadRequest` when its namespace or name is not that of the target.
pub fn prepare_update(
    meta: &mut ObjectMeta,
    old: &ObjectMeta,
    target: &Target,
) -> Result<(), ApiError> {
    match_target(meta, target)?;
    meta.uid.clone_from(&old.uid);
    meta.creation_timestamp = old.creation_timestamp;
    if old.deletion_timestamp.is_some() {
        meta.deletion_timestamp = old.deletion_timestamp;
        meta.deletion_grace_period_seconds = old.deletion_grace_period_seconds;
    }
    meta.generation = old.generation;
    meta.resource_version.clear();
    meta.self_link.clear();
    Ok(())
}

/// Copies from `old` the labels, annotations, owners, finalizers and `generateName` that `meta` leaves empty.
pub fn keep_unset(meta: &mut ObjectMeta, old: &ObjectMeta) {
    if meta.labels.is_empty() {
        meta.labels.clone_from(&old.labels);
    }
    if meta.annotations.is_empty() {
        meta.annotations.clone_from(&old.annotations);
    }
    if meta.owner_references.is_empty() {
        meta.owner_references.clone_from(&old.owner_references);
    }
    if meta.finalizers.is_empty() {
        meta.finalizers.clone_from(&old.finalizers);
    }
    if meta.generate_name.is_empty() {
        meta.generate_name.clone_from(&old.generate_name);
    }
}

/// Removes owners that are listed more than once. Returns a warning, if there are any; `after` says after which step
/// they were found.
pub fn remove_duplicate_owners(meta: &mut ObjectMeta, after: &str) -> Option<String> {
    // Nearly all objects have at most one, which need not be encoded.
    if meta.owner_references.len() < 2 {
        return None;
    }
    let mut seen = HashSet::new();
    let mut duplicates = Vec::new();
    meta.owner_references.retain(|owner| {
        let is_new = seen.insert(owner.encode_to_vec());
        if !is_new {
            duplicates.push(owner.uid.clone());
        }
        is_new
    });
    if duplicates.is_empty() {
        return None;
    }
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries{after}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        duplicates.join(", ")
    ))
}

/// Restores from `old` the metadata that a write of the status does not change in kinds that were added to Kubernetes
/// later (upstream: `ResetObjectMetaForStatus`).
pub fn keep_for_status(meta: &mut ObjectMeta, old: &ObjectMeta) {
    meta.labels.clone_from(&old.labels);
    meta.annotations.clone_from(&old.annotations);
    meta.owner_references.clone_from(&old.owner_references);
    meta.finalizers.clone_from(&old.finalizers);
}

/// Sets namespace and name to those of the target. Returns `BadRequest` if the object has others.
pub fn match_target(meta: &mut ObjectMeta, target: &Target) -> Result<(), ApiError> {
    // The namespace of a cluster-scoped object is cleared, as in Kubernetes.
    if meta.namespace.is_empty() || target.namespace.is_empty() {
        meta.namespace.clone_from(&target.namespace);
    } else if meta.namespace != target.namespace {
        return bad(
            "the namespace of the provided object does not match the namespace sent on the request",
        );
    }
    if !target.name.is_empty() {
        if meta.name.is_empty() {
            meta.name.clone_from(&target.name);
        } else if meta.name != target.name {
            return bad(format!(
                "the name of the object ({}) does not match the name on the URL ({})",
                meta.name, target.name
            ));
        }
    }
    Ok(())
}

fn bad<T>(message: impl Into<String>) -> Result<T, ApiError> {
    Err(ApiError::new(Reason::BadRequest, message))
}

/// Validates the metadata of an object of a kind, after its name was generated.
pub fn validate(
    kind: &Kind,
    meta: &ObjectMeta,
    check_name: impl Fn(&str) -> Vec<String>,
    errors: &mut FieldErrors,
) {
    let path = FieldPath::root("metadata");
    if !meta.generate_name.is_empty() {
        let wrong = check_name(&mask_trailing_hyphen(&meta.generate_name));
        errors.all_invalid(&path.field("generateName"), &meta.generate_name, wrong);
    }
    if meta.name.is_empty() {
        errors.required(&path.field("name"), "name or generateName is required");
    } else {
        errors.check(&path.field("name"), &meta.name, check_name);
    }
    validate_mutable(kind, meta, errors);
}

/// Replaces a hyphen at the end of a name prefix, which is valid there since a suffix follows (upstream:
/// `maskTrailingDash`).
fn mask_trailing_hyphen(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a"),
        _ => prefix.to_owned(),
    }
}

/// Validates the fields of the metadata that a user may change. Finalizers of custom objects need no domain, as
/// upstream.
fn validate_mutable(kind: &Kind, meta: &ObjectMeta, errors: &mut FieldErrors) {
    let path = FieldPath::root("metadata");
    validate_labels(&meta.labels, &path.field("labels"), errors);
    validate_annotations(&meta.annotations, &path.field("annotations"), errors);
    let owners = path.field("ownerReferences");
    validate_owners(&meta.owner_references, &owners, errors);
    let finalizers = path.field("finalizers");
    validate_finalizers(&meta.finalizers, &finalizers, errors);
    if !kind.is_custom() {
        for (index, finalizer) in meta.finalizers.iter().enumerate() {
            validate_finalizer_domain(finalizer, &finalizers.index(index), errors);
        }
    }
}

fn validate_finalizers(finalizers: &[String], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for finalizer in finalizers {
        errors.check(path, finalizer, names::validate_qualified_name);
    }
    let names = |name| finalizers.iter().any(|finalizer| finalizer == name);
    if names(ORPHAN) && names(FOREGROUND) {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        errors.invalid(path, finalizers, detail);
    }
}

/// Validates the metadata of a write of the status.
pub fn validate_status_update(
    kind: &Kind,
    meta: &ObjectMeta,
    old: &ObjectMeta,
    errors: &mut FieldErrors,
) {
    validate_mutable(kind, meta, errors);
    validate_update(meta, old, errors);
}

/// Validates a change of metadata. Called after [`validate`].
pub fn validate_update(meta: &ObjectMeta, old: &ObjectMeta, errors: &mut FieldErrors) {
    let path = FieldPath::root("metadata");
    let (new_end, old_end) = (&meta.deletion_timestamp, &old.deletion_timestamp);
    errors.immutable(&path.field("deletionTimestamp"), new_end, old_end);
    errors.immutable(
        &path.field("deletionGracePeriodSeconds"),
        &meta.deletion_grace_period_seconds,
        &old.deletion_grace_period_seconds,
    );
    if old.deletion_timestamp.is_none() {
        return;
    }
    let known: BTreeSet<_> = old.finalizers.iter().collect();
    let new: BTreeSet<_> = meta.finalizers.iter().collect();
    let new: Vec<_> = new.difference(&known).collect();
    if !new.is_empty() {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers {new:?}"
        );
        errors.forbidden(&path.field("finalizers"), detail);
    }
}

/// Validates labels, or the `matchLabels` of a selector.
pub fn validate_labels(
    labels: &BTreeMap<String, String>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (key, value) in labels {
        errors.check(path, key, names::validate_label_key);
        errors.check(path, value, names::validate_label_value);
    }
}

/// Validates annotations.
pub fn validate_annotations(
    annotations: &BTreeMap<String, String>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let mut size = 0;
    for (key, value) in annotations {
        // Keys may have upper-case letters.
        errors.all_invalid(
            path,
            key,
            names::validate_qualified_name(&key.to_lowercase()),
        );
        size += key.len() + value.len();
    }
    if size > ANNOTATIONS_MAX {
        errors.too_long(path, ANNOTATIONS_MAX);
    }
}

fn validate_owners(owners: &[OwnerReference], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut controller: Option<&OwnerReference> = None;
    for owner in owners {
        validate_owner(owner, path, errors);
        if owner.controller != Some(true) {
            continue;
        }
        let first = *controller.get_or_insert(owner);
        if !std::ptr::eq(first, owner) {
            let detail = format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {}/{} and {}/{}",
                first.kind, first.name, owner.kind, owner.name
            );
            errors.invalid(path, owners, detail);
        }
    }
}

/// Validates an owner reference. Upstream names the list, not the entry, as the field.
fn validate_owner(owner: &OwnerReference, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let version = match owner.api_version.split_once('/') {
        Some((_, version)) if version.contains('/') => "",
        Some((_, version)) => version,
        None => &owner.api_version,
    };
    if version.is_empty() {
        let detail = "version must not be empty";
        errors.invalid(&path.field("apiVersion"), &owner.api_version, detail);
    }
    for (value, field) in [
        (&owner.kind, "kind"),
        (&owner.name, "name"),
        (&owner.uid, "uid"),
    ] {
        if value.is_empty() {
            errors.invalid(&path.field(field), value, "must not be empty");
        }
    }
    if (owner.api_version.as_str(), owner.kind.as_str()) == ("v1", "Event") {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        errors.invalid(path, owner, detail);
    }
}

/// Returns whether a finalizer has no domain, and is no standard one.
pub fn lacks_domain(finalizer: &str) -> bool {
    let standard = [ORPHAN, FOREGROUND, "kubernetes"];
    !finalizer.contains('/') && !standard.contains(&finalizer)
}

/// Validates that a finalizer has a domain, unless it is a standard one.
pub fn validate_finalizer_domain(finalizer: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if lacks_domain(finalizer) {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.invalid(path, finalizer, detail);
    }
}

#[cfg(test)]
mod tests {
    use setpoint_codec::kinds;

    use super::*;

    fn target(name: &str) -> Target {
        let kind = kinds().by_resource("pods").unwrap();
        Target::new(kind, "default", name, "").unwrap()
    }

    fn complaints(change: impl FnOnce(&mut ObjectMeta)) -> String {
        let mut meta = ObjectMeta {
            name: "web".into(),
            ..Default::default()
        };
        change(&mut meta);
        let mut errors = FieldErrors::default();
        validate(target("web").kind, &meta, |_| Vec::new(), &mut errors);
        errors.to_string()
    }

    #[test]
    fn a_create_ignores_fields_that_only_the_gateway_sets() {
        let mut meta = ObjectMeta {
            name: "web".into(),
            uid: "mine".into(),
            generation: 7,
            deletion_timestamp: Some(Default::default()),
            ..Default::default()
        };
        let now = Timestamp::from_second(1_000).unwrap();
        prepare_create(&mut meta, &target(""), now).unwrap();
        assert_ne!(meta.uid, "mine");
        assert_eq!(meta.creation_timestamp.timestamp(), Some(now));
        assert_eq!((meta.generation, meta.deletion_timestamp), (0, None));
        assert_eq!(meta.namespace, "default");
    }

    #[test]
    fn an_object_must_match_the_target_of_its_request() {
        let mut meta = ObjectMeta {
            namespace: "other".into(),
            ..Default::default()
        };
        let error = prepare_create(&mut meta, &target(""), Timestamp::UNIX_EPOCH).unwrap_err();
        assert!(
            error
                .message
                .contains("does not match the namespace sent on the request")
        );
        let mut meta = ObjectMeta {
            name: "web".into(),
            ..Default::default()
        };
        let error = prepare_update(&mut meta, &ObjectMeta::default(), &target("db")).unwrap_err();
        assert_eq!(
            error.message,
            "the name of the object (web) does not match the name on the URL (db)"
        );
    }

    #[test]
    fn labels_annotations_and_the_name_are_validated() {
        let complaint = complaints(|meta| {
            meta.labels.insert("a b".into(), "v".into());
        });
        assert!(complaint.starts_with(r#"metadata.labels: Invalid value: "a b": name part"#));
        let complaint = complaints(|meta| {
            meta.annotations
                .insert("big".into(), "x".repeat(ANNOTATIONS_MAX));
        });
        assert_eq!(
            complaint,
            "metadata.annotations: Too long: may not be more than 262144 bytes"
        );
        assert_eq!(
            complaints(|meta| meta.name.clear()),
            "metadata.name: Required value: name or generateName is required"
        );
    }

    #[test]
    fn owners_that_are_listed_twice_are_removed() {
        let owner = |name: &str| OwnerReference {
            name: name.into(),
            uid: "1".into(),
            ..Default::default()
        };
        let remaining = |owners: &[&str]| {
            let mut meta = ObjectMeta {
                owner_references: owners.iter().map(|name| owner(name)).collect(),
                ..Default::default()
            };
            let warning = remove_duplicate_owners(&mut meta, "");
            (meta.owner_references.len(), warning.is_some())
        };
        assert_eq!(remaining(&["a"]), (1, false));
        assert_eq!(remaining(&["a", "b"]), (2, false));
        assert_eq!(remaining(&["a", "b", "a"]), (2, true));
    }

    #[test]
    fn an_object_has_at_most_one_controller() {
        let owner = OwnerReference {
            api_version: "v1".into(),
            kind: "Node".into(),
            name: "a".into(),
            uid: "1".into(),
            controller: Some(true),
            ..Default::default()
        };
        assert_eq!(
            complaints(|meta| meta.owner_references = vec![owner.clone()]),
            "[]"
        );
        let complaint = complaints(|meta| meta.owner_references = vec![owner.clone(), owner]);
        assert!(complaint.contains("Only one reference can have Controller set to true"));
        let complaint = complaints(|meta| meta.owner_references = vec![OwnerReference::default()]);
        assert!(
            complaint
                .contains("metadata.ownerReferences.uid: Invalid value: \"\": must not be empty")
        );
    }

    #[test]
    fn finalizers_have_a_domain_and_are_not_added_during_a_deletion() {
        assert_eq!(
            complaints(|meta| meta.finalizers = vec!["a.io/b".into(), ORPHAN.into()]),
            "[]"
        );
        let complaint = complaints(|meta| meta.finalizers = vec!["mine".into()]);
        assert!(complaint.contains("neither a standard finalizer name nor is it fully qualified"));

        let mut meta = ObjectMeta {
            deletion_timestamp: Some(Default::default()),
            finalizers: vec!["a.io/b".into()],
            ..Default::default()
        };
        let mut errors = FieldErrors::default();
        let mut old = ObjectMeta {
            deletion_timestamp: meta.deletion_timestamp,
            ..Default::default()
        };
        validate_update(&meta, &old, &mut errors);
        assert_eq!(
            errors.to_string(),
            r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers ["a.io/b"]"#
        );
        meta.deletion_timestamp = None;
        old.deletion_timestamp = None;
        let mut errors = FieldErrors::default();
        validate_update(&meta, &old, &mut errors);
        assert_eq!(errors.to_string(), "[]");
    }
}
