//! What every object's metadata must say, and what of it only the gateway may say.

use std::collections::BTreeMap;

use jiff::Timestamp;
use setpoint_model::names;
use setpoint_proto::meta::{ObjectMeta, OwnerReference};
use setpoint_proto::{ApiError, Reason};
use uuid::Uuid;

use super::path::Path;
use super::problems::Problems;
use super::target::Target;

/// All annotations of an object together, keys and values.
const ANNOTATIONS_MAX: usize = 256 << 10;

/// Finalizers of the garbage collector, which need no domain before them.
pub const ORPHAN: &str = "orphan";
/// See [`ORPHAN`].
pub const FOREGROUND: &str = "foregroundDeletion";

/// Gives a new object its identity, and takes out what only the gateway may set.
///
/// # Errors
/// `BadRequest` when the object claims to be stored already, or to belong somewhere else.
pub fn prepare_create(
    meta: &mut ObjectMeta,
    target: &Target,
    now: Timestamp,
) -> Result<(), ApiError> {
    if !meta.resource_version.is_empty() {
        return bad("resourceVersion should not be set on objects to be created");
    }
    settle(meta, target)?;
    meta.uid = Uuid::new_v4().to_string();
    meta.creation_timestamp = now.into();
    meta.deletion_timestamp = None;
    meta.deletion_grace_period_seconds = None;
    meta.generation = 0;
    clear_unkept(meta);
    Ok(())
}

/// Gives an update everything that it may not change.
///
/// # Errors
/// `BadRequest` when it is about another object.
pub fn prepare_update(
    meta: &mut ObjectMeta,
    old: &ObjectMeta,
    target: &Target,
) -> Result<(), ApiError> {
    settle(meta, target)?;
    meta.uid.clone_from(&old.uid);
    meta.creation_timestamp = old.creation_timestamp;
    meta.deletion_timestamp = old.deletion_timestamp;
    meta.deletion_grace_period_seconds = old.deletion_grace_period_seconds;
    meta.generation = old.generation;
    meta.generate_name.clone_from(&old.generate_name);
    meta.resource_version.clear();
    clear_unkept(meta);
    Ok(())
}

/// The object's place is the one in the request, which the object may repeat but not contradict.
fn settle(meta: &mut ObjectMeta, target: &Target) -> Result<(), ApiError> {
    if meta.namespace.is_empty() {
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

/// Field managers are recorded once server-side apply exists; until then the list would only go stale.
fn clear_unkept(meta: &mut ObjectMeta) {
    meta.self_link.clear();
    meta.managed_fields.clear();
}

/// Finds what is wrong with the metadata of an object that has its name.
pub fn validate(meta: &ObjectMeta, name: Vec<String>, problems: &mut Problems) {
    let path = Path::root("metadata");
    if meta.name.is_empty() {
        problems.required(&path.field("name"), "name or generateName is required");
    } else {
        problems.all_invalid(&path.field("name"), &meta.name, name);
    }
    validate_labels(&meta.labels, &path.field("labels"), problems);
    validate_annotations(&meta.annotations, &path.field("annotations"), problems);
    validate_owners(
        &meta.owner_references,
        &path.field("ownerReferences"),
        problems,
    );
    let finalizers = path.field("finalizers");
    for (index, finalizer) in meta.finalizers.iter().enumerate() {
        validate_finalizer(finalizer, &finalizers.index(index), problems);
    }
}

/// Finds what is wrong with a change of metadata.
pub fn validate_update(meta: &ObjectMeta, old: &ObjectMeta, problems: &mut Problems) {
    if meta.deletion_timestamp.is_none() {
        return;
    }
    let is_new = |finalizer: &&String| !old.finalizers.contains(finalizer);
    let new: Vec<_> = meta.finalizers.iter().filter(is_new).collect();
    if !new.is_empty() {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers {new:?}"
        );
        problems.forbidden(&Path::root("metadata").field("finalizers"), detail);
    }
}

/// Finds what is wrong with labels, or with a selector that is written like them.
pub fn validate_labels(
    labels: &BTreeMap<String, String>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    for (key, value) in labels {
        problems.all_invalid(path, key, names::validate_label_key(key));
        problems.all_invalid(path, value, names::validate_label_value(value));
    }
}

/// Finds what is wrong with annotations.
pub fn validate_annotations(
    annotations: &BTreeMap<String, String>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let mut size = 0;
    for (key, value) in annotations {
        // Keys may be written in upper case too.
        problems.all_invalid(
            path,
            key,
            names::validate_qualified_name(&key.to_lowercase()),
        );
        size += key.len() + value.len();
    }
    if size > ANNOTATIONS_MAX {
        problems.too_long(path, ANNOTATIONS_MAX);
    }
}

fn validate_owners(owners: &[OwnerReference], path: &Path<'_>, problems: &mut Problems) {
    let mut controller: Option<&OwnerReference> = None;
    for (index, owner) in owners.iter().enumerate() {
        let at = path.index(index);
        for (value, field) in [
            (&owner.api_version, "apiVersion"),
            (&owner.kind, "kind"),
            (&owner.name, "name"),
            (&owner.uid, "uid"),
        ] {
            if value.is_empty() {
                problems.invalid(
                    &at.field(field),
                    value,
                    format_args!("{field} must not be empty"),
                );
            }
        }
        if owner.controller != Some(true) {
            continue;
        }
        if let Some(first) = controller.replace(owner) {
            let detail = format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {}/{} and {}/{}",
                first.kind, first.name, owner.kind, owner.name
            );
            problems.invalid(path, owners, detail);
        }
    }
}

fn validate_finalizer(finalizer: &str, path: &Path<'_>, problems: &mut Problems) {
    problems.all_invalid(path, finalizer, names::validate_qualified_name(finalizer));
    let plain = [ORPHAN, FOREGROUND, "kubernetes"];
    if !finalizer.contains('/') && !plain.contains(&finalizer) {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        problems.invalid(path, finalizer, detail);
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
        let mut problems = Problems::default();
        validate(&meta, Vec::new(), &mut problems);
        problems.to_string()
    }

    #[test]
    fn a_creator_cannot_set_what_is_the_gateways_to_set() {
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
    fn an_object_cannot_contradict_its_request() {
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
        meta.resource_version = "1".into();
        let error = prepare_create(&mut meta, &target(""), Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(error.reason, Reason::BadRequest);
    }

    #[test]
    fn labels_and_annotations_are_checked() {
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
    fn an_object_has_one_controller_at_most() {
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
        assert!(complaint.contains(
            "metadata.ownerReferences[0].uid: Invalid value: \"\": uid must not be empty"
        ));
    }

    #[test]
    fn finalizers_have_a_domain_and_come_before_the_deletion() {
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
        let mut problems = Problems::default();
        validate_update(&meta, &ObjectMeta::default(), &mut problems);
        assert_eq!(
            problems.to_string(),
            r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers ["a.io/b"]"#
        );
        meta.deletion_timestamp = None;
        let mut problems = Problems::default();
        validate_update(&meta, &ObjectMeta::default(), &mut problems);
        assert_eq!(problems.to_string(), "[]");
    }
}
