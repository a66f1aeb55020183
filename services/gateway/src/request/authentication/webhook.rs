//! Tokens that another server knows (upstream: `plugin/pkg/authenticator/token/webhook`): it is asked by TokenReviews
//! about those that no other method knows.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use setpoint_kinds::Identity;
use setpoint_proto::authentication::TokenReviewStatus;

use super::{Verified, own_audiences};
use crate::kubeconfig::Server;
use crate::request::expiring_cache::ExpiringCache;

/// The time in which the server has to answer.
const LIMIT: Duration = Duration::from_secs(10);

/// A server that knows tokens.
pub struct TokenWebhook {
    server: Server,
    /// The time for which an answer is used again.
    ttl: Duration,
    answers: ExpiringCache<TokenReviewStatus>,
}

impl TokenWebhook {
    /// Returns the server that a kubeconfig file names. An answer of it counts for `ttl`.
    ///
    /// # Errors
    /// If the file cannot be read or is not valid.
    pub fn read(file: &Path, ttl: Duration) -> Result<Self, String> {
        Ok(Self {
            server: Server::read(file)?,
            ttl,
            answers: ExpiringCache::default(),
        })
    }

    /// Returns the user of a token; `None` if the server does not know it.
    ///
    /// # Errors
    /// If there is no answer in time, or the server says why the token is not valid.
    pub(super) async fn verify(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<Option<Verified>, String> {
        let question = question(token, audiences);
        let status = match self.answers.get(&question) {
            Some(known) => known,
            None => self.ask(question).await.inspect_err(|why| {
                tracing::error!(why, "the webhook that knows tokens has not answered");
            })?,
        };
        outcome(status, audiences)
    }

    async fn ask(&self, question: Vec<u8>) -> Result<TokenReviewStatus, String> {
        let answer = self.server.post(question.clone().into(), LIMIT).await;
        let body = answer
            .map_err(|failure| failure.to_string())?
            .of_success()?;
        let mut review: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        if review["kind"] != "TokenReview" {
            return Err("the answer is no TokenReview".to_owned());
        }
        let status = serde_json::from_value(review["status"].take());
        let status: TokenReviewStatus = status.map_err(|error| error.to_string())?;
        // What is wrong with the server may pass sooner.
        if status.authenticated || status.error.is_empty() {
            self.answers
                .insert(&question, status.clone(), body.len(), self.ttl);
        }
        Ok(status)
    }
}

fn question(token: &str, audiences: &[String]) -> Vec<u8> {
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": { "token": token, "audiences": audiences },
    });
    review.to_string().into()
}

/// Returns the user of an answer. A server that names no audiences means this server.
fn outcome(status: TokenReviewStatus, audiences: &[String]) -> Result<Option<Verified>, String> {
    let own = own_audiences();
    let given = match status.audiences.is_empty() {
        true => &own[..],
        false => &status.audiences,
    };
    let common = audiences.iter().filter(|one| given.contains(one));
    let common: Vec<String> = common.cloned().collect();
    if common.is_empty() {
        return Ok(None);
    }
    match (status.authenticated, status.error.is_empty()) {
        (true, _) => {}
        (false, true) => return Ok(None),
        (false, false) => return Err(status.error),
    }
    let extra = status.user.extra.into_iter();
    let user = Identity {
        name: status.user.username,
        uid: status.user.uid,
        groups: status.user.groups,
        extra: extra.map(|(name, values)| (name, values.items)).collect(),
    };
    Ok(Some(Verified::of(user, common)))
}
