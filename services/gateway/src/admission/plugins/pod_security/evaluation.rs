//! The evaluation of a Pod or template in all modes.

use setpoint_kinds::Target;
use setpoint_model::version::MINOR;
use setpoint_pod_security::{Level, LevelVersion, Mode, Policy, Version, Violations, evaluate};
use setpoint_proto::ApiError;

use super::subject::Subject;
use crate::admission::{Attributes, Operation};
use crate::errors;
use crate::metrics::{PodSecurityRequest, pod_security_evaluated};

/// A Pod or template that is evaluated.
pub(super) struct Evaluation<'a> {
    pub labels: PodSecurityRequest<'a>,
    pub subject: Subject<'a>,
}

impl Evaluation<'_> {
    /// Evaluates it in all modes. Returns the warning, if there is one.
    ///
    /// # Errors
    /// `Forbidden` if it is a Pod and violates the level that is enforced. Its user is not warned then, as upstream.
    pub(super) fn against(self, policy: &Policy, target: &Target) -> Result<Vec<String>, ApiError> {
        let enforced = match self.subject.is_pod {
            true => self.enforce(policy.enforce, target),
            false => Ok(()),
        };
        self.audit(policy.audit);
        enforced?;
        Ok(self.warn(policy.warn).into_iter().collect())
    }

    fn violations(&self, level: LevelVersion) -> Violations {
        evaluate(level, self.subject.meta, self.subject.spec)
    }

    fn enforce(&self, level: LevelVersion, target: &Target) -> Result<(), ApiError> {
        let violations = self.violations(level);
        count(self.labels, level, Mode::Enforce, violations.is_empty());
        match violations.is_empty() {
            true => Ok(()),
            false => {
                let why = format!("violates PodSecurity \"{level}\": {violations}");
                Err(errors::forbidden(target, &why, None))
            }
        }
    }

    /// Records a violation in the mode `audit`: it is counted. An audit log would have the annotation
    /// `pod-security.kubernetes.io/audit-violations` from here.
    fn audit(&self, level: LevelVersion) {
        if !self.violations(level).is_empty() {
            count(self.labels, level, Mode::Audit, false);
        }
    }

    fn warn(&self, level: LevelVersion) -> Option<String> {
        let violations = self.violations(level);
        if violations.is_empty() {
            return None;
        }
        count(self.labels, level, Mode::Warn, false);
        Some(format!(
            "would violate PodSecurity \"{level}\": {violations}"
        ))
    }
}

/// Returns the labels of a request in metrics.
pub(super) fn metric_labels<'a>(
    request: &Attributes<'a>,
    subject: &Subject<'_>,
) -> PodSecurityRequest<'a> {
    PodSecurityRequest {
        operation: match request.operation {
            Operation::Create => "create",
            _ => "update",
        },
        resource: match subject.is_pod {
            true => "pod",
            false => "controller",
        },
        subresource: request.subresource.name(),
    }
}

/// Counts an evaluation.
pub(super) fn count(
    labels: PodSecurityRequest<'_>,
    level: LevelVersion,
    mode: Mode,
    is_allowed: bool,
) {
    let version = version_label(level);
    let how = [level.level.name(), &version, mode.name()];
    pod_security_evaluated(labels, is_allowed, how);
}

/// Returns the version for metrics. Those that are not there yet are one, since labels of namespaces may name any.
fn version_label(level: LevelVersion) -> String {
    let newest = MINOR.parse().unwrap_or(i64::MAX);
    match level.version {
        _ if level.level == Level::Privileged => Version::Latest.to_string(),
        Version::Minor(minor) if minor > newest => "future".to_owned(),
        version => version.to_string(),
    }
}
