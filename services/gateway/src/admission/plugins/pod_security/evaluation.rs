//! The evaluation of a Pod or template in all modes.

use setpoint_kinds::Target;
use setpoint_model::version::MINOR;
use setpoint_pod_security::{Level, LevelVersion, Mode, Policy, Version, Violations, evaluate};
use setpoint_proto::ApiError;

use super::subject::Subject;
use crate::admission::{Attributes, Operation};
use crate::errors;
use crate::metrics::{PodSecurityRequest, pod_security_evaluated};
use crate::request::audit;

const ENFORCED: &str = "pod-security.kubernetes.io/enforce-policy";
const VIOLATIONS: &str = "pod-security.kubernetes.io/audit-violations";

/// A Pod or template that is evaluated.
pub(super) struct Evaluation<'a> {
    labels: PodSecurityRequest<'a>,
    subject: Subject<'a>,
    /// The violations of the levels so far. Several modes often have one level.
    known: Vec<(LevelVersion, Violations)>,
}

impl<'a> Evaluation<'a> {
    /// Returns the evaluation of a Pod or template, which a request with these labels writes.
    pub(super) const fn new(labels: PodSecurityRequest<'a>, subject: Subject<'a>) -> Self {
        Self {
            labels,
            subject,
            known: Vec::new(),
        }
    }

    /// Evaluates it in all modes. Returns the warning, if there is one.
    ///
    /// # Errors
    /// `Forbidden` if it is a Pod and violates the level that is enforced. Its user is not warned then, as upstream.
    pub(super) fn against(
        mut self,
        policy: &Policy,
        target: &Target,
    ) -> Result<Vec<String>, ApiError> {
        let enforced = match self.subject.is_pod {
            true => self.enforce(policy.enforce, target),
            false => Ok(()),
        };
        self.audit(policy.audit);
        enforced?;
        let warning = self.would_violate(policy.warn, Mode::Warn);
        Ok(warning.into_iter().collect())
    }

    fn violations(&mut self, level: LevelVersion) -> &Violations {
        let known = self.known.iter().position(|(known, _)| *known == level);
        let at = known.unwrap_or_else(|| {
            let violations = evaluate(level, self.subject.meta, self.subject.spec);
            self.known.push((level, violations));
            self.known.len() - 1
        });
        &self.known[at].1
    }

    fn enforce(&mut self, level: LevelVersion, target: &Target) -> Result<(), ApiError> {
        audit::annotate(ENFORCED, || level.to_string());
        let labels = self.labels;
        let violations = self.violations(level);
        count(labels, level, Mode::Enforce, violations.is_empty());
        match violations.is_empty() {
            true => Ok(()),
            false => {
                let why = format!("violates PodSecurity \"{level}\": {violations}");
                Err(errors::forbidden(target, &why, None))
            }
        }
    }

    fn audit(&mut self, level: LevelVersion) {
        if let Some(violation) = self.would_violate(level, Mode::Audit) {
            audit::annotate(VIOLATIONS, || violation);
        }
    }

    /// Returns the text about a violation of a level that is not enforced, and counts it.
    fn would_violate(&mut self, level: LevelVersion, mode: Mode) -> Option<String> {
        let labels = self.labels;
        let violations = self.violations(level);
        if violations.is_empty() {
            return None;
        }
        count(labels, level, mode, false);
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
