//! The Lease that announces a replica, leading or not, and its address.

use std::net::SocketAddr;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_model::Key;
use setpoint_model::replicas::{ADDRESS, NAMESPACE, SERVICE};
use setpoint_proto::coordination::{Lease, LeaseSpec};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Reason};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::client::Preconditions;
use crate::{Backoff, Client};

/// The duration of the Lease in seconds, after which the replica counts as gone.
const SECONDS: i32 = 40;
/// The interval of renewals: three may fail.
const INTERVAL: Duration = Duration::from_secs(10);
/// The time limit of deleting the Lease at shutdown; if it fails, the Lease expires.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);

/// The announcement of a replica, renewed until it leaves or this is dropped.
#[derive(Debug)]
pub struct Membership {
    leave: CancellationToken,
    task: JoinHandle<()>,
}

impl Membership {
    /// Announces a replica of `service`, found at `address` (host and port).
    ///
    /// If the host is the unspecified IP, the replica is announced at the IP from which it reaches the gateway. Must be
    /// called inside a tokio runtime.
    pub fn announce(gateway: Client, service: &str, instance: &str, address: &str) -> Self {
        let leave = CancellationToken::new();
        let replica = Replica {
            gateway,
            service: service.to_owned(),
            instance: instance.to_owned(),
            address: address.to_owned(),
        };
        let (tasks, left) = (replica.gateway.tasks().clone(), leave.clone());
        let task = tokio::spawn(async move {
            let start = || replica.run(&left);
            tasks.supervise("membership", "", start).await;
        });
        Self { leave, task }
    }

    /// Deletes the announcement.
    pub async fn leave(mut self) {
        self.leave.cancel();
        if timeout(LEAVE_TIMEOUT, &mut self.task).await.is_err() {
            debug!("the Lease of the replica is left to expire");
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Replica {
    gateway: Client,
    service: String,
    instance: String,
    address: String,
}

impl Replica {
    async fn run(&self, leave: &CancellationToken) {
        let mut backoff = Backoff::new(Duration::from_millis(200), INTERVAL);
        let mut known = None;
        while !leave.is_cancelled() {
            // Not cancelled by shutdown: an in-flight write could create the Lease again after its deletion.
            let renewed = self.renew(known.as_ref()).await;
            let rest = match &renewed {
                Ok(_) => {
                    backoff.reset();
                    INTERVAL
                }
                Err(error) => {
                    warn!(replica = self.instance, %error, "the Lease of the replica is not renewed");
                    backoff.next_delay()
                }
            };
            // After a failure the current Lease is read first.
            known = renewed.ok();
            leave.run_until_cancelled(sleep(rest)).await;
        }
        if let Some(lease) = known {
            self.remove(&lease).await;
        }
    }

    /// Renews the known Lease, or the one of its name, which an earlier process of this replica has left.
    async fn renew(&self, known: Option<&Lease>) -> Result<Lease, ApiError> {
        let meta = match known {
            Some(lease) => Some(lease.metadata.clone()),
            None => self.former().await?,
        };
        let address = reachable(&self.gateway, &self.address).await;
        let lease = self.lease(meta.as_ref(), &address);
        let written = match meta {
            Some(_) => self.gateway.update(&lease).await,
            None => self.gateway.create(&lease).await,
        };
        written?.object()
    }

    async fn former(&self) -> Result<Option<ObjectMeta>, ApiError> {
        let key = Key::new(NAMESPACE, name(&self.instance));
        match self.gateway.get::<Lease>(&key).await {
            Err(error) if error.reason == Reason::NotFound => Ok(None),
            lease => Ok(Some(lease?.metadata)),
        }
    }

    fn lease(&self, former: Option<&ObjectMeta>, address: &str) -> Lease {
        let mut metadata = former.cloned().unwrap_or_default();
        NAMESPACE.clone_into(&mut metadata.namespace);
        metadata.name = name(&self.instance);
        metadata
            .labels
            .insert(SERVICE.to_owned(), self.service.clone());
        metadata
            .annotations
            .insert(ADDRESS.to_owned(), address.to_owned());
        let spec = LeaseSpec {
            holder_identity: Some(self.instance.clone()),
            lease_duration_seconds: Some(SECONDS),
            renew_time: Some(Timestamp::now().into()),
            ..LeaseSpec::default()
        };
        Lease { metadata, spec }
    }

    /// Deletes the Lease, unless a later process of the same name has written it since.
    async fn remove(&self, lease: &Lease) {
        let unchanged = Preconditions {
            uid: Some(lease.metadata.uid.clone()),
            revision: lease.metadata.resource_version.parse().ok(),
        };
        let key = Key::of(&lease.metadata);
        if let Err(error) = self.gateway.delete::<Lease>(&key, unchanged, None).await {
            debug!(replica = self.instance, %error, "the Lease of the replica is left to expire");
        }
    }
}

/// Returns the address at which others reach a process that listens on `address`: an unspecified IP is replaced.
pub async fn reachable(gateway: &Client, address: &str) -> String {
    let local = match address.parse::<SocketAddr>() {
        Ok(listening) if listening.ip().is_unspecified() => local(gateway, listening.port()).await,
        _ => None,
    };
    local.unwrap_or_else(|| address.to_owned())
}

/// Returns the local IP of connections to the gateway. Sends no packet.
async fn local(gateway: &Client, port: u16) -> Option<String> {
    for gateway in gateway.host().split(',') {
        let gateway = gateway
            .rsplit("//")
            .next()
            .unwrap_or(gateway)
            .trim_end_matches('/');
        for target in tokio::net::lookup_host(gateway).await.into_iter().flatten() {
            let own: SocketAddr = match target.is_ipv4() {
                true => ([0, 0, 0, 0], 0).into(),
                false => ([0u16; 8], 0).into(),
            };
            let Ok(socket) = UdpSocket::bind(own).await else {
                continue;
            };
            if socket.connect(target).await.is_ok() {
                let ip = socket.local_addr().ok()?.ip();
                return Some(SocketAddr::new(ip, port).to_string());
            }
        }
    }
    None
}

/// Returns the name of the Lease of an instance: the instance's name as an object can have it.
pub fn name(instance: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let lower = instance.to_lowercase();
    let name = lower.replace(|letter| !allowed(letter) && letter != '.', "-");
    name.trim_matches(|letter| !allowed(letter)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_instance_has_a_name_that_an_object_can_have() {
        assert_eq!(name("scheduler-0"), "scheduler-0");
        assert_eq!(name("Scheduler_My.Host_"), "scheduler-my.host");
    }

    #[tokio::test]
    async fn who_listens_on_all_addresses_is_announced_at_the_one_that_reaches_the_gateway() {
        let settings = crate::client::Settings {
            address: "http://127.0.0.1:1".to_owned(),
            ..Default::default()
        };
        let announced = async |address: &str| {
            let replica = Replica {
                gateway: Client::connect(&settings, "a").unwrap(),
                service: "a".to_owned(),
                instance: "a-0".to_owned(),
                address: address.to_owned(),
            };
            reachable(&replica.gateway, &replica.address).await
        };
        assert_eq!(announced("0.0.0.0:8080").await, "127.0.0.1:8080");
        assert_eq!(announced("10.1.2.3:8080").await, "10.1.2.3:8080");
        assert_eq!(announced("my-host:8080").await, "my-host:8080");
    }
}
