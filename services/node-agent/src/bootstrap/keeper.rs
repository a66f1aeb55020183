//! Keeps the certificates of an agent that has joined: the serving one for the addresses of its Node, both renewed, and
//! the CAs of the cluster.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::bail;
use jiff::Timestamp;
use setpoint_controller::{Backoff, Client};
use setpoint_model::Key;
use setpoint_model::users::{NODE_PREFIX, NODES};
use setpoint_proto::{Reason, core};
use setpoint_tls::{Credentials, SigningRequest, Validity};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{error, info, warn};

use super::authorities;
use super::directory::Directory;
use super::request::{self, Signer};
use crate::metrics;

/// The part of the life of a certificate after which it is renewed; see the decisions of the module.
const RENEWED: std::ops::Range<f64> = 0.70..0.75;
/// The time in which a request is decided on, as the kubelet's; then another one is made.
const DECISION: Duration = Duration::from_secs(15 * 60);
/// The interval of looking at the Node, and that until there is a serving certificate.
const INTERVAL: Duration = Duration::from_secs(10);
const FIRST_INTERVAL: Duration = Duration::from_secs(1);
/// The time for which gateways may refuse the certificate of a Node that exists: one that has just started reads the CA
/// of the signers first.
const REFUSED: Duration = Duration::from_secs(30);
/// The longest wait until the clock is read again, which goes on while the machine sleeps; and the shortest one until a
/// certificate is renewed: with a clock that is ahead, a new one may be due at once.
const CLOCK_INTERVAL: Duration = Duration::from_secs(30);

/// Keeps the certificates of a node.
pub struct Keeper {
    node: String,
    gateway: Client,
    directory: Directory,
    credentials: Credentials,
}

impl Keeper {
    /// Returns the keeper of the certificates in a directory. `gateway` is the client by them, and `credentials` follow
    /// the files.
    pub fn new(
        node: &str,
        gateway: Client,
        directory: &std::path::Path,
        credentials: Credentials,
    ) -> Self {
        Self {
            node: node.to_owned(),
            gateway,
            directory: Directory::new(directory),
            credentials,
        }
    }

    /// Keeps the certificates until dropped.
    ///
    /// # Errors
    /// If gateways refuse the client certificate for good, as after the deletion of the Node.
    pub async fn run(&self) -> anyhow::Result<()> {
        let (hosts, known) = watch::channel(Vec::new());
        tokio::select! {
            ended = self.follow_node(&hosts) => ended,
            () = self.keep_client() => Ok(()),
            () = self.keep_serving(known) => Ok(()),
            () = self.follow_authorities() => Ok(()),
        }
    }

    /// Publishes the names and addresses of the Node.
    async fn follow_node(&self, hosts: &watch::Sender<Vec<String>>) -> anyhow::Result<()> {
        let mut refused = None;
        loop {
            match self
                .gateway
                .get::<core::Node>(&Key::new("", &self.node))
                .await
            {
                Ok(node) => {
                    refused = None;
                    let found = self::hosts(&node);
                    hosts.send_if_modified(|hosts| {
                        let is_new = *hosts != found;
                        *hosts = found;
                        is_new
                    });
                }
                Err(error) if error.reason == Reason::Unauthorized => {
                    let since = *refused.get_or_insert_with(Instant::now);
                    if since.elapsed() >= REFUSED {
                        return self.revoked();
                    }
                }
                Err(_) => {}
            }
            sleep(match self.credentials.serving_validity() {
                Some(_) => INTERVAL,
                None => FIRST_INTERVAL,
            })
            .await;
        }
    }

    fn revoked(&self) -> anyhow::Result<()> {
        let node = &self.node;
        error!(
            node,
            "the certificate of this node is refused: its Node was deleted"
        );
        bail!(
            "gateways refuse the certificate of node {node:?}: its Node was deleted, or the CA is not trusted any \
             more. The agent ends; another bootstrap token is needed to join again"
        )
    }

    /// Trusts the CAs that the gateways publish. One that cannot be read, such as in a cluster that publishes none,
    /// changes nothing.
    async fn follow_authorities(&self) {
        loop {
            sleep(INTERVAL).await;
            let Ok(map) = self.gateway.get(&authorities::key()).await else {
                continue;
            };
            if let Some(changed) = authorities::successors(&self.credentials.authorities(), &map) {
                let written = self.directory.write_authorities(&changed);
                match written.and_then(|()| self.credentials.reload()) {
                    Ok(()) => info!(node = self.node, "the CAs of the cluster have changed"),
                    Err(error) => warn!(node = self.node, %error, "the CAs cannot be changed"),
                }
            }
        }
    }

    async fn keep_client(&self) {
        loop {
            due(self.credentials.validity()).await;
            self.renew(Signer::Client, &[]).await;
        }
    }

