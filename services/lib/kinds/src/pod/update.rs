//! Validation of updates of a Pod: few fields may change, and some more while it has scheduling gates.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_proto::core::{
    Affinity, Container, NodeAffinity, NodeSelectorTerm, Pod, PodSchedulingGate, PodSpec,
    Toleration,
};

use crate::validation::changes;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec::{APP_ARMOR, MIRROR};

const FEW_FIELDS: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Validates an update of a Pod.
pub(super) fn validate(new: &Pod, old: &Pod, errors: &mut FieldErrors) {
    validate_annotations(new, old, errors);
    let (path, new, old) = (FieldPath::root("spec"), &new.spec, &old.spec);
    for (new, old, field) in [
        (&new.containers, &old.containers, "containers"),
        (&new.init_containers, &old.init_containers, "initContainers"),
    ] {
        if new.len() != old.len() {
            let detail = "pod updates may not add or remove containers";
            errors.forbidden(&path.field(field), detail);
            return;
        }
    }
    if !validate_deadline(new, old, &path.field("activeDeadlineSeconds"), errors) {
        return;
    }
    if !only_adds(&new.tolerations, &old.tolerations) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.forbidden(&path.field("tolerations"), detail);
    }
    let gates = path.field("schedulingGates");
    validate_gates(&new.scheduling_gates, &old.scheduling_gates, &gates, errors);
    if new == old {
        return;
    }
    let mut kept = with_mutable_fields(old, new);
    if !old.scheduling_gates.is_empty() {
        validate_narrowed(&mut kept, new, &path, errors);
    }
    if kept != *new {
        let changes = changes::between::<Pod>(&kept, new);
        errors.forbidden(&path, format!("{FEW_FIELDS}{changes}"));
    }
}

/// Restores everything but the spec. Called on writes of parts of it.
pub(super) fn restore_all_but_spec(new: &mut Pod, old: &Pod) {
    new.status.clone_from(&old.status);
    let (meta, old) = (&mut new.metadata, &old.metadata);
    meta.labels.clone_from(&old.labels);
    meta.annotations.clone_from(&old.annotations);
    meta.finalizers.clone_from(&old.finalizers);
    meta.owner_references.clone_from(&old.owner_references);
}

/// Validates that immutable annotations stay: those of mirror Pods and of AppArmor profiles.
pub(super) fn validate_annotations(new: &Pod, old: &Pod, errors: &mut FieldErrors) {
    let (new, old) = (&new.metadata.annotations, &old.metadata.annotations);
    let path = FieldPath::root("metadata");
    let path = path.field("annotations");
    let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    for key in keys {
        let what = match key.as_str() {
            MIRROR => "mirror pod annotation",
            key if key.starts_with(APP_ARMOR) => "AppArmor annotations",
            _ => continue,
        };
        if !old.contains_key(key) {
            errors.forbidden(&path.key(key), format!("may not add {what}"));
        } else if old.get(key) != new.get(key) {
            errors.forbidden(&path.key(key), format!("may not remove or update {what}"));
        }
    }
}

/// Validates the active deadline, which may be set and reduced. Returns whether to validate further.
fn validate_deadline(
    new: &PodSpec,
    old: &PodSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) -> bool {
    match (new.active_deadline_seconds, old.active_deadline_seconds) {
        (Some(new), Some(old)) if new > old => {
            let detail = "must be less than or equal to previous value";
            errors.invalid(path, new, detail);
            return false;
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.invalid(path, None::<i64>, detail);
        }
        _ => {}
    }
    true
}

fn only_adds(new: &[Toleration], old: &[Toleration]) -> bool {
    fn kept(one: &Toleration) -> [&str; 4] {
        [&one.key, &one.operator, &one.value, &one.effect]
    }
    let new: BTreeSet<_> = new.iter().map(kept).collect();
    old.iter().map(kept).all(|old| new.contains(&old))
}

fn validate_gates(
    new: &[PodSchedulingGate],
    old: &[PodSchedulingGate],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let old: BTreeSet<_> = old.iter().map(|gate| &gate.name).collect();
    for (index, gate) in new.iter().enumerate() {
        if !old.contains(&gate.name) {
            let path = path.index(index);
            let name = &gate.name;
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(&path.field("name"), detail);
        }
    }
}

