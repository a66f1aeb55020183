//! Validation of projected volumes.

use std::collections::BTreeSet;

use setpoint_proto::core::{
    ClusterTrustBundleProjection, ProjectedVolumeSource, ServiceAccountTokenProjection,
    VolumeProjection,
};

use super::volume::validate_items;
use super::{downward, paths};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::label_selector;

/// The bounds of the lifetime of a token, in seconds.
const TOKEN_LIFETIME: std::ops::RangeInclusive<i64> = 600..=1 << 32;

/// Validates a projected volume.
pub fn validate(volume: &ProjectedVolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    paths::validate_mode(volume.default_mode, &path.field("defaultMode"), errors);
    let mut files = Files {
        list: path,
        seen: BTreeSet::new(),
    };
    let sources = path.field("sources");
    for (index, source) in volume.sources.iter().enumerate() {
        validate_source(source, &mut files, &sources.index(index), errors);
    }
}

/// The paths of the files so far. A duplicate is an error of the volume.
struct Files<'v, 'p> {
    list: &'p FieldPath<'p>,
    seen: BTreeSet<&'v str>,
}

impl<'v> Files<'v, '_> {
    fn add(&mut self, file: &'v str, errors: &mut FieldErrors) {
        if !file.is_empty() && !self.seen.insert(file) {
            errors.invalid(self.list, file, "conflicting duplicate paths");
        }
    }
}

fn validate_source<'v>(
    source: &'v VolumeProjection,
    files: &mut Files<'v, '_>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let keys = [
        source.secret.as_ref().map(|secret| {
            let name = &secret.local_object_reference.name;
            ("secret", name, &secret.items)
        }),
        source.config_map.as_ref().map(|map| {
            let name = &map.local_object_reference.name;
            ("configMap", name, &map.items)
        }),
    ];
    for (field, name, items) in keys.into_iter().flatten() {
        let path = path.field(field);
        errors.not_empty(&path.field("name"), name);
        validate_items(items, &path.field("items"), errors);
        items.iter().for_each(|item| files.add(&item.path, errors));
    }
    if let Some(downward) = &source.downward_api {
        let path = path.field("downwardAPI");
        for file in &downward.items {
            downward::validate_file(file, &path, errors);
            files.add(&file.path, errors);
        }
    }
    if let Some(token) = &source.service_account_token {
        let list = *files.list;
        validate_token(token, &path.field("serviceAccountToken"), &list, errors);
    }
    if let Some(bundle) = &source.cluster_trust_bundle {
        validate_bundle(bundle, &path.field("clusterTrustBundle"), errors);
        files.add(&bundle.path, errors);
    }
    let given = [
        source.secret.is_some(),
        source.config_map.is_some(),
        source.downward_api.is_some(),
        source.service_account_token.is_some(),
        source.cluster_trust_bundle.is_some(),
        source.pod_certificate.is_some(),
    ];
    if given.into_iter().filter(|given| *given).count() > 1 {
        let detail = "may not specify more than 1 volume type per source";
        errors.forbidden(path, detail);
    }
}

/// Validates a token. Upstream names a path of the volume, not of the source, as the field of its path.
fn validate_token(
    token: &ServiceAccountTokenProjection,
    path: &FieldPath<'_>,
    list: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("expirationSeconds");
    let seconds = token.expiration_seconds.unwrap_or_default();
    if seconds < *TOKEN_LIFETIME.start() {
        errors.invalid(
            &at,
            seconds,
            "may not specify a duration less than 10 minutes",
        );
    }
    if seconds > *TOKEN_LIFETIME.end() {
        let detail = "may not specify a duration larger than 2^32 seconds";
        errors.invalid(&at, seconds, detail);
    }
    let at = list.field("path");
    errors.not_empty(&at, &token.path);
    paths::validate_not_reserved(&token.path, &at, errors);
}

fn validate_bundle(
    bundle: &ClusterTrustBundleProjection,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    match (bundle.name.as_deref(), bundle.signer_name.as_deref()) {
        (Some(_), Some(_)) => {
            let detail = "only one of name and signerName may be used";
            errors.invalid(path, bundle, detail);
        }
        (None, None) => {
            errors.required(path, "either name or signerName must be specified");
        }
        (Some(""), None) => errors.required(&path.field("name"), "must be a valid object name"),
        (None, Some("")) => {
            errors.required(&path.field("signerName"), "must be a valid signer name");
        }
        (Some(_), None) if bundle.label_selector.is_some() => {
            let detail = "labelSelector must be unset if name is specified";
            errors.invalid(&path.field("labelSelector"), &bundle.label_selector, detail);
        }
        (Some(_), None) => {}
        (None, Some(_)) => {
            let selector = bundle.label_selector.as_ref();
            label_selector::validate(selector, &path.field("labelSelector"), errors);
        }
    }
    let at = path.field("path");
    errors.not_empty(&at, &bundle.path);
    paths::validate_not_reserved(&bundle.path, &at, errors);
}
