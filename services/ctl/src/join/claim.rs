//! Takes what a token hands over to a part of the control plane. The one that deletes it goes on: others find none.

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use setpoint_host::http_client::Answer;
use setpoint_model::bootstrap_token::{NAMESPACE, secret_name};
use setpoint_proto::Resource as _;
use setpoint_proto::core::Secret;
use setpoint_tls::Pinned;

use super::discovery::unknown;
use super::gateway::{Failure, Gateway};
use super::review::message;
use crate::launcher::Joining;
use crate::token::{CONTENT, CertificateKey, Handover, Token};

/// The Secrets of a token, as its user.
pub struct Claim<'a> {
    pub gateway: &'a Gateway,
    pub cluster: &'a Pinned,
    pub token: &'a Token,
}

impl Claim<'_> {
    /// Returns what the token hands over, which stays there.
    ///
    /// # Errors
    /// If it is not there any more, or the key does not decrypt it.
    pub async fn read(&self, kind: Joining, key: &CertificateKey) -> anyhow::Result<Handover> {
        let path = path(&Handover::name(self.token.id()));
        let answer = self.gateway.get_as(self.cluster, self.token, &path).await;
        let answer = self.answered(answer)?;
        let secret: Value =
            serde_json::from_str(&answer.body).context("the Secret is malformed")?;
        let content = secret["data"][CONTENT].as_str().unwrap_or_default();
        let sealed = STANDARD
            .decode(content)
            .context("the Secret is malformed")?;
        Handover::open(&sealed, key, self.token, kind)
    }

    /// Deletes what the token hands over, and then the token.
    ///
    /// # Errors
    /// If another one has deleted it.
    pub async fn take(&self) -> anyhow::Result<()> {
        let (cluster, token) = (self.cluster, self.token);
        let path_of_content = path(&Handover::name(token.id()));
        let taken = self
            .gateway
            .delete_as(cluster, token, &path_of_content)
            .await;
        self.answered(taken)?;
        let deleted = self
            .gateway
            .delete_as(cluster, token, &path(&secret_name(token.id())))
            .await;
        if let Err(error) = self.answered(deleted) {
            // It hands over nothing any more.
            eprintln!("The token {} stays until it expires: {error:#}", token.id());
        }
        Ok(())
    }

    /// Returns a successful answer.
    fn answered(&self, answer: Result<Answer, Failure>) -> anyhow::Result<Answer> {
        let gateway = self.gateway;
        let answer = answer.map_err(|failure| match failure {
            Failure::Unreachable(error) | Failure::Untrusted(error) => {
                error.context(format!("{gateway} cannot be asked for the CAs"))
            }
        })?;
        match answer.status.as_u16() {
            200 => Ok(answer),
            401 | 404 => bail!("{}", unknown(self.token)),
            _ => bail!(
                "{gateway} answers {} about the CAs: {}",
                answer.status,
                message(&answer.body)
            ),
        }
    }
}

fn path(name: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/{}/{name}", Secret::RESOURCE)
}
