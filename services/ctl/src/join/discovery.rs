//! Finds the CA of a cluster by a token (upstream: `kubeadm join`, discovery by token).
//!
//! `kube-public/cluster-info` is read from whoever answers. That it is from the cluster of the token is told by its
//! signature; that nobody who has the token, too, has made it is told by the hash of the CA. Then it is read again,
//! from a server that has a certificate by that CA.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use setpoint_host::http_client::Answer;
use setpoint_proto::Resource as _;
use setpoint_proto::core::ConfigMap;
use setpoint_tls::{Pin, Pinned};
use tokio::time::{Instant, sleep};

use super::gateway::{Failure, Gateway};
use super::{clock, signature};
use crate::launcher::embedded;
use crate::token::Token;

/// The time for which a gateway may be unreachable.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time in which the signature by a new token comes. The signer takes a fraction of a second, or more on a busy
/// machine.
const SIGNED_WITHIN: Duration = Duration::from_secs(10);
/// The interval of attempts.
const INTERVAL: Duration = Duration::from_millis(500);
/// The time until the first message about a delay; doubles with each message.
const PROGRESS_DELAY: Duration = Duration::from_secs(2);

/// Why an attempt has not found the CA.
enum Obstacle {
    /// It may be gone soon.
    Passing { reason: String, limit: Duration },
    /// It stays.
    Final(anyhow::Error),
}

impl From<anyhow::Error> for Obstacle {
    fn from(error: anyhow::Error) -> Self {
        Self::Final(error)
    }
}

/// Returns the first of these gateways of a cluster that answers, and the CAs of the cluster that have one of these
/// pins. Prints why it takes a while, if it does.
///
/// # Errors
/// None can be reached in time, the token is unknown, or somebody else answers.
pub async fn discover(
    gateways: &[Gateway],
    token: &Token,
    pins: &[Pin],
) -> anyhow::Result<(Gateway, Pinned)> {
    let (begin, mut next_progress) = (Instant::now(), PROGRESS_DELAY);
    loop {
        let (reason, limit) = match attempt_each(gateways, token, pins).await {
            Ok(found) => return Ok(found),
            Err(Obstacle::Final(error)) => return Err(error),
            Err(Obstacle::Passing { reason, limit }) => (reason, limit),
        };
        if begin.elapsed() >= limit {
            bail!("{reason}");
        }
        if begin.elapsed() >= next_progress {
            println!("Trying again: {reason}");
            next_progress *= 2;
        }
        sleep(INTERVAL).await;
    }
}

/// Attempts it at each gateway in turn. The reason of a failure is that which is given up first.
async fn attempt_each(
    gateways: &[Gateway],
    token: &Token,
    pins: &[Pin],
) -> Result<(Gateway, Pinned), Obstacle> {
    let mut first: Option<(String, Duration)> = None;
    for gateway in gateways {
        match attempt(gateway, token, pins).await {
            Ok(authorities) => return Ok((gateway.clone(), authorities)),
            Err(Obstacle::Passing { reason, limit }) => {
                if first.as_ref().is_none_or(|(_, first)| limit < *first) {
                    first = Some((reason, limit));
                }
            }
            Err(stays) => return Err(stays),
        }
    }
    let (reason, limit) = first.context("no gateway is given")?;
    Err(passing(reason, limit))
}

async fn attempt(gateway: &Gateway, token: &Token, pins: &[Pin]) -> Result<Pinned, Obstacle> {
    let first = gateway.get_unverified(&path()).await;
    let first = first.map_err(|failure| obstacle(gateway, failure))?;
    clock::check(gateway, &first)?;
    let first = kubeconfig(gateway, &first, token)?;
    let authorities = embedded(&first, "certificate-authority-data");
    let authorities = authorities.context("cluster-info cannot be read")?;
    let authorities = Pinned::parse(&authorities).context("cluster-info cannot be read")?;
    let trusted = pinned(&authorities, pins)?;
    let again = gateway.get(&trusted, &path()).await;
    let again = again.map_err(|failure| obstacle(gateway, failure))?;
    let again = kubeconfig(gateway, &again, token)?;
    match again == first {
        true => Ok(trusted),
        // It has just changed, or an answer was forged.
        false => Err(passing(
            format!("{gateway} has answered twice, and differently"),
            PATIENCE,
        )),
    }
}

/// Returns the path of the ConfigMap.
fn path() -> String {
    format!(
        "/api/v1/namespaces/kube-public/{}/cluster-info",
        ConfigMap::RESOURCE
    )
}

/// Returns the CAs with a pin.
fn pinned(authorities: &Pinned, pins: &[Pin]) -> anyhow::Result<Pinned> {
    authorities.matching(pins).with_context(|| {
        let found = authorities.pins().into_iter().map(|pin| pin.to_string());
        let found: Vec<_> = found.collect();
        format!(
            "the CA of this cluster has the hash {}, and not that of --ca-cert-hash: this is not the cluster that the \
             command is from, or its CA was changed since; nothing was sent to it",
            found.join(" or ")
        )
    })
}

/// Returns the text that the token has signed.
fn kubeconfig(gateway: &Gateway, answer: &Answer, token: &Token) -> Result<String, Obstacle> {
    match answer.status.as_u16() {
        200 => {}
        401 | 403 | 404 => {
            return Err(Obstacle::Final(anyhow!(
                "{gateway} publishes no kube-public/cluster-info ({}): its gateways do with the setting cluster_info.server",
                answer.status
            )));
        }
        _ => {
            return Err(passing(
                format!("{gateway} answers {}", answer.status),
                PATIENCE,
            ));
        }
    }
    let map: serde_json::Value = serde_json::from_str(&answer.body)
        .map_err(|_| anyhow!("{gateway} answers, but is no gateway"))?;
    let data = |key: &str| map["data"][key].as_str();
    let text = data("kubeconfig").context("cluster-info has no kubeconfig")?;
    let Some(signed) = data(&format!("jws-kubeconfig-{}", token.id())) else {
        return Err(passing(unknown(token), SIGNED_WITHIN));
    };
    signature::verify(signed, text, token).with_context(|| {
        format!(
            "{gateway} does not know the secret of the token {}, or its answer was changed",
            token.id()
        )
    })?;
    Ok(text.to_owned())
}

/// Returns the text about a token that the cluster does not have, whatever the reason: it does not tell.
pub fn unknown(token: &Token) -> String {
    format!(
        "the cluster has no token {}: it has expired, was used or deleted, or never was; `setpoint token create` makes one",
        token.id()
    )
}

fn obstacle(gateway: &Gateway, failure: Failure) -> Obstacle {
    match failure {
        Failure::Unreachable(error) => {
            passing(format!("{gateway} cannot be reached: {error:#}"), PATIENCE)
        }
        Failure::Untrusted(error) => Obstacle::Final(error.context(format!(
            "{gateway} has no certificate by the CA of --ca-cert-hash for this address"
        ))),
    }
}

fn passing(reason: String, limit: Duration) -> Obstacle {
    Obstacle::Passing { reason, limit }
}

#[cfg(test)]
mod tests;
