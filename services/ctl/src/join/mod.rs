//! `setpoint join`: brings the agent of a node, or a part of the control plane, into a cluster, by a token for one use.
//!
//! ```text
//! preflight   what a node needs is on the machine
//! discovery   the clock, and kube-public/cluster-info: its signature by the token, and the hash of its CA
//! review      whether the cluster knows the token, and for what it was made
//! network     of a cluster of several machines, as it has published it
//! agent       starts with the CA and the token, and asks for the certificate of its node
//! node        is Ready, as the node itself reads; the proxy of a machine starts
//! ```
//! Parts of the control plane go on otherwise after the review (`component`).

mod agent;
mod claim;
mod clock;
mod component;
mod discovery;
mod gateway;
mod member;
mod network;
mod node;
mod preflight;
mod review;
mod signature;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use setpoint_model::names::validate_dns_subdomain;
use setpoint_tls::{Pin, Pinned};

use crate::launcher::network::check_overlap;
use crate::launcher::{
    ClusterNetwork, Joined, Joining, NodeNetwork, PodNetwork, Runtime, StateDir, node_dns,
};
use crate::token::Token;
use gateway::Gateway;

pub use agent::start_node;
pub use component::start_all;

/// The options of `setpoint join`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Start the agent of a node on this machine, and wait until the node is Ready
    Agent(AgentOptions),
    /// Start a gateway on this machine, which others reach
    Gateway(component::Options),
    /// Start a replica of each controller, of the scheduler and of the cluster's DNS on this machine
    Controller(component::Options),
    /// Start a member of etcd on this machine
    Etcd(component::Options),
}

/// The cluster that a process joins, and the token by which it does.
#[derive(Args, Clone, Debug)]
struct Target {
    /// URL of a gateway, such as https://10.0.0.1:6443; comma-separated if there are several, of which one may be dead
    #[arg(value_name = "SERVER", value_delimiter = ',', num_args = 1, required = true, value_parser = Gateway::parse)]
    servers: Vec<Gateway>,
    /// The token, for one use
    #[arg(long, value_name = "ID.SECRET")]
    token: Token,
    /// Hash of the public key of the CA of the cluster, `sha256:` and 64 hexadecimal digits; may be repeated
    #[arg(long = "ca-cert-hash", value_name = "HASH", required = true)]
    pins: Vec<Pin>,
}

impl Target {
    /// Returns the URLs of all gateways, comma-separated.
    fn urls(&self) -> String {
        let urls: Vec<_> = self.servers.iter().map(Gateway::url).collect();
        urls.join(",")
    }

    /// Finds a gateway that answers, and the CAs of the cluster.
    async fn discover(&self) -> anyhow::Result<(Gateway, Pinned)> {
        let found = discovery::discover(&self.servers, &self.token, &self.pins).await?;
        println!(
            "The cluster of {} is the one that the token is from",
            found.0
        );
        Ok(found)
    }
}

/// The options of `setpoint join agent`.
#[derive(Args, Clone, Debug)]
struct AgentOptions {
    #[command(flatten)]
    target: Target,
    /// Name of the node, as `setpoint token create` was told
    #[arg(long, value_name = "NAME", value_parser = parse_node)]
    node: String,
    /// Runtime of the node's containers
    #[arg(long, value_enum, default_value_t)]
    runtime: Runtime,
    /// Socket of the runtime, with `--runtime cri` [default: unix:///run/containerd/containerd.sock]
    #[arg(long, value_name = "ENDPOINT")]
    cri_endpoint: Option<String>,
    /// Address of this machine in a cluster of several [default: that by which it reaches SERVER]
    #[arg(long, value_name = "IP")]
    address: Option<Ipv4Addr>,
    /// Network of the Pods of this machine in a cluster of several, with `--runtime cri` [default: routes]
    #[arg(long, value_enum, value_name = "MODE")]
    network: Option<PodNetwork>,
    /// Directory of the configuration of the CNI that the runtime reads, with `--network routes` [default:
    /// /etc/cni/net.d]
    #[arg(long, value_name = "DIRECTORY")]
    cni_conf_dir: Option<PathBuf>,
}

impl AgentOptions {
    /// Checks that options are only given with the runtime that they are of.
    fn check(&self) -> anyhow::Result<()> {
        let only = [
            ("--cri-endpoint", self.cri_endpoint.is_some()),
            ("--network", self.network.is_some()),
            ("--cni-conf-dir", self.cni_conf_dir.is_some()),
        ];
        match only.iter().find(|(_, given)| *given) {
            Some((option, _)) if self.runtime != Runtime::Cri => {
                bail!("{option} needs --runtime cri")
            }
            _ => Ok(()),
        }
    }

