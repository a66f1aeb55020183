//! APIService: the name is the version and the group. Without a Service it is local; requests for another are forwarded
//! to the endpoints of its Service while the gateway keeps the condition `Available` true.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_codec::kind_of;
use setpoint_model::condition::{self, TRUE};
use setpoint_model::names;
use setpoint_proto::apiregistration::{
    ApiService, ApiServiceCondition, ApiServiceSpec, ServiceReference,
};
use setpoint_proto::metrics::PodMetrics;

use super::StoredKind;
use super::admission::validate_dns_1035_label;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::Warnings;

/// The condition of one whose requests are served.
pub const AVAILABLE: &str = "Available";
/// The reason of the condition of one that the gateway serves itself.
pub const LOCAL: &str = "Local";
/// The port of a Service by default.
pub const HTTPS: i32 = 443;
/// The label of those that the gateway keeps (upstream: the registration controllers).
pub const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

impl StoredKind for ApiService {
    const ALLOWS_UNCONDITIONAL_UPDATE: bool = false;

    fn fill_defaults(&mut self) {
        if let Some(service) = &mut self.spec.service {
            service.port.get_or_insert(HTTPS);
        }
    }

    fn prepare_create(&mut self) {
        self.status.conditions.clear();
        if self.spec.service.is_none() {
            self.status.conditions.push(local());
        }
    }

    fn prepare_update(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
        if self.spec.service.is_none() {
            condition::set(&mut self.status.conditions, local());
        }
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
    }

    fn check_name(name: &str) -> Vec<String> {
        names::validate_path_segment(name)
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (path, spec) = (FieldPath::root("spec"), &self.spec);
        let name = format!("{}.{}", spec.version, spec.group);
        if self.metadata.name != name {
            let detail = format!("must be `spec.version+\".\"+spec.group`: {name:?}");
            let metadata = FieldPath::root("metadata");
            errors.invalid(&metadata.field("name"), &self.metadata.name, detail);
        }
        validate_identity(spec, &path, errors);
        validate_ranks(spec, &path, errors);
        match &spec.service {
            Some(service) => validate_service(service, spec, &path, errors),
            None => validate_local(spec, &path, errors),
        }
    }

    fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
        let spec = &self.spec;
        if spec.service.is_some() && is_resource_metrics(&spec.group, &spec.version) {
            warnings.add(
                "the gateway has these metrics itself: its clients get those of this server while it is available, and autoscalers keep those of the gateway",
            );
        }
    }

    fn validate_status_update(&self, _old: &Self, errors: &mut FieldErrors) {
        let status = FieldPath::root("status");
        let path = status.field("conditions");
        for (index, condition) in self.status.conditions.iter().enumerate() {
            let at = path.index(index);
            let statuses = &["False", "True", "Unknown"];
            errors.one_of(&at.field("status"), condition.status.as_str(), statuses);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        Some(match column {
            "Service" => self
                .spec
                .service
                .as_ref()
                .map_or("Local".into(), |service| {
                    format!("{}/{}", service.namespace, service.name).into()
                }),
            "Available" => available(&self.status.conditions).into(),
            _ => return None,
        })
    }
}

/// Returns the condition `Available` of a version that the gateway serves itself.
fn local() -> ApiServiceCondition {
    ApiServiceCondition {
        r#type: AVAILABLE.into(),
        status: TRUE.into(),
        last_transition_time: Timestamp::now().into(),
        reason: LOCAL.into(),
        message: "Local APIServices are always available".into(),
    }
}

/// Returns whether a version is that of the metrics of Pods and nodes. The gateway has them itself, upstream by an
/// add-on.
pub fn is_resource_metrics(group: &str, version: &str) -> bool {
    let kind = kind_of::<PodMetrics>();
    (group, version) == (kind.group.as_str(), kind.version.as_str())
}

fn available(conditions: &[ApiServiceCondition]) -> String {
    match condition::get(conditions, AVAILABLE) {
        None => "Unknown".to_owned(),
        Some(condition) if condition.status == TRUE => TRUE.to_owned(),
        Some(condition) => format!("{} ({})", condition.status, condition.reason),
    }
}

fn validate_identity(spec: &ApiServiceSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("group");
    if spec.group.is_empty() && spec.version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.required(&at, detail);
    }
    if !spec.group.is_empty() {
        errors.check(&at, &spec.group, names::validate_dns_subdomain);
    }
    let problems = validate_dns_1035_label(&spec.version);
    errors.all_invalid(&path.field("version"), &spec.version, problems);
}

fn validate_ranks(spec: &ApiServiceSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (field, rank, max) in [
        ("groupPriorityMinimum", spec.group_priority_minimum, 20_000),
        ("versionPriority", spec.version_priority, 1000),
    ] {
        if !(1..=max).contains(&rank) {
            let detail = format!("must be positive and less than {max}");
            errors.invalid(&path.field(field), rank, detail);
        }
    }
}

fn validate_local(spec: &ApiServiceSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if !spec.ca_bundle.is_empty() {
        let size = format!("{} bytes", spec.ca_bundle.len());
        let detail = "local APIServices may not have a caBundle";
        errors.invalid(&path.field("caBundle"), size, detail);
    }
    if spec.insecure_skip_tls_verify {
        let detail = "local APIServices may not have insecureSkipTLSVerify";
        errors.invalid(&path.field("insecureSkipTLSVerify"), true, detail);
    }
}

fn validate_service(
    service: &ServiceReference,
    spec: &ApiServiceSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("service");
    errors.not_empty(&at.field("namespace"), &service.namespace);
    errors.not_empty(&at.field("name"), &service.name);
    let port = service.port.unwrap_or(HTTPS);
    if !(1..=65_535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.invalid(&at.field("port"), port, detail);
    }
    if spec.insecure_skip_tls_verify && !spec.ca_bundle.is_empty() {
        let detail = "may not be true if caBundle is present";
        errors.invalid(&path.field("insecureSkipTLSVerify"), true, detail);
    }
}
