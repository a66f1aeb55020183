//! The audit annotations of calls of webhooks, with upstream's keys.

use serde_json::{Value, json};

use super::configuration::Webhook;
use crate::request::audit;

const MUTATION: &str = "mutation.webhook.admission.k8s.io";
const PATCH: &str = "patch.webhook.admission.k8s.io";
const VALIDATION: &str = "validating.webhook.admission.k8s.io";

/// A call of a mutating webhook: in which pass, and the how many-th of all webhooks it is.
pub(super) struct Place<'a> {
    pub(super) webhook: &'a Webhook,
    pub(super) round: u8,
    pub(super) index: usize,
}

impl Place<'_> {
    fn key(&self, prefix: &str) -> String {
        format!("{prefix}/round_{}_index_{}", self.round, self.index)
    }

    /// Records whether the webhook has changed the object.
    pub(super) fn mutated(&self, changed: bool) {
        if audit::is_recording() {
            audit::annotate(self.key(MUTATION), || {
                // In upstream's order of the fields.
                let [configuration, webhook] = self.names();
                format!(
                    r#"{{"configuration":{configuration},"webhook":{webhook},"mutated":{changed}}}"#
                )
            });
        }
    }

    /// Records the patch of the webhook, which may have what the body of the request has.
    pub(super) fn patched(&self, patch: &Value) {
        if audit::has_requests() {
            audit::annotate(self.key(PATCH), || {
                let [configuration, webhook] = self.names();
                format!(
                    r#"{{"configuration":{configuration},"webhook":{webhook},"patch":{patch},"patchType":"JSONPatch"}}"#
                )
            });
        }
    }

    /// Records that the webhook has failed, which is ignored.
    pub(super) fn ignored(&self) {
        ignored(self.webhook, &self.key(MUTATION));
    }

    fn names(&self) -> [Value; 2] {
        [
            json!(self.webhook.configuration()),
            json!(self.webhook.name),
        ]
    }
}

/// Records that a validating webhook has failed, which is ignored.
pub(super) fn ignored_validating(webhook: &Webhook, index: usize) {
    ignored(webhook, &format!("{VALIDATION}/round_0_index_{index}"));
}

fn ignored(webhook: &Webhook, key: &str) {
    audit::annotate(format!("failed-open.{key}"), || webhook.name.clone());
}
