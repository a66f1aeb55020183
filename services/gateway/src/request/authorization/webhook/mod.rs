//! Asks another server about a request (upstream: `plugin/pkg/authorizer/webhook`).
//!
//! ```text
//! request ─▶ match conditions ─▶ answers that are known ─▶ SubjectAccessReview ─▶ allow, deny, or the next authorizer
//!                   │ fails                                      │ no answer in time
//!                   └──────────────▶ failure policy ◀────────────┘
//! ```

mod review;

use serde_json::Value;
use setpoint_apiserver_config::authorization::Webhook as Settings;
use setpoint_kinds::Identity;
use setpoint_proto::authorization::SubjectAccessReviewStatus;
use tokio::time::Instant;

use super::Decision;
use crate::kubeconfig::{Failure, Server};
use crate::metrics::WebhookAuthorizer;
use crate::request::Attributes;
use crate::request::expiring_cache::ExpiringCache;

/// The error of a question for all rules of a user.
pub(super) const UNRESOLVED: &str = "webhook authorizer does not support user rule resolution";

/// A server that is asked.
pub(super) struct Webhook {
    settings: Settings,
    server: Server,
    answers: ExpiringCache<SubjectAccessReviewStatus>,
    metrics: WebhookAuthorizer,
}

impl Webhook {
    /// Returns the server that the settings name.
    ///
    /// # Errors
    /// If its kubeconfig file cannot be read or is not valid.
    pub(super) fn new(name: String, settings: Settings) -> Result<Self, String> {
        Ok(Self {
            server: Server::read(&settings.kubeconfig)?,
            answers: ExpiringCache::default(),
            metrics: WebhookAuthorizer::new(name),
            settings,
        })
    }

    /// Decides about a request, unless conditions exclude it.
    pub(super) async fn decide(&self, user: &Identity, attributes: &Attributes) -> Decision {
        let spec = review::spec(user, attributes);
        match self.is_meant(&spec) {
            Ok(true) => {}
            Ok(false) => return Decision::default(),
            Err(why) => return self.on_failure(why),
        }
        let question = review::question(&spec, self.settings.version);
        let status = match self.answers.get(&question) {
            Some(known) => known,
            None => match self.ask(&question).await {
                Ok(status) => status,
                Err(failure) => {
                    let why = failure.to_string();
                    tracing::error!(why, "an authorization webhook has not answered");
                    if let Failure::Busy(_) = failure {
                        // Anybody can cause it, so the policy must not turn it into a way around the webhook.
                        return Decision::denied(why);
                    }
                    if !self.settings.denies_on_failure {
                        self.metrics.failed_open(result_of(&failure));
                    }
                    return self.on_failure(why);
                }
            },
        };
        decision(status)
    }

    fn is_meant(&self, spec: &Value) -> Result<bool, String> {
        let conditions = &self.settings.conditions;
        if conditions.is_empty() {
            return Ok(true);
        }
        let begun = Instant::now();
        let holds = conditions.hold(&review::complete(spec));
        self.metrics.matched(&holds, begun.elapsed());
        holds
    }

    async fn ask(&self, question: &[u8]) -> Result<SubjectAccessReviewStatus, Failure> {
        let begun = Instant::now();
        let (json, limit) = (question.to_vec().into(), self.settings.timeout);
        let answered = match self.server.post(json, limit).await {
            Ok(answer) => {
                let status = answer.of_success().and_then(|body| {
                    let status = review::status(&body)?;
                    self.keep(question, &status, body.len());
                    Ok(status)
                });
                status.map_err(Failure::Other)
            }
            Err(failure) => Err(failure),
        };
        let result = answered.as_ref().err().map_or("success", result_of);
        self.metrics.asked(result, begun.elapsed());
        answered
    }

    fn keep(&self, question: &[u8], status: &SubjectAccessReviewStatus, bytes: usize) {
        let ttl = match status.allowed {
            true => self.settings.authorized_ttl,
            false => self.settings.unauthorized_ttl,
        };
        self.answers.insert(question, status.clone(), bytes, ttl);
    }

    fn on_failure(&self, error: String) -> Decision {
        Decision {
            denied: self.settings.denies_on_failure,
            error,
            ..Decision::default()
        }
    }
}

fn result_of(failure: &Failure) -> &'static str {
    match failure {
        Failure::Timeout => "timeout",
        Failure::Busy(_) | Failure::Other(_) => "error",
    }
}

fn decision(status: SubjectAccessReviewStatus) -> Decision {
    const BOTH: &str = "webhook subject access review returned both allow and deny response";
    match (status.denied, status.allowed) {
        (true, true) => Decision {
            error: BOTH.to_owned(),
            ..Decision::denied(status.reason)
        },
        (true, false) => Decision::denied(status.reason),
        (false, true) => Decision::allowed(status.reason),
        (false, false) => Decision::undecided(status.reason),
    }
}