    /// Returns the network of the node in a cluster that has published its own.
    fn node_network(
        &self,
        cluster: ClusterNetwork,
        gateway: &Gateway,
    ) -> anyhow::Result<NodeNetwork> {
        let address = match self.address {
            Some(address) => address,
            None => network::local_address(gateway)?,
        };
        Ok(NodeNetwork {
            address,
            cluster,
            pods: match self.runtime {
                Runtime::Cri => self.network.unwrap_or_default(),
                // Their Pods have the network of the machine, or of an engine.
                Runtime::Process | Runtime::Docker | Runtime::Simulated => PodNetwork::Cni,
            },
            cni_conf_dir: self.cni_conf_dir.clone(),
        })
    }
}

/// Runs the command.
///
/// # Errors
/// Why the process could not join.
pub async fn join(state_dir: &StateDir, options: &Options) -> anyhow::Result<ExitCode> {
    let (kind, options) = match &options.command {
        Command::Agent(options) => return join_agent(state_dir, options).await,
        Command::Gateway(options) => (Joining::Gateway, options),
        Command::Controller(options) => (Joining::Controller, options),
        Command::Etcd(options) => (Joining::Etcd, options),
    };
    component::join(state_dir, kind, options).await?;
    println!("{} has joined", kind.noun());
    Ok(ExitCode::SUCCESS)
}

async fn join_agent(state_dir: &StateDir, options: &AgentOptions) -> anyhow::Result<ExitCode> {
    options.check()?;
    let _lock = state_dir.lock()?;
    let target = &options.target;
    let mut joined = Joined {
        node: options.node.clone(),
        server: target.urls(),
        runtime: options.runtime,
        cri_endpoint: options.cri_endpoint.clone(),
        network: None,
        token: target.token.id().to_owned(),
    };
    if let Some(before) = agent::joined_before(state_dir, &joined)? {
        println!(
            "{} has joined by this token before; starting its agent again",
            joined.node
        );
        joined = before;
    } else {
        if options.runtime == Runtime::Cri {
            preflight::check_runtime(options.cri_endpoint.as_deref())?;
        }
        let (gateway, cluster) = target.discover().await?;
        review::check(&gateway, &cluster, &target.token, Joining::Agent).await?;
        let network = network::read(&gateway, &cluster, &target.token).await?;
        if let Some(network) = &network {
            check_overlap(&network.ranges())?;
        }
        joined.network = network
            .map(|network| options.node_network(network, &gateway))
            .transpose()?;
        if let Some(network) = joined.machine() {
            preflight::check_network(network)?;
            node_dns::check_free()?;
        }
        joined.write(state_dir, &cluster.pem(), &target.token.text())?;
    }
    agent::start(state_dir, &joined, &target.servers).await?;
    println!("The node {} is Ready", joined.node);
    Ok(ExitCode::SUCCESS)
}

fn parse_node(name: &str) -> anyhow::Result<String> {
    match validate_dns_subdomain(name).first() {
        Some(problem) => bail!("{problem}"),
        None => Ok(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn parse(line: &str) -> Result<Options, clap::Error> {
        Line::try_parse_from(line.split(' ')).map(|line| line.options)
    }

    #[test]
    fn an_agent_needs_the_server_the_node_the_token_and_the_hash() {
        let hash = format!("sha256:{}", "0".repeat(64));
        let whole = format!(
            "join agent https://a:1 --node n --token abcdef.0123456789abcdef --ca-cert-hash {hash}"
        );
        let options = parse(&whole).unwrap();
        let Command::Agent(options) = options.command else {
            panic!("{options:?}");
        };
        assert_eq!(options.target.urls(), "https://a:1");
        assert_eq!(options.runtime, Runtime::Process);
        for part in [
            " https://a:1",
            " --node n",
            " --token abcdef.0123456789abcdef",
            &format!(" --ca-cert-hash {hash}"),
        ] {
            assert!(parse(&whole.replace(part, "")).is_err(), "{part}");
        }
        for (part, wrong) in [
            ("https://a:1", "http://a:1"),
            (" n ", " ../n "),
            ("sha256", "sha1"),
        ] {
            assert!(parse(&whole.replace(part, wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn others_need_the_key_too_and_several_gateways_are_one_argument() {
        let (hash, key) = (format!("sha256:{}", "0".repeat(64)), "ab".repeat(32));
        for kind in ["gateway", "controller", "etcd"] {
            let whole = format!(
                "join {kind} https://a:1,b:2 --token abcdef.0123456789abcdef --ca-cert-hash {hash} --certificate-key {key}"
            );
            let (Command::Gateway(options) | Command::Controller(options) | Command::Etcd(options)) =
                parse(&whole).unwrap().command
            else {
                panic!("{whole}");
            };
            assert_eq!(options.target.urls(), "https://a:1,https://b:2");
            assert!(parse(&whole.replace(&key, "ab")).is_err());
            assert!(parse(&whole.replace(&format!(" --certificate-key {key}"), "")).is_err());
            assert!(parse(&whole.replace("b:2", "http://b:2")).is_err());
            assert!(parse(&format!("{whole} --node n")).is_err());
        }
    }
}
