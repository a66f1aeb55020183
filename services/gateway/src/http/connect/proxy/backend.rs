//! The servers that requests are passed on to, and the connections to them.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::{Bytes, BytesMut};
use rand::seq::IndexedRandom as _;
use setpoint_codec::kind_of;
use setpoint_host::unverified_tls;
use setpoint_model::Cidr;
use setpoint_model::endpointslice::SERVICE_NAME;
use setpoint_model::selector::{Fields, Selector};
use setpoint_proto::core::{Node, Pod, Service};
use setpoint_proto::discovery::{Endpoint, EndpointSlice};
use setpoint_proto::setpoint::OpenPort;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::cache::AtLeast;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadHalf,
    WriteHalf, duplex, split,
};
use tracing::debug;

use super::super::{ConnectRequest, kubelet, target};
use super::name::Name;
use crate::agents::{self, AgentAddress, PortCall, Protocol, Sink, Source, forward};
use crate::dial_policy::Rule;
use crate::registry::{Filter, RequestContext, errors};
use crate::verbs::read::{ListParams, RevisionMatch};

/// The bytes of each direction that wait.
const PIPE: usize = 64 << 10;
/// The bytes that are read at once.
const CHUNK: usize = 32 << 10;
/// The port of HTTP.
const HTTP: u16 = 80;

/// A connection to a backend.
pub(super) struct Backend {
    pub connection: Box<dyn Connection>,
    /// Its name in links of its pages.
    pub host: String,
    /// The agent that it is.
    pub agent: Option<AgentAddress>,
}

/// A byte stream.
pub(super) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Connects to what a request names, with TLS if it names the scheme https.
///
/// # Errors
/// If it does not exist or cannot be reached.
pub(super) async fn find(
    request: &ConnectRequest,
    context: &RequestContext,
    name: &Name,
) -> Result<Backend, ApiError> {
    let backend = connect(request, context, name).await?;
    // The connection to an agent has TLS by the settings of the gateway, whatever the name says.
    if !name.is_https || backend.agent.is_some() {
        return Ok(backend);
    }
    let ip = backend.host.rsplit_once(':').map_or("", |(ip, _)| ip);
    let secured = unverified_tls::connect(ip.trim_matches(['[', ']']), backend.connection).await;
    let secured = secured.map_err(|error| unreachable(&error))?;
    Ok(Backend {
        connection: Box::new(secured),
        host: backend.host,
        agent: backend.agent,
    })
}

async fn connect(
    request: &ConnectRequest,
    context: &RequestContext,
    name: &Name,
) -> Result<Backend, ApiError> {
    let search = Search { request, context };
    let kind = request.route.kind;
    if *kind == *kind_of::<Pod>() {
        return search.pod(name).await;
    }
    match *kind == *kind_of::<Service>() {
        true => search.service(name).await,
        false => search.node(name).await,
    }
}

struct Search<'r> {
    request: &'r ConnectRequest,
    context: &'r RequestContext,
}

impl Search<'_> {
    async fn pod(&self, name: &Name) -> Result<Backend, ApiError> {
        let pod = self.read_pod(&name.name).await?;
        let port = match name.port.as_str() {
            "" => first_port(&pod),
            port => number(port)?,
        };
        self.connect(pod, port).await
    }

    async fn read_pod(&self, name: &str) -> Result<Pod, ApiError> {
        let namespace = &self.request.route.namespace;
        target::read(&self.request.registry, self.context, namespace, name).await
    }

    /// Connects to a Pod that is ready and that the Service selects.
    async fn service(&self, name: &Name) -> Result<Backend, ApiError> {
        let (registry, namespace) = (&self.request.registry, &self.request.route.namespace);
        let service: Service = target::read(registry, self.context, namespace, &name.name).await?;
        let port = port_name(&service, name)?;
        let slices = self.slices(&name.name).await?;
        let candidates = candidates(&slices, &port);
        let chosen = candidates.choose(&mut rand::rng());
        let (pod, port) = chosen.ok_or_else(|| {
            let message = format!(
                "no endpoints available for service {:?}",
                self.request.route.name
            );
            unavailable(message)
        })?;
        let pod = self.read_pod(pod).await?;
        self.connect(pod, *port).await
    }

    async fn slices(&self, service: &str) -> Result<Vec<EndpointSlice>, ApiError> {
        let selector = Selector::parse(&format!("{SERVICE_NAME}={service}"));
        let selector = selector.map_err(|error| unavailable(error.to_string()))?;
        let kind = kind_of::<EndpointSlice>();
        let namespace = &self.request.route.namespace;
        let params = ListParams {
            filter: Filter::new(kind, namespace, selector, &Fields::default())?,
            limit: 0,
            continue_token: String::new(),
            at: RevisionMatch::NotOlderThan(AtLeast::Any),
        };
        let list = self.request.registry.list(self.context, &params).await?;
        let slices = list.items.iter().map(|item| {
            let slice = <EndpointSlice as prost::Message>::decode(item.raw.as_ref());
            errors::readable(slice)
        });
        slices.collect()
    }

    async fn connect(&self, pod: Pod, port: u16) -> Result<Backend, ApiError> {
        let registry = &self.request.registry;
        let node = target::node_of(registry, self.context, &pod).await?;
        if kubelet::runs(&node) {
            return self.dial(&node, &pod, port).await;
        }
        let agent = agents::connect(registry.dial_policy(), &node).await?;
        let host = format!("{}:{port}", pod.status.pod_ip);
        let open = OpenPort {
            namespace: pod.metadata.namespace,
            pod: pod.metadata.name,
            uid: pod.metadata.uid,
            port: port.into(),
            loopback: false,
        };
        let call = PortCall::open(agent, open).await;
        let call = call.map_err(|error| unreachable(&error.message))?;
        let (near, far) = duplex(PIPE);
        self.request.streams.spawn(async move {
            let (reader, writer) = split(far);
            let (mut source, mut sink) = (Reader(reader), Writer(writer));
            if let Err(error) = forward(call, &mut source, &mut sink).await {
                debug!(error, "a connection to a Pod broke");
            }
        });
        Ok(Backend {
            connection: Box::new(near),
            host,
            agent: None,
        })
    }

    /// Connects to a Pod by its address, as upstream does, if that is in the range of its node: the address is what
    /// the kubelet says, the range is not.
    async fn dial(&self, node: &Node, pod: &Pod, port: u16) -> Result<Backend, ApiError> {
        let ip = pod.status.pod_ip.parse::<Ipv4Addr>();
        let ip = ip.map_err(|_| unreachable("the Pod has no address"))?;
        let mut ranges = node.spec.pod_cidrs.iter();
        let is_of_node = |range: &String| range.parse().is_ok_and(|range: Cidr| range.contains(ip));
        if !ranges.any(is_of_node) {
            let node = &node.metadata.name;
            let why = format!("{ip} is not in the range of Pod addresses of node {node:?}");
            return Err(unreachable(&why));
        }
        let (address, policy) = (
            SocketAddr::from((ip, port)),
            self.request.registry.dial_policy(),
        );
        let connected = policy.connect(Rule::Unverified, address).await;
        let connected = connected.map_err(|error| unreachable(&error.to_string()))?;
        Ok(Backend {
            connection: Box::new(connected),
            host: address.to_string(),
            agent: None,
        })
    }

    /// Connects to the agent of a node, which has its pages at the same port as its calls. No other port of a node is
    /// connected to.
    async fn node(&self, name: &Name) -> Result<Backend, ApiError> {
        let registry = &self.request.registry;
        let node: Node = target::read(registry, self.context, "", &name.name).await?;
        let policy = registry.dial_policy();
        let unreachable = |error: ApiError| unreachable(&error.message);
        let agent = AgentAddress::of(&node).map_err(unreachable)?;
        let address = agent.socket();
        if !name.port.is_empty() && number(&name.port)? != address.port() {
            let why = format!("port {} is not that of the node's agent", name.port);
            return Err(self::unreachable(&why));
        }
        let connection = agent.dial(policy, Protocol::Http1).await;
        let connection = connection.map_err(unreachable)?;
        Ok(Backend {
            connection: Box::new(connection),
            host: address.to_string(),
            agent: Some(agent),
        })
    }
}