    /// Requests a serving certificate once the Node has addresses, again when these change, and renews it.
    async fn keep_serving(&self, mut hosts: watch::Receiver<Vec<String>>) {
        let mut certified = self.directory.serving_hosts();
        loop {
            let wanted = hosts.borrow_and_update().clone();
            let is_due = async {
                match self.credentials.serving_validity() {
                    _ if wanted.is_empty() => std::future::pending().await,
                    Some(validity) if certified == wanted => due(validity).await,
                    _ => {}
                }
                self.renew(Signer::Serving, &wanted).await;
            };
            tokio::select! {
                () = is_due => certified = wanted,
                // Those of a request that is under way are out of date.
                Ok(()) = hosts.changed() => {}
            }
        }
    }

    /// Obtains another certificate, and retries until there is one.
    async fn renew(&self, signer: Signer, hosts: &[String]) {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(300));
        while let Err(error) = self.try_renew(signer, hosts).await {
            metrics::renewal_failed(signer == Signer::Serving);
            let (node, error) = (&self.node, format!("{error:#}"));
            warn!(node, ?signer, error, "no certificate; trying again");
            sleep(backoff.next_delay()).await;
        }
        info!(node = self.node, ?signer, "obtained a certificate");
    }

    async fn try_renew(&self, signer: Signer, hosts: &[String]) -> anyhow::Result<()> {
        let name = format!("{NODE_PREFIX}{}", self.node);
        let request = SigningRequest::create(&name, NODES, hosts)?;
        let obtained = timeout(DECISION, request::obtain(&self.gateway, signer, &request)).await;
        let Ok(obtained) = obtained else {
            bail!("nobody has decided on the request for a certificate in time");
        };
        let certificate = obtained?;
        match signer {
            Signer::Client => self.directory.write_client(&certificate, &request.key())?,
            Signer::Serving => self.directory.write_serving(&certificate, &request.key())?,
        }
        // Both files are there: what follows them would find them within a second.
        Ok(self.credentials.reload()?)
    }
}

/// Returns the names and IPs that a Node declares.
fn hosts(node: &core::Node) -> Vec<String> {
    let addresses = node.status.addresses.iter();
    let mut hosts: Vec<_> = addresses
        .filter(|address| match address.r#type.as_str() {
            "InternalIP" | "ExternalIP" => address.address.parse::<IpAddr>().is_ok(),
            "Hostname" | "InternalDNS" | "ExternalDNS" => true,
            _ => false,
        })
        .map(|address| address.address.clone())
        .collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

/// Waits until a certificate is to be renewed.
async fn due(validity: Validity) {
    let at = renewal(validity, rand::random_range(RENEWED));
    sleep(CLOCK_INTERVAL).await;
    loop {
        match Duration::try_from(at.duration_since(Timestamp::now())) {
            Ok(left) if !left.is_zero() => sleep(left.min(CLOCK_INTERVAL)).await,
            _ => return,
        }
    }
}

/// Returns the time after a part of the life of a certificate.
fn renewal(validity: Validity, part: f64) -> Timestamp {
    let life = validity.not_after.duration_since(validity.not_before);
    let life = Duration::try_from(life).unwrap_or_default();
    let at = validity.not_before.saturating_add(life.mul_f64(part));
    at.unwrap_or(validity.not_after)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::NodeAddress;

    use super::*;

    #[test]
    fn a_certificate_is_renewed_before_it_is_reported_as_expiring() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let validity = Validity {
            not_before: at(1_000),
            not_after: at(2_000),
        };
        assert_eq!(renewal(validity, RENEWED.start), at(1_700));
        assert_eq!(renewal(validity, RENEWED.end), at(1_750));
        assert!(!validity.is_expiring(at(1_750)));
        assert!(validity.is_expiring(at(1_751)));
    }

    /// Otherwise an agent whose clock is ahead would ask without end.
    #[tokio::test(start_paused = true)]
    async fn a_certificate_that_is_due_is_renewed_after_a_pause() {
        let expired = Validity {
            not_before: Timestamp::UNIX_EPOCH,
            not_after: Timestamp::UNIX_EPOCH,
        };
        let begin = Instant::now();
        due(expired).await;
        assert_eq!(begin.elapsed(), CLOCK_INTERVAL);
    }

    #[test]
    fn the_names_of_a_node_are_those_that_it_declares() {
        let mut node = core::Node::default();
        node.status.addresses = [
            ("InternalIP", "10.0.0.1"),
            ("InternalIP", "engine"),
            ("Hostname", "a"),
            ("InternalDNS", "a"),
            ("Other", "b"),
        ]
        .map(|(kind, address)| NodeAddress {
            r#type: kind.into(),
            address: address.into(),
        })
        .into();
        assert_eq!(hosts(&node), ["10.0.0.1", "a"]);
    }
}
