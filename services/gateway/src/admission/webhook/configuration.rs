//! The webhooks of a configuration, compiled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use setpoint_kinds::expressions::{self, Compiled};
use setpoint_proto::admissionregistration::{
    MatchResources, MutatingWebhook, MutatingWebhookConfiguration, NamedRuleWithOperations,
    RuleWithOperations, ValidatingWebhook, ValidatingWebhookConfiguration,
};
use setpoint_proto::meta::ObjectMeta;

use crate::admission::constraints::Constraints;
use crate::admission::hooks::version;
use crate::webhook::Config;

/// The timeout of a webhook that names none.
const DEFAULT_TIMEOUT: i32 = 10;

/// The webhooks of a configuration, in its order.
pub(in crate::admission) struct Configuration {
    version: (String, i64),
    pub webhooks: Vec<Webhook>,
}

/// A webhook with its compiled match conditions.
pub(in crate::admission) struct Webhook {
    pub name: String,
    /// The name among all webhooks.
    pub id: String,
    pub constraints: Result<Constraints, String>,
    pub conditions: Result<Vec<Compiled>, String>,
    pub config: Config,
    /// The versions of reviews that it understands.
    pub versions: Vec<String>,
    pub timeout: Duration,
    /// Whether a request is admitted if the call fails.
    pub ignores_failures: bool,
    pub supports_dry_run: bool,
    /// Whether it is called again after others have changed what it saw.
    pub is_reinvocable: bool,
}

/// A configuration, of one of the two kinds.
pub(in crate::admission) trait Declared {
    fn meta(&self) -> &ObjectMeta;
    fn webhooks(&self) -> Vec<Webhook>;
}

impl Webhook {
    /// Returns the name of its configuration.
    pub(super) fn configuration(&self) -> &str {
        self.id.split('/').nth(1).unwrap_or_default()
    }
}

impl Configuration {
    /// Returns the configurations. Those that are not among `before` are compiled.
    pub(in crate::admission) fn after<T: Declared>(
        before: &[Arc<Self>],
        declared: &[T],
    ) -> Vec<Arc<Self>> {
        let known = before.iter().map(|one| (&one.version, one));
        let known: HashMap<_, _> = known.collect();
        let made = declared.iter().map(|declared| {
            let version = version(declared.meta());
            match known.get(&version) {
                Some(known) => Arc::clone(known),
                None => Arc::new(Self {
                    webhooks: declared.webhooks(),
                    version,
                }),
            }
        });
        made.filter(|one| !one.webhooks.is_empty()).collect()
    }
}

/// Implements [`Declared`]; the two kinds of webhooks differ in whether they have a `reinvocation` policy.
macro_rules! declared {
    ($configuration:ident, $webhook:ident, $prefix:literal, $reinvocable:expr) => {
        impl Declared for $configuration {
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            /// A webhook without rules is never called.
            fn webhooks(&self) -> Vec<Webhook> {
                let all = self.webhooks.iter().enumerate();
                let all = all.filter(|(_, webhook)| !webhook.rules.is_empty());
                let made = all.map(|(index, webhook)| Webhook {
                    name: webhook.name.clone(),
                    id: format!(concat!($prefix, "/{}/{}"), self.metadata.name, index),
                    constraints: Constraints::of(&MatchResources {
                        namespace_selector: webhook.namespace_selector.clone(),
                        object_selector: webhook.object_selector.clone(),
                        resource_rules: webhook.rules.iter().map(named).collect(),
                        exclude_resource_rules: Vec::new(),
                        match_policy: webhook.match_policy.clone(),
                    }),
                    conditions: expressions::compile_conditions(&webhook.match_conditions),
                    config: Config::from(&webhook.client_config),
                    versions: webhook.admission_review_versions.clone(),
                    timeout: timeout(webhook.timeout_seconds),
                    ignores_failures: webhook.failure_policy.as_deref() == Some("Ignore"),
                    supports_dry_run: supports_dry_run(webhook.side_effects.as_deref()),
                    is_reinvocable: $reinvocable(webhook),
                });
                made.collect()
            }
        }
    };
}
declared!(
    MutatingWebhookConfiguration,
    MutatingWebhook,
    "mutating",
    |webhook: &MutatingWebhook| webhook.reinvocation_policy.as_deref() == Some("IfNeeded")
);
declared!(
    ValidatingWebhookConfiguration,
    ValidatingWebhook,
    "validating",
    |_: &ValidatingWebhook| false
);

fn named(rule: &RuleWithOperations) -> NamedRuleWithOperations {
    NamedRuleWithOperations {
        resource_names: Vec::new(),
        rule_with_operations: rule.clone(),
    }
}

fn timeout(seconds: Option<i32>) -> Duration {
    let seconds = u64::try_from(seconds.unwrap_or(DEFAULT_TIMEOUT));
    Duration::from_secs(seconds.unwrap_or_default())
}

/// Returns whether a webhook may be called for a dry run.
fn supports_dry_run(side_effects: Option<&str>) -> bool {
    matches!(side_effects, Some("None" | "NoneOnDryRun"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(generation: i64, rules: usize) -> MutatingWebhookConfiguration {
        MutatingWebhookConfiguration {
            metadata: ObjectMeta {
                name: "c".into(),
                generation,
                ..Default::default()
            },
            webhooks: vec![MutatingWebhook {
                name: "a.example.com".into(),
                rules: vec![RuleWithOperations::default(); rules],
                ..Default::default()
            }],
        }
    }

    #[test]
    fn only_webhooks_without_side_effects_are_called_for_a_dry_run() {
        let supports = [
            Some("None"),
            Some("NoneOnDryRun"),
            Some("Some"),
            Some("Unknown"),
            None,
        ];
        let supports = supports.map(supports_dry_run);
        assert_eq!(supports, [true, true, false, false, false]);
    }

    #[test]
    fn a_configuration_is_compiled_once_for_each_of_its_generations() {
        let first = Configuration::after(&[], &[configuration(1, 1)]);
        let same = Configuration::after(&first, &[configuration(1, 1)]);
        assert!(Arc::ptr_eq(&first[0], &same[0]));
        let other = Configuration::after(&first, &[configuration(2, 1)]);
        assert!(!Arc::ptr_eq(&first[0], &other[0]));
        assert_eq!(other[0].webhooks[0].timeout, Duration::from_secs(10));
    }

    #[test]
    fn a_webhook_without_rules_is_never_called() {
        assert!(Configuration::after(&[], &[configuration(1, 0)]).is_empty());
    }
}
