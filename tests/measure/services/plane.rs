//! A cluster with a proxy, and the Services that are measured.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use setpoint_controller::Client;
use setpoint_controller::client::Preconditions;
use setpoint_model::Key;
use setpoint_proto::core::Service;
use setpoint_proto::discovery::EndpointSlice;
use setpoint_tests::{Cluster, client, http};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::Ways;
use super::endpoints::until_answered;
use super::server::Server;
use crate::process::cpu;

/// The range of the addresses of Services, which is the default of gateways.
pub const SERVICE_RANGE: &str = "10.96.0.0/16";
const PROXY: &str = "proxy-0";
const TABLE: &str = "setpoint-bench";

/// The back ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Nftables,
    Userspace,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nftables => "nftables",
            Self::Userspace => "user space",
        })
    }
}

/// etcd, a gateway and a proxy.
pub struct Plane {
    /// The back end of the proxy.
    pub backend: Backend,
    writer: Writer,
    cluster: Cluster,
}

/// A client that writes Services and their slices.
#[derive(Clone)]
pub struct Writer(Client);

impl Plane {
    /// Starts all of them.
    pub async fn start(backend: Backend) -> anyhow::Result<Self> {
        let mut cluster = Cluster::bare();
        let name = match backend {
            Backend::Nftables => "nftables",
            Backend::Userspace => "userspace",
        };
        let flags = [
            "--backend",
            name,
            "--table",
            TABLE,
            "--service-ranges",
            SERVICE_RANGE,
        ];
        let flags = flags
            .into_iter()
            .chain(["--nodes", "here"])
            .map(str::to_owned);
        cluster.service("proxy", 0, &flags.collect::<Vec<_>>());
        Ok(Self {
            backend,
            writer: Writer(client(&cluster.gateway_url())),
            cluster,
        })
    }

    /// Returns the client that writes Services.
    pub fn writer(&self) -> Writer {
        self.writer.clone()
    }

    /// Creates the Service `web` of the servers, and waits until it answers. Returns the ways to both of them.
    pub async fn web(&self, server: &Server) -> anyhow::Result<(Ways, Ways)> {
        let ip = self
            .writer
            .service("web", &[("echo", 80), ("sink", 81)])
            .await?;
        let ports = [("echo", server.echo.port()), ("sink", server.sink.port())];
        self.writer
            .endpoints("web", &ports, &[server.echo.ip()])
            .await?;
        let way = |direct, port| Ways {
            direct,
            service: SocketAddr::new(ip.into(), port),
        };
        let (echo, sink) = (way(server.echo, 80), way(server.sink, 81));
        let at = echo.service;
        spawn_blocking(move || until_answered(at)).await??;
        Ok((echo, sink))
    }

    /// Returns the number of the process that forwards connections.
    pub fn proxy(&mut self) -> u32 {
        let parent = self.cluster.process(PROXY).pid();
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        let child = children.ok().and_then(|all| all.trim().parse().ok());
        child.unwrap_or(parent)
    }

    /// Kills the proxy, removes what it has programmed, and starts it again.
    pub fn restart_from_nothing(&mut self) {
        self.stop();
        self.cluster.process(PROXY).restart();
    }

    /// Kills the proxy, and removes what it has programmed: it would refuse what another back end answers.
    pub fn stop(&mut self) {
        self.cluster.process(PROXY).kill();
        if self.backend == Backend::Nftables {
            let table = ["delete", "table", "ip", TABLE];
            let status = std::process::Command::new("nft").args(table).status();
            assert!(
                status.is_ok_and(|status| status.success()),
                "the table is there"
            );
        }
    }

    /// Returns the sum and the count of a histogram of the proxy.
    pub fn histogram(&self, name: &str) -> anyhow::Result<(f64, f64)> {
        let log = self.cluster.log(PROXY);
        let started = log.rsplit_once(r#""address":""#);
        let address = started.and_then(|(_, rest)| rest.split('"').next());
        let at = self
            .cluster
            .process_at(address.context("the proxy listens")?);
        let text = String::from_utf8(http::get(&at, "/metrics")?.body.into())?;
        let value = |suffix: &str| {
            let name = format!("{name}_{suffix} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&name));
            line.and_then(|number| number.parse().ok())
                .unwrap_or_default()
        };
        Ok((value("sum"), value("count")))
    }

    /// Returns the CPU time of both ends and of the proxy's process so far.
    pub fn spent(&mut self) -> [Duration; 2] {
        [cpu(std::process::id()), cpu(self.proxy())]
    }

    /// Waits a little, so that what was measured before does not run on.
    pub async fn rest(&self) {
        sleep(Duration::from_millis(300)).await;
    }
}

impl Writer {
    /// Creates a Service with these ports, and returns its address.
    pub async fn service(&self, name: &str, ports: &[(&str, u16)]) -> anyhow::Result<Ipv4Addr> {
        let port = |(name, port): &(&str, u16)| json!({"name": name, "port": port});
        let ports: Vec<_> = ports.iter().map(port).collect();
        let service = json!({"metadata": metadata(name), "spec": {"ports": ports}});
        let service: Service = serde_json::from_value(service)?;
        let made = self.0.create(&service).await?.object()?;
        Ok(made.spec.cluster_ip.parse()?)
    }

    /// Creates the slice of a Service.
    pub async fn endpoints(
        &self,
        name: &str,
        ports: &[(&str, u16)],
        of: &[IpAddr],
    ) -> anyhow::Result<()> {
        let port =
            |(name, port): &(&str, u16)| json!({"name": name, "port": port, "protocol": "TCP"});
        let ports: Vec<_> = ports.iter().map(port).collect();
        let endpoint = |ip: &IpAddr| json!({"addresses": [ip], "nodeName": "here", "conditions": {"ready": true}});
        let endpoints: Vec<_> = of.iter().map(endpoint).collect();
        let mut metadata = metadata(name);
        metadata["labels"] = json!({"kubernetes.io/service-name": name});
        let slice = json!({
            "metadata": metadata, "addressType": "IPv4", "ports": ports, "endpoints": endpoints,
        });
        self.0
            .create(&serde_json::from_value::<EndpointSlice>(slice)?)
            .await?;
        Ok(())
    }

    /// Deletes the slice of a Service.
    pub async fn remove_endpoints(&self, name: &str) -> anyhow::Result<()> {
        let key = Key::new("default", name);
        let none = Preconditions::default();
        self.0.delete::<EndpointSlice>(&key, none, None).await?;
        Ok(())
    }
}

fn metadata(name: &str) -> Value {
    json!({"namespace": "default", "name": name})
}