/// Returns the old spec with the mutable fields of the new one.
fn with_mutable_fields(old: &PodSpec, new: &PodSpec) -> PodSpec {
    fn take_images(containers: &mut [Container], from: &[Container]) {
        for (container, from) in containers.iter_mut().zip(from) {
            container.image.clone_from(&from.image);
        }
    }
    let mut spec = old.clone();
    take_images(&mut spec.containers, &new.containers);
    take_images(&mut spec.init_containers, &new.init_containers);
    spec.active_deadline_seconds = new.active_deadline_seconds;
    spec.tolerations.clone_from(&new.tolerations);
    spec.scheduling_gates.clone_from(&new.scheduling_gates);
    let was_negative = old
        .termination_grace_period_seconds
        .is_some_and(|grace| grace < 0);
    if was_negative && new.termination_grace_period_seconds == Some(1) {
        spec.termination_grace_period_seconds = Some(1);
    }
    spec
}

/// Validates that node selection only becomes narrower, while the Pod has scheduling gates.
fn validate_narrowed(
    kept: &mut PodSpec,
    new: &PodSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if !has_all(&new.node_selector, &kept.node_selector) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.invalid(&path.field("nodeSelector"), &new.node_selector, detail);
    }
    kept.node_selector.clone_from(&new.node_selector);
    let (old, now) = (node_affinity(kept), node_affinity(new));
    if old != now {
        let path = path.field("affinity");
        validate_terms(terms(now), terms(old), &path.field("nodeAffinity"), errors);
        let now = now.cloned();
        kept.affinity.get_or_insert_default().node_affinity = now;
        if kept.affinity == Some(Affinity::default()) {
            kept.affinity.clone_from(&new.affinity);
        }
    }
}

fn has_all(new: &BTreeMap<String, String>, old: &BTreeMap<String, String>) -> bool {
    old.iter().all(|(key, value)| new.get(key) == Some(value))
}

fn node_affinity(spec: &PodSpec) -> Option<&NodeAffinity> {
    spec.affinity.as_ref()?.node_affinity.as_ref()
}

fn terms(affinity: Option<&NodeAffinity>) -> &[NodeSelectorTerm] {
    let required = affinity.and_then(|affinity| {
        affinity
            .required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    required.map_or(&[], |required| &required.node_selector_terms)
}

fn validate_terms(
    new: &[NodeSelectorTerm],
    old: &[NodeSelectorTerm],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let path = path.field(REQUIRED);
    let path = path.field("nodeSelectorTerms");
    if old.is_empty() {
        return;
    }
    if new.len() != old.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.invalid(&path, new, detail);
        return;
    }
    for (index, (new, old)) in new.iter().zip(old).enumerate() {
        if !is_narrower(new, old) {
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.invalid(&path.index(index), new, detail);
        }
    }
}

/// Returns whether the term begins with the requirements of the old one. A term without requirements matches no node,
/// so additions to it would not make it narrower.
fn is_narrower(new: &NodeSelectorTerm, old: &NodeSelectorTerm) -> bool {
    let asks = |term: &NodeSelectorTerm| {
        !term.match_expressions.is_empty() || !term.match_fields.is_empty()
    };
    (asks(old) || !asks(new))
        && new.match_expressions.starts_with(&old.match_expressions)
        && new.match_fields.starts_with(&old.match_fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::metadata;

    /// Checks F40: the time is linear in the number of tolerations and finalizers.
    #[test]
    fn validating_many_tolerations_and_finalizers_is_fast() {
        let toleration = |n: usize| Toleration {
            key: format!("t{n}"),
            ..Default::default()
        };
        let tolerations: Vec<_> = (0..60_000).map(toleration).collect();
        let reversed: Vec<_> = tolerations.iter().rev().cloned().collect();
        assert!(only_adds(&reversed, &tolerations));
        assert!(!only_adds(&tolerations[1..], &tolerations));
        let mut old = Pod::default().metadata;
        old.finalizers = (0..60_000).map(|n| format!("a.io/{n}")).collect();
        old.deletion_timestamp = Some(Default::default());
        let mut new = old.clone();
        new.finalizers.reverse();
        let mut errors = FieldErrors::default();
        metadata::validate_update(&new, &old, &mut errors);
        assert_eq!(errors.to_string(), "[]");
    }
}
