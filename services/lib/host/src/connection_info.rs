//! The connection of a request: its local address and its client.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use setpoint_tls::PeerIdentity;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The time for which requests are accepted on a connection whose client certificate has expired: it is closed when
/// that happens, and requests that are under way are still answered.
const EXPIRY_GRACE: SignedDuration = SignedDuration::from_secs(30);
/// The longest wait until the clock is read again, which goes on while the machine sleeps.
const CLOCK_INTERVAL: Duration = Duration::from_secs(60);

/// The user that gateways are, and the group of administrators, by their certificates.
const GATEWAY: &str = "system:setpoint:gateway";
const ADMINISTRATORS: &str = "system:masters";

/// The identity of a client from its certificate: none if it has no certificate, or one that names no user; or why
/// the certificate is not accepted.
type Client = Result<Option<PeerIdentity>, String>;

/// The connection of a request; an extension of every request.
#[derive(Clone, Debug)]
pub struct ConnectionInfo(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    local: SocketAddr,
    /// `None` without TLS.
    client: Option<Client>,
    /// The reason why the client's certificate is no longer trusted.
    distrust: OnceLock<String>,
    /// Cancelled once there is one.
    distrusted: CancellationToken,
}

impl ConnectionInfo {
    /// Returns the description of a new connection to `local`, an address of this process, without TLS.
    pub fn new(local: SocketAddr) -> Self {
        Self::with(local, None)
    }

    /// Returns the description of a new connection over TLS, whose client has this certificate.
    ///
    /// `client` is none if it has no certificate, or one that names no user, and an error if its certificate is not
    /// accepted.
    pub fn over_tls(local: SocketAddr, client: Result<Option<PeerIdentity>, String>) -> Self {
        Self::with(local, Some(client))
    }

    fn with(local: SocketAddr, client: Option<Client>) -> Self {
        Self(Arc::new(Inner {
            local: SocketAddr::new(local.ip().to_canonical(), local.port()),
            client,
            distrust: OnceLock::new(),
            distrusted: CancellationToken::new(),
        }))
    }

    /// Returns the address that the client is connected to.
    pub fn local(&self) -> SocketAddr {
        self.0.local
    }

    /// Returns whether the connection is one of TLS.
    pub fn is_tls(&self) -> bool {
        self.0.client.is_some()
    }

    /// Returns the identity of the client's certificate; `None` if it has none that is accepted now.
    pub fn client(&self) -> Option<&PeerIdentity> {
        self.identity().ok().flatten()
    }

    /// Returns the identity of the client's certificate; `None` if it has no certificate, or one that names no user.
    ///
    /// # Errors
    /// Why the certificate is not accepted. As in Kubernetes, a request with one is not anonymous, but unauthorized.
    pub fn identity(&self) -> Result<Option<&PeerIdentity>, String> {
        if let Some(reason) = self.0.distrust.get() {
            return Err(reason.clone());
        }
        match &self.0.client {
            None | Some(Ok(None)) => Ok(None),
            Some(Err(reason)) => Err(reason.clone()),
            Some(Ok(Some(client))) if is_past(client.not_after, EXPIRY_GRACE) => Err(format!(
                "the client certificate has expired at {}",
                client.not_after
            )),
            Some(Ok(Some(client))) => Ok(Some(client)),
        }
    }

    /// Returns whether the client is a gateway by its certificate. Without TLS every client may be one.
    pub fn is_of_gateway(&self) -> bool {
        !self.is_tls() || self.client().is_some_and(|client| client.name == GATEWAY)
    }

    /// Returns whether the client is an administrator by its certificate. Without TLS every client may be one.
    pub fn is_of_administrator(&self) -> bool {
        let is_one = |client: &PeerIdentity| client.groups.iter().any(|one| one == ADMINISTRATORS);
        !self.is_tls() || self.client().is_some_and(is_one)
    }

    /// Records that the client's certificate, which was accepted, is no longer trusted: the connection gets no further
    /// requests, and is closed a moment later.
    pub fn distrust(&self, reason: String) {
        let _ = self.0.distrust.set(reason);
        self.0.distrusted.cancel();
    }

    /// Returns a reference that does not keep the description of a connection that has ended.
    pub fn downgrade(&self) -> WeakConnection {
        WeakConnection(Arc::downgrade(&self.0))
    }

    /// Waits until the client's certificate is no longer trusted.
    pub(crate) async fn distrusted(&self) {
        self.0.distrusted.cancelled().await;
    }

    /// Waits until the client's certificate expires.
    pub(crate) async fn expired(&self) {
        let Some(Ok(Some(client))) = &self.0.client else {
            return std::future::pending().await;
        };
        loop {
            let left = client.not_after.duration_since(Timestamp::now());
            match Duration::try_from(left) {
                Ok(left) if !left.is_zero() => sleep(left.min(CLOCK_INTERVAL)).await,
                _ => return,
            }
        }
    }
}

/// A reference to a connection that may have ended.
#[derive(Clone, Debug)]
pub struct WeakConnection(Weak<Inner>);

impl WeakConnection {
    /// Returns the connection; `None` if it has ended.
    pub fn upgrade(&self) -> Option<ConnectionInfo> {
        self.0.upgrade().map(ConnectionInfo)
    }

    /// Returns whether it is this connection.
    pub fn is(&self, other: &ConnectionInfo) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&other.0))
    }
}

/// Returns whether a time passed more than `grace` ago.
fn is_past(time: Timestamp, grace: SignedDuration) -> bool {
    Timestamp::now().duration_since(time) > grace
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(expires_in: i64) -> PeerIdentity {
        PeerIdentity {
            name: "system:admin".to_owned(),
            groups: vec!["system:masters".to_owned()],
            uid: String::new(),
            fingerprint: "0".repeat(64),
            not_after: Timestamp::now() + SignedDuration::from_secs(expires_in),
        }
    }

    fn connection(client: Client) -> ConnectionInfo {
        ConnectionInfo::over_tls(([127, 0, 0, 1], 1).into(), client)
    }

    #[test]
    fn a_client_is_known_by_its_certificate_until_that_expires() {
        let plain = ConnectionInfo::new(([127, 0, 0, 1], 1).into());
        assert!(!plain.is_tls() && plain.client().is_none());
        let valid = connection(Ok(Some(client(60))));
        assert!(valid.is_tls());
        assert_eq!(valid.client().unwrap().name, "system:admin");
        assert_eq!(connection(Ok(None)).identity(), Ok(None));
        let expired = connection(Ok(Some(client(-60))));
        assert_eq!(expired.client(), None);
        assert!(expired.identity().unwrap_err().contains("has expired"));
        valid.distrust("its CA is gone".to_owned());
        assert_eq!(valid.client(), None);
        assert_eq!(valid.identity().unwrap_err(), "its CA is gone");
        let foreign = connection(Err("unknown issuer".to_owned()));
        assert_eq!(foreign.identity().unwrap_err(), "unknown issuer");
    }

    #[tokio::test(start_paused = true)]
    async fn the_expiry_of_the_certificate_is_waited_for() {
        let soon = Duration::from_secs(1);
        let wait = async |client: Client| {
            let connection = connection(client);
            tokio::time::timeout(soon, connection.expired())
                .await
                .is_ok()
        };
        assert!(wait(Ok(Some(client(-1)))).await);
        assert!(!wait(Ok(Some(client(3_600)))).await);
        assert!(!wait(Ok(None)).await);
    }
}
