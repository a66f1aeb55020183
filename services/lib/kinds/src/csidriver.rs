//! CSIDriver: the need to attach volumes and the lifecycle modes are immutable.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::storage::{CsiDriver, CsiDriverSpec, TokenRequest};

use super::StoredKind;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::Warnings;

const GROUP_POLICIES: &[&str] = &["File", "None", "ReadWriteOnceWithFSType"];
const MODES: &[&str] = &["Persistent", "Ephemeral"];
/// The shortest and the longest validity of tokens, in seconds.
const TOKEN_MIN: i64 = 600;
const TOKEN_MAX: i64 = 1 << 32;
/// The shortest period of updates of allocatable volumes, in seconds.
const UPDATE_PERIOD_MIN: i64 = 10;

impl StoredKind for CsiDriver {
    const RETURNS_DELETED: bool = true;
    const COUNTS_GENERATIONS: bool = true;
    const ALLOWS_UNCONDITIONAL_UPDATE: bool = false;

    fn fill_defaults(&mut self) {
        let spec = &mut self.spec;
        spec.attach_required.get_or_insert(true);
        spec.pod_info_on_mount.get_or_insert(false);
        spec.storage_capacity.get_or_insert(false);
        let policy = &mut spec.fs_group_policy;
        policy.get_or_insert_with(|| "ReadWriteOnceWithFSType".into());
        if spec.volume_lifecycle_modes.is_empty() {
            spec.volume_lifecycle_modes.push("Persistent".into());
        }
        spec.requires_republish.get_or_insert(false);
        spec.se_linux_mount.get_or_insert(false);
    }

    /// Removes the field of a feature that Kubernetes has disabled by default.
    fn prepare_create(&mut self) {
        self.spec.prevent_pod_scheduling_if_missing = None;
    }

    fn prepare_update(&mut self, old: &Self) {
        if old.spec.prevent_pod_scheduling_if_missing.is_none() {
            self.spec.prevent_pod_scheduling_if_missing = None;
        }
    }

    fn intent_changed(&self, old: &Self) -> bool {
        self.spec != old.spec
    }

    fn validate(&self, errors: &mut FieldErrors) {
        validate_spec(&self.spec, &FieldPath::root("spec"), errors);
    }

    fn warn(&self, old: Option<&Self>, warnings: &mut Warnings) {
        let spec = &self.spec;
        let requests = &spec.token_requests;
        let is_new = old.is_none_or(|old| old.spec.token_requests != *requests);
        if is_new && !requests.is_empty() && spec.service_account_token_in_secrets.is_none() {
            let path = FieldPath::root("spec");
            let text = "is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";
            let at = path.field("serviceAccountTokenInSecrets");
            warnings.add(format!("{at} {text}"));
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        let (path, new, old) = (FieldPath::root("spec"), &self.spec, &old.spec);
        // The name of the field is upstream's.
        let at = path.field("attachedRequired");
        errors.immutable(&at, &new.attach_required, &old.attach_required);
        let (new, old) = (&new.volume_lifecycle_modes, &old.volume_lifecycle_modes);
        errors.immutable(&path.field("volumeLifecycleModes"), new, old);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let spec = &self.spec;
        let audiences = spec.token_requests.iter();
        let audiences: Vec<_> = audiences.map(|token| token.audience.as_str()).collect();
        Some(match column {
            "AttachRequired" => spec.attach_required.unwrap_or(true).into(),
            "PodInfoOnMount" => spec.pod_info_on_mount.unwrap_or_default().into(),
            "StorageCapacity" => spec.storage_capacity.unwrap_or_default().into(),
            "TokenRequests" if audiences.is_empty() => "<unset>".into(),
            "TokenRequests" => audiences.join(",").into(),
            "RequiresRepublish" => spec.requires_republish.unwrap_or_default().into(),
            "Modes" if spec.volume_lifecycle_modes.is_empty() => "<none>".into(),
            "Modes" => spec.volume_lifecycle_modes.join(",").into(),
            _ => return None,
        })
    }
}

fn validate_spec(spec: &CsiDriverSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let policy = spec.fs_group_policy.as_deref();
    errors.one_of(&path.field("fsGroupPolicy"), policy, GROUP_POLICIES);
    validate_tokens(&spec.token_requests, &path.field("tokenRequests"), errors);
    let at = path.field("volumeLifecycleModes");
    for mode in &spec.volume_lifecycle_modes {
        errors.one_of(&at, mode.as_str(), MODES);
    }
    if let Some(period) = spec.node_allocatable_update_period_seconds
        && period < UPDATE_PERIOD_MIN
    {
        let at = path.field("nodeAllocatableUpdatePeriodSeconds");
        let detail = "must be greater than or equal to 10 seconds";
        errors.invalid(&at, period, detail);
    }
    if spec.service_account_token_in_secrets.is_some() && spec.token_requests.is_empty() {
        let at = path.field("serviceAccountTokenInSecrets");
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.invalid(&at, spec.service_account_token_in_secrets, detail);
    }
}

fn validate_tokens(tokens: &[TokenRequest], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (index, token) in tokens.iter().enumerate() {
        let path = path.index(index);
        if !seen.insert(token.audience.as_str()) {
            errors.duplicate(&path.field("audience"), &token.audience);
            continue;
        }
        let at = path.field("expirationSeconds");
        match token.expiration_seconds {
            Some(seconds) if seconds < TOKEN_MIN => {
                let detail = "may not specify a duration less than 10 minutes";
                errors.invalid(&at, seconds, detail);
            }
            Some(seconds) if seconds > TOKEN_MAX => {
                let detail = "may not specify a duration larger than 2^32 seconds";
                errors.invalid(&at, seconds, detail);
            }
            _ => {}
        }
    }
}
