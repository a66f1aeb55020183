//! StatefulSet: claims for each Pod, and a spec of which few fields can be changed.

mod waits;
mod warnings;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_model::selector::Selector;
use setpoint_proto::apps::{
    StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec,
    StatefulSetUpdateStrategy,
};
use setpoint_proto::core::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, PodTemplateSpec, Volume, VolumeSource,
};
use setpoint_proto::meta::IntOrString;
use setpoint_proto::setpoint::Wait;

use super::template;
use super::{Replicas, Role, StoredKind};
use crate::validation::amount::{self, Amount};
use crate::validation::claim as claim_spec;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::Warnings;
use crate::validation::{label_selector, podspec, set_default};
use crate::waits::{Records, Rollout};

const POLICIES: &[&str] = &["Delete", "Retain"];

impl StoredKind for StatefulSet {
    const ROLE: Role = Role::Workload;
    const COUNTS_GENERATIONS: bool = true;

    fn fill_defaults(&mut self) {
        let spec = &mut self.spec;
        set_default(&mut spec.pod_management_policy, "OrderedReady");
        fill_strategy(&mut spec.update_strategy);
        let policy = &mut spec.persistent_volume_claim_retention_policy;
        let policy = policy.get_or_insert_default();
        set_default(&mut policy.when_deleted, "Retain");
        set_default(&mut policy.when_scaled, "Retain");
        spec.replicas.get_or_insert(1);
        spec.revision_history_limit.get_or_insert(10);
        podspec::fill_defaults(&mut spec.template.spec);
        spec.volume_claim_templates.iter_mut().for_each(fill_claim);
    }

    fn prepare_create(&mut self) {
        self.status = Default::default();
    }

    fn prepare_update(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
    }

    fn intent_changed(&self, old: &Self) -> bool {
        self.spec != old.spec
    }

    fn check_name(name: &str) -> Vec<String> {
        names::validate_dns_label(name)
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (path, spec) = (FieldPath::root("spec"), &self.spec);
        let policy = spec.pod_management_policy.as_str();
        if !["OrderedReady", "Parallel"].contains(&policy) {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            errors.invalid(&path.field("podManagementPolicy"), policy, detail);
        }
        validate_strategy(&spec.update_strategy, &path.field("updateStrategy"), errors);
        if let Some(policy) = &spec.persistent_volume_claim_retention_policy {
            let path = path.field("persistentVolumeClaimRetentionPolicy");
            validate_retention(policy, &path, errors);
        }
        errors.non_negative(&path.field("replicas"), spec.replicas.unwrap_or_default());
        errors.non_negative(&path.field("minReadySeconds"), spec.min_ready_seconds);
        if let Some(ordinals) = &spec.ordinals {
            errors.non_negative(&path.field("ordinals").field("start"), ordinals.start);
        }
        validate_selector(spec, &path, errors);
        template::validate_endless(
            &spec.template,
            "StatefulSet",
            &path.field("template"),
            errors,
        );
    }

    /// Validates what cannot be changed later.
    fn validate_create(&self, errors: &mut FieldErrors) {
        let path = FieldPath::root("spec");
        let claims = path.field("volumeClaimTemplates");
        for (index, claim) in self.spec.volume_claim_templates.iter().enumerate() {
            let path = claims.index(index);
            claim_spec::validate_spec(&claim.spec, &path.field("spec"), errors);
        }
        let service = self.spec.service_name.as_str();
        if !service.is_empty() {
            errors.check(
                &path.field("serviceName"),
                service,
                names::validate_dns_label,
            );
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        let (new, old) = (&self.spec, &old.spec);
        let mutable = StatefulSetSpec {
            replicas: old.replicas,
            template: old.template.clone(),
            update_strategy: old.update_strategy.clone(),
            min_ready_seconds: old.min_ready_seconds,
            ordinals: old.ordinals,
            revision_history_limit: old.revision_history_limit,
            persistent_volume_claim_retention_policy: old
                .persistent_volume_claim_retention_policy
                .clone(),
            ..new.clone()
        };
        if mutable != *old {
            let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                'minReadySeconds' are forbidden";
            errors.forbidden(&FieldPath::root("spec"), detail);
        }
    }

    fn validate_status_update(&self, old: &Self, errors: &mut FieldErrors) {
        let (path, status) = (FieldPath::root("status"), &self.status);
        let counts = [
            ("readyReplicas", status.ready_replicas),
            ("currentReplicas", status.current_replicas),
            ("updatedReplicas", status.updated_replicas),
            ("availableReplicas", status.available_replicas),
        ];
        template::validate_counts(status.replicas, &counts, &path, errors);
        errors.non_negative(
            &path.field("observedGeneration"),
            status.observed_generation,
        );
        if status.available_replicas > status.ready_replicas {
            let at = path.field("availableReplicas");
            let detail = "cannot be greater than status.readyReplicas";
            errors.invalid(&at, status.available_replicas, detail);
        }
        let collisions = old.status.collision_count;
        template::validate_collisions(status.collision_count, collisions, &path, errors);
    }

    fn warn(&self, old: Option<&Self>, warnings: &mut Warnings) {
        template::warn_of_change(self, old, &self.spec.template, warnings);
        warnings::warn(&self.spec, old.is_some(), warnings);
    }

    template::scale_items!();

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        match column {
            "Ready" => {
                let wanted = self.spec.replicas.unwrap_or_default();
                Some(format!("{}/{wanted}", self.status.ready_replicas).into())
            }
            _ => template::cell(column, &self.spec.template, None),
        }
    }

