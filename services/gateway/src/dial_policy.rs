//! Decides what the gateway connects to.
//!
//! Any connection that an object of the API asks for is made here, by a [`Rule`] that allows it. Ports of Pods are not
//! among them: the agent of a Pod's node connects to the Pod's own address.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use setpoint_model::replicas::{BESIDE_NODE_AGENT, NODE_AGENT};
use setpoint_model::users::{self, NODES, SIMULATED_NODES};
use setpoint_tls::{ClientStream, Credentials, PeerIdentity};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

/// The timeout of resolving the name of a replica, and that of connecting to it.
const REPLICA_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of connecting to an address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The addresses at which clouds serve credentials to their machines, beside the link-local ones: those of Alibaba,
/// Azure, Oracle, AWS and Google.
const METADATA: [IpAddr; 5] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// The reason why the gateway may connect to an address.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// A node names the address as that of its agent, whose certificate is verified before anything is sent.
    Agent,
    /// A Lease announces a process at the address, for the one call that reads its decision log.
    Replica,
    /// A webhook or an APIService names the server, whose certificate is verified before anything is sent.
    Verified,
    /// An APIService names a server whose certificate is not verified.
    Unverified,
}

/// Decides which addresses the gateway connects to.
#[derive(Clone, Debug, Default)]
pub struct DialPolicy {
    etcd_ports: BTreeSet<u16>,
    own_port: Option<u16>,
    /// The gateway's own; `None` for connections to agents and replicas without TLS.
    credentials: Option<Credentials>,
}

impl DialPolicy {
    /// Returns those of a gateway at this port, with etcd at these ports: neither is called, whatever an object names.
    pub fn except(etcd_ports: impl IntoIterator<Item = u16>, own_port: u16) -> Self {
        Self {
            etcd_ports: etcd_ports.into_iter().collect(),
            own_port: Some(own_port),
            credentials: None,
        }
    }

    /// Sets the credentials of connections to agents and to replicas of services.
    #[must_use]
    pub fn with_credentials(mut self, credentials: Option<Credentials>) -> Self {
        self.credentials = credentials;
        self
    }

