//! Pod security standards (upstream: the admission plugin PodSecurity of 1.36): Pods must keep to the level that their
//! namespace enforces, and users are warned of Pods and templates that violate another.
//!
//! The levels are in `setpoint-pod-security`; here is which requests they apply to. A Pod is evaluated when it is
//! created, and when an update changes its images or adds containers: labels and finalizers of a Pod that was admitted
//! under another policy can be changed. The policy of a namespace applies to no user, namespace or runtime class that
//! the administrator has exempted.

mod evaluation;
mod existing_pods;
mod namespace;
mod subject;

use std::collections::BTreeMap;

use setpoint_codec::kind_of;
use setpoint_model::Key;
use setpoint_pod_security::{Configuration, InvalidLabel, Level, Mode, Policy};
use setpoint_proto::ApiError;
use setpoint_proto::core::Namespace;
use setpoint_store::cache::AtLeast;

use super::{Plugin, Warning};
use crate::admission::{Attributes, Operation, Reader};
use crate::errors;
use crate::metrics::{pod_security_exempted, pod_security_failed};
use crate::request::audit;
use evaluation::{Evaluation, count, metric_labels};
use subject::Subject;

const EXEMPT: &str = "pod-security.kubernetes.io/exempt";
const FAILED: &str = "pod-security.kubernetes.io/error";

/// The plugin.
#[derive(Default)]
pub(super) struct PodSecurity {
    configuration: Configuration,
}

impl PodSecurity {
    /// Returns the plugin with the configuration of an administrator.
    pub(super) const fn new(configuration: Configuration) -> Self {
        Self { configuration }
    }
}

impl Plugin for PodSecurity {
    fn check_and_warn<'a>(
        &'a self,
        request: Attributes<'a>,
        reader: &'a dyn Reader,
    ) -> Option<Warning<'a>> {
        let writes = [Operation::Create, Operation::Update].contains(&request.operation);
        if !writes || request.is_admitted {
            return None;
        }
        if request.object?.downcast_ref::<Namespace>().is_some() {
            let checking = namespace::check(&self.configuration, request, reader);
            return Some(Box::pin(checking));
        }
        let subject = Subject::of(&request)?;
        Some(Box::pin(self.check_subject(request, subject, reader)))
    }
}

impl PodSecurity {
    /// Evaluates a Pod or a template. Returns warnings.
    async fn check_subject(
        &self,
        request: Attributes<'_>,
        subject: Subject<'_>,
        reader: &dyn Reader,
    ) -> Result<Vec<String>, ApiError> {
        let labels = metric_labels(&request, &subject);
        if let Some(by) = self.exemption(&request) {
            audit::annotate(EXEMPT, || by.to_owned());
            pod_security_exempted(labels);
            return Ok(Vec::new());
        }
        let namespace = match labels_of_namespace(&request, reader).await {
            Ok(namespace) => namespace,
            Err(error) => {
                audit::annotate(FAILED, || error.to_string());
                pod_security_failed(labels, true);
                // As upstream, a template is not refused.
                return match subject.is_pod {
                    true => Err(error),
                    false => Ok(Vec::new()),
                };
            }
        };
        let (policy, invalid) = Policy::of_labels(&namespace, self.configuration.defaults);
        if invalid.is_empty() && !applies(&policy, &subject) {
            if subject.is_pod {
                count(labels, policy.enforce, Mode::Enforce, true);
            }
            return Ok(Vec::new());
        }
        if !subject.is_significant(&request) {
            return Ok(Vec::new());
        }
        if self.has_exempt_class(&subject) {
            audit::annotate(EXEMPT, || "runtimeClass".to_owned());
            pod_security_exempted(labels);
            return Ok(Vec::new());
        }
        if !invalid.is_empty() {
            audit::annotate(FAILED, || unreadable(&invalid));
            pod_security_failed(labels, false);
        }
        Evaluation::new(labels, subject).against(&policy, request.target)
    }

    /// Returns by what a request is exempt, whatever its Pod is.
    fn exemption(&self, request: &Attributes<'_>) -> Option<&'static str> {
        let exemptions = &self.configuration.exemptions;
        let by_namespace = exemptions.namespaces.contains(&request.target.namespace);
        let by_user = exemptions.usernames.contains(&request.context.user.name);
        match (by_namespace, by_user) {
            (true, _) => Some("namespace"),
            (false, true) => Some("user"),
            (false, false) => None,
        }
    }

    fn has_exempt_class(&self, subject: &Subject<'_>) -> bool {
        let class = subject.spec.runtime_class_name.as_ref();
        class.is_some_and(|class| {
            self.configuration
                .exemptions
                .runtime_classes
                .contains(class)
        })
    }
}

/// Returns the text about labels that are not valid.
fn unreadable(labels: &[InvalidLabel]) -> String {
    let texts = labels.iter().map(|one| {
        let InvalidLabel {
            label,
            value,
            requirement,
        } = one;
        format!("{label}: Invalid value: {value:?}: {requirement}")
    });
    let texts: Vec<_> = texts.collect();
    format!("Failed to parse policy: {}", texts.join(", "))
}

/// Returns whether a policy has an effect on a Pod or template.
fn applies(policy: &Policy, subject: &Subject<'_>) -> bool {
    let of_templates = [Mode::Audit, Mode::Warn].map(|mode| policy.of(mode).level);
    match subject.is_pod {
        true => !policy.is_privileged(),
        false => of_templates != [Level::Privileged; 2],
    }
}

/// Returns the labels of the namespace of a request.
async fn labels_of_namespace(
    request: &Attributes<'_>,
    reader: &dyn Reader,
) -> Result<BTreeMap<String, String>, ApiError> {
    let name = &request.target.namespace;
    let (kind, key) = (kind_of::<Namespace>(), Key::new("", name));
    for at in [AtLeast::Any, AtLeast::Newest] {
        if let Ok(Some(namespace)) = reader.get(kind, &key, at).await {
            return Ok(namespace.labels().clone());
        }
    }
    Err(errors::internal(&format!(
        "failed to lookup namespace {name:?}"
    )))
}