    fn waits(&self, records: &Records<'_>) -> Vec<Wait> {
        let status = &self.status;
        let rollout = Rollout {
            observed_generation: status.observed_generation,
            wanted: self.spec.replicas.unwrap_or_default(),
            ready: status.ready_replicas,
            ..Rollout::default()
        };
        let mut waits = rollout.waits(self.metadata.generation);
        waits.extend(waits::waits(self, records.pods));
        waits
    }
}

fn fill_strategy(strategy: &mut StatefulSetUpdateStrategy) {
    if strategy.r#type.is_empty() {
        strategy.r#type = "RollingUpdate".into();
        strategy.rolling_update.get_or_insert_default();
    }
    if strategy.r#type == "RollingUpdate"
        && let Some(rolling) = &mut strategy.rolling_update
    {
        rolling.partition.get_or_insert(0);
    }
}

fn fill_claim(claim: &mut PersistentVolumeClaim) {
    set_default(&mut claim.status.phase, "Pending");
    claim_spec::fill_defaults(&mut claim.spec);
    podspec::canonicalise(&mut claim.status.capacity);
    podspec::canonicalise(&mut claim.status.allocated_resources);
}

fn validate_strategy(
    strategy: &StatefulSetUpdateStrategy,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("rollingUpdate");
    match (strategy.r#type.as_str(), &strategy.rolling_update) {
        ("OnDelete", Some(rolling)) => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            errors.invalid(&at, rolling, detail);
        }
        ("RollingUpdate", Some(rolling)) => {
            let partition = rolling.partition.unwrap_or_default();
            errors.non_negative(&at.field("partition"), partition);
            if let Some(max) = &rolling.max_unavailable {
                validate_max_unavailable(max, &at.field("maxUnavailable"), errors);
            }
        }
        ("OnDelete" | "RollingUpdate", None) => {}
        _ => errors.invalid(path, strategy, "must be 'RollingUpdate' or 'OnDelete'"),
    }
}

/// Validates `maxUnavailable` as upstream does behind its feature gate. The field has no default: without it, updates
/// are those of clusters where the gate is off.
fn validate_max_unavailable(max: &IntOrString, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if Amount::validate(max, path, errors).is_zero() {
        errors.invalid(path, max, "cannot be 0");
    }
    amount::validate_percentage(max, path, errors);
}

fn validate_retention(
    policy: &StatefulSetPersistentVolumeClaimRetentionPolicy,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (field, value) in [
        ("whenDeleted", &policy.when_deleted),
        ("whenScaled", &policy.when_scaled),
    ] {
        errors.one_of(&path.field(field), value.as_str(), POLICIES);
    }
}

/// Validates the selector and the template, and that they match.
fn validate_selector(spec: &StatefulSetSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (selector, at) = (spec.selector.as_ref(), path.field("selector"));
    if selector.is_none() {
        errors.required(&at, "");
    }
    let before = errors.count();
    label_selector::validate(selector, &at, errors);
    let malformed = errors.count() > before;
    if selector.is_some_and(label_selector::is_empty) {
        errors.invalid(&at, selector, "empty selector is invalid for statefulset");
    }
    let parsed = selector.map(Selector::from_label_selector).transpose();
    let Some(parsed) = parsed.ok().filter(|_| !malformed) else {
        errors.invalid(&at, selector, "");
        return;
    };
    let (template, path) = (with_claims(spec), path.field("template"));
    if parsed.as_ref().is_none_or(|parsed| !parsed.is_empty()) {
        template::validate_labels(parsed.as_ref(), &template, &path, errors);
    }
    template::validate_template(&template, &path, errors);
    // Upstream validates the metadata twice, too.
    template::validate_metadata(&template, &path, errors);
}

/// Returns the template with the volumes of the claims, and without the names that the controller sets.
fn with_claims(spec: &StatefulSetSpec) -> PodTemplateSpec {
    let mut template = spec.template.clone();
    template.spec.subdomain.clear();
    template.spec.hostname.clear();
    let claims = &spec.volume_claim_templates;
    let is_claim = |name: &str| claims.iter().any(|claim| claim.metadata.name == name);
    let others = template.spec.volumes;
    let others = others.into_iter().filter(|volume| !is_claim(&volume.name));
    // As upstream, several claims of one name are accepted.
    let mut names = BTreeSet::new();
    let distinct = claims
        .iter()
        .filter(|claim| names.insert(&claim.metadata.name));
    template.spec.volumes = distinct.map(volume_of).chain(others).collect();
    template
}

fn volume_of(claim: &PersistentVolumeClaim) -> Volume {
    let name = &claim.metadata.name;
    Volume {
        name: name.clone(),
        volume_source: VolumeSource {
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: name.clone(),
                ..Default::default()
            }),
            ..Default::default()
        },
    }
}