    /// Returns the credentials of connections to agents.
    pub(crate) fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// Connects to the replica of a service that a Lease announces, by a name or an IP. With credentials, what answers
    /// must have a certificate with the name and the user of the service.
    ///
    /// # Errors
    /// When the address is not allowed, the name cannot be resolved, or no replica of the service answers.
    pub(crate) async fn replica(
        &self,
        service: &str,
        host: &str,
        port: u16,
    ) -> Result<Channel, String> {
        let address = self.resolve_replica(host, port).await?;
        let unreachable = || format!("{host}:{port} cannot be reached");
        let connecting = timeout(REPLICA_TIMEOUT, self.connect_to_replica(service, address));
        let connected = connecting.await.map_err(|_| unreachable())?;
        let connected = connected.map_err(|error| match is_stranger(&error) {
            true => format!("{host}:{port} has no certificate of a {service}"),
            false => unreachable(),
        });
        let mut stream = Some(TokioIo::new(connected?));
        let once = service_fn(move |_: Uri| {
            let stream = stream.take();
            async move { stream.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected)) }
        });
        let endpoint = Endpoint::from_shared(format!("http://{address}"));
        let endpoint = endpoint.map_err(|error| error.to_string())?;
        let channel = endpoint.connect_with_connector(once).await;
        channel.map_err(|_| unreachable())
    }

    async fn resolve_replica(&self, host: &str, port: u16) -> Result<SocketAddr, String> {
        let resolved = timeout(REPLICA_TIMEOUT, lookup_host((host, port))).await;
        let resolved =
            resolved.map_err(|_| format!("{host} is not resolved in {REPLICA_TIMEOUT:?}"))?;
        let mut resolved = resolved.map_err(|error| format!("{host} is not resolved: {error}"))?;
        let address = resolved.next();
        let address = address.ok_or_else(|| format!("{host} has no address"))?;
        self.check(Rule::Replica, address)?;
        Ok(address)
    }

    async fn connect_to_replica(
        &self,
        service: &str,
        address: SocketAddr,
    ) -> io::Result<ClientStream<TcpStream>> {
        let stream = self.connect(Rule::Replica, address).await?;
        let Some(credentials) = &self.credentials else {
            return Ok(ClientStream::Plain(stream));
        };
        let name = ServerName::try_from(service.to_owned()).map_err(io::Error::other)?;
        let config = match service == NODE_AGENT || BESIDE_NODE_AGENT.contains(&service) {
            true => Arc::new(credentials.client_of_agent(address.ip(), is_of_a_node)),
            false => credentials.client(),
        };
        let stream = ClientStream::handshake(config, name, stream).await?;
        let subject = stream.server().map_err(io::Error::other)?;
        match subject.is_some_and(|subject| is_of_service(&subject, service)) {
            true => Ok(stream),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Connects to an address.
    ///
    /// # Errors
    /// `PermissionDenied` when the rule does not allow the address; others when nothing answers there.
    pub(crate) async fn connect(&self, rule: Rule, address: SocketAddr) -> io::Result<TcpStream> {
        let allowed = self.check(rule, address);
        allowed.map_err(|why| io::Error::new(io::ErrorKind::PermissionDenied, why))?;
        let connecting = timeout(CONNECT_TIMEOUT, TcpStream::connect(address));
        let stream = connecting.await.map_err(|_| io::ErrorKind::TimedOut)??;
        // Without it, small requests may wait for acknowledgements.
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Checks whether the rule allows a connection to the address.
    ///
    /// # Errors
    /// The reason why it does not.
    pub(crate) fn check(&self, rule: Rule, address: SocketAddr) -> Result<(), String> {
        let ip = address.ip().to_canonical();
        match rule {
            // Without TLS nothing proves that an agent is there.
            Rule::Agent if self.credentials.is_none() && !is_private(ip) => {
                return Err(not_private(ip));
            }
            Rule::Replica | Rule::Unverified if !is_private(ip) => {
                return Err(not_private(ip));
            }
            Rule::Agent | Rule::Verified if !is_routable(ip) => {
                return Err(format!("the gateway does not call {ip}"));
            }
            Rule::Agent | Rule::Replica | Rule::Unverified | Rule::Verified => {}
        }
        self.check_port(ip, address.port())
    }

    fn check_port(&self, ip: IpAddr, port: u16) -> Result<(), String> {
        let own = self.own_port == Some(port) && is_own(ip);
        if port == 0 || self.etcd_ports.contains(&port) || own {
            return Err(format!("the gateway does not call {ip} at port {port}"));
        }
        Ok(())
    }
}

fn not_private(ip: IpAddr) -> String {
    format!("{ip} is neither a loopback nor a private address, and the gateway calls only those")
}

/// Returns whether a handshake has failed because of who has answered.
fn is_stranger(error: &io::Error) -> bool {
    let inner = error.get_ref();
    error.kind() == io::ErrorKind::PermissionDenied
        || inner.is_some_and(|inner| inner.is::<rustls::Error>())
}

/// Returns whether the subject of a certificate is that of a replica of this service. Agents have those of their nodes,
/// and so has what runs beside them on machines that have joined.
fn is_of_service(subject: &PeerIdentity, service: &str) -> bool {
    if service == NODE_AGENT {
        return is_of_a_node(subject) || is_in(subject, SIMULATED_NODES);
    }
    let is_beside = BESIDE_NODE_AGENT.contains(&service) && is_of_a_node(subject);
    is_beside || subject.name == users::of_service(service)
}

fn is_of_a_node(subject: &PeerIdentity) -> bool {
    is_in(subject, NODES)
}

fn is_in(subject: &PeerIdentity, group: &str) -> bool {
    subject.groups.iter().any(|one| one == group)
}

/// Returns whether the address is in a loopback, private or shared range, and not one of a cloud's metadata.
fn is_private(ip: IpAddr) -> bool {
    const SHARED: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 0);
    let is_private = match ip {
        IpAddr::V4(ip) => {
            let shared = ip.to_bits() >> 22 == SHARED.to_bits() >> 22;
            ip.is_loopback() || ip.is_private() || shared
        }
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local(),
    };
    is_private && !METADATA.contains(&ip)
}

/// Returns whether the address can be that of a server anywhere, and is not one of a cloud's metadata.
fn is_routable(ip: IpAddr) -> bool {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let is_none = ip.is_unspecified() || ip.is_multicast();
    !(is_link_local || is_none || METADATA.contains(&ip))
}

/// Returns whether this host has the address: no other can be bound.
fn is_own(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests;