fn first_port(pod: &Pod) -> u16 {
    let ports = pod
        .spec
        .containers
        .iter()
        .flat_map(|container| &container.ports);
    let mut ports = ports.filter_map(|port| u16::try_from(port.container_port).ok());
    ports.next().unwrap_or(HTTP)
}

fn number(port: &str) -> Result<u16, ApiError> {
    let number = port.parse().ok().filter(|port| *port > 0);
    number.ok_or_else(|| {
        let message = format!("invalid port {port:?}");
        ApiError::new(Reason::BadRequest, message)
    })
}

/// Returns the name that the port of a Service has in its EndpointSlices.
fn port_name(service: &Service, named: &Name) -> Result<String, ApiError> {
    let ports = &service.spec.ports;
    let wanted = named.port.as_str();
    match wanted.parse::<i32>() {
        Ok(number) => {
            let found = ports.iter().find(|port| port.port == number);
            let found = found.map(|port| port.name.clone());
            let name = &named.name;
            found.ok_or_else(|| {
                unavailable(format!(
                    "no service port {number} found for service {name:?}"
                ))
            })
        }
        Err(_) => Ok(wanted.to_owned()),
    }
}

/// Returns the Pods that are ready, each with the number of the port.
fn candidates<'s>(slices: &'s [EndpointSlice], port: &str) -> Vec<(&'s str, u16)> {
    let is_ready = |endpoint: &&Endpoint| {
        let conditions = &endpoint.conditions;
        conditions.ready.unwrap_or(true)
    };
    let mut found = Vec::new();
    for slice in slices {
        let mut ports = slice.ports.iter();
        let number = ports.find(|one| one.name.as_deref().unwrap_or_default() == port);
        let number = number.and_then(|one| u16::try_from(one.port?).ok());
        let Some(number) = number else { continue };
        let pods = slice.endpoints.iter().filter(is_ready);
        let pods = pods.filter_map(|endpoint| endpoint.target_ref.as_ref());
        let pods = pods.filter(|target| target.kind == "Pod");
        found.extend(pods.map(|target| (target.name.as_str(), number)));
    }
    found
}

pub(super) fn unreachable(error: &str) -> ApiError {
    unavailable(format!("error trying to reach service: {error}"))
}

fn unavailable(message: String) -> ApiError {
    ApiError::new(Reason::ServiceUnavailable, message)
}

struct Reader(ReadHalf<DuplexStream>);

impl Source for Reader {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        let mut buffer = BytesMut::with_capacity(CHUNK);
        let read = self.0.read_buf(&mut buffer).await;
        let read = read.map_err(|error| error.to_string())?;
        Ok((read > 0).then(|| buffer.freeze()))
    }
}

struct Writer(WriteHalf<DuplexStream>);

impl Sink for Writer {
    async fn send(&mut self, data: Bytes) -> Result<(), String> {
        let written = self.0.write_all(&data).await;
        written.map_err(|error| error.to_string())
    }

    async fn end(&mut self) {
        // The other end may be closed.
        let _ = self.0.shutdown().await;
    }
}
