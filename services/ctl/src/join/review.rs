//! Asks the cluster who the user of a token is: whether it knows the token, and for what it was made.

use anyhow::{Context as _, anyhow, bail};
use serde_json::{Value, json};
use setpoint_host::http_client::Answer;
use setpoint_tls::Pinned;

use super::discovery::unknown;
use super::gateway::{Failure, Gateway};
use crate::launcher::Joining;
use crate::token::Token;

const PATH: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Checks that the token brings in what joins.
///
/// # Errors
/// The cluster does not know the token, it is for something else, or nobody answers.
pub async fn check(
    gateway: &Gateway,
    cluster: &Pinned,
    token: &Token,
    joining: Joining,
) -> anyhow::Result<()> {
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let answer = gateway.post(cluster, token, PATH, &review).await;
    let answer = answer.map_err(|failure| match failure {
        Failure::Unreachable(error) | Failure::Untrusted(error) => {
            error.context(format!("{gateway} cannot be asked about the token"))
        }
    })?;
    judge(&answer, token, joining)
}

fn judge(answer: &Answer, token: &Token, joining: Joining) -> anyhow::Result<()> {
    match answer.status.as_u16() {
        201 => {}
        401 => bail!("{}", unknown(token)),
        _ => bail!(
            "the gateway answers {} about the token: {}",
            answer.status,
            message(&answer.body)
        ),
    }
    let review: Value = serde_json::from_str(&answer.body).context("the answer is malformed")?;
    let groups = review["status"]["userInfo"]["groups"].as_array();
    let mut groups = groups.into_iter().flatten().filter_map(Value::as_str);
    match groups.any(|group| group == joining.group()) {
        true => Ok(()),
        false => Err(anyhow!(
            "the token {} was made for something else than {}: `setpoint token create --for {}` makes one",
            token.id(),
            joining.noun(),
            joining.name()
        )),
    }
}

/// Returns the message of a Status of Kubernetes.
pub fn message(body: &str) -> String {
    let status: Option<Value> = serde_json::from_str(body).ok();
    let message = status
        .as_ref()
        .and_then(|status| status["message"].as_str());
    message.unwrap_or("no reason").to_owned()
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    fn judged(status: u16, body: &Value) -> Result<(), String> {
        judged_for(Joining::Agent, status, body)
    }

    fn judged_for(joining: Joining, status: u16, body: &Value) -> Result<(), String> {
        let answer = Answer {
            status: StatusCode::from_u16(status).unwrap(),
            body: body.to_string(),
            ..Answer::default()
        };
        let token = "abcdef.0123456789abcdef".parse().unwrap();
        judge(&answer, &token, joining).map_err(|error| error.to_string())
    }

    #[test]
    fn a_token_must_be_known_and_for_what_joins() {
        let of = |groups: &[&str]| json!({ "status": { "userInfo": { "groups": groups } } });
        let agent = of(&["system:bootstrappers", Joining::Agent.group()]);
        assert_eq!(judged(201, &agent), Ok(()));
        let why = judged_for(Joining::Etcd, 201, &agent).unwrap_err();
        assert!(
            why.contains(
                "made for something else than a member of etcd: `setpoint token create --for etcd`"
            ),
            "{why}"
        );
        let other = judged(
            201,
            &of(&[
                "system:bootstrappers",
                "system:bootstrappers:kubeadm:default-node-token",
            ]),
        );
        assert!(
            other
                .unwrap_err()
                .contains("made for something else than an agent")
        );
        let unknown = judged(401, &json!({ "message": "Unauthorized" })).unwrap_err();
        assert!(
            unknown.starts_with("the cluster has no token abcdef: it has expired, was used"),
            "{unknown}"
        );
        let refused = judged(403, &json!({ "message": "no" })).unwrap_err();
        assert_eq!(
            refused,
            "the gateway answers 403 Forbidden about the token: no"
        );
    }
}
