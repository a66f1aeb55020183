//! `setpoint join`: brings the agent of a node into a cluster, by a token for one use.
//!
//! ```text
//! discovery   kube-public/cluster-info, whose signature by the token and whose CA, by its hash, are verified
//! review      whether the cluster knows the token, and for what it was made
//! agent       starts with the CA and the token, and asks for the certificate of its node
//! node        is Ready, as the node itself reads
//! ```

mod agent;
mod discovery;
mod gateway;
mod node;
mod review;
mod signature;

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use setpoint_model::names::validate_dns_subdomain;
use setpoint_tls::Pin;

use crate::launcher::{Joined, Runtime, StateDir};
use crate::token::{Joining, Token};
use agent::Agent;
use gateway::Gateway;

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
    /// Not yet
    Gateway(Ignored),
    /// Not yet
    Controller(Ignored),
    /// Not yet
    Etcd(Ignored),
}

/// Arguments of a process that cannot join yet.
#[derive(Args, Clone, Debug)]
struct Ignored {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<String>,
}

/// The options of `setpoint join agent`.
#[derive(Args, Clone, Debug)]
struct AgentOptions {
    /// URL of a gateway, such as https://10.0.0.1:6443
    #[arg(value_name = "SERVER", value_parser = Gateway::parse)]
    server: Gateway,
    /// Name of the node, as `setpoint token create` was told
    #[arg(long, value_name = "NAME", value_parser = parse_node)]
    node: String,
    /// The token, for one use
    #[arg(long, value_name = "ID.SECRET")]
    token: Token,
    /// Hash of the public key of the CA of the cluster, `sha256:` and 64 hexadecimal digits; may be repeated
    #[arg(long = "ca-cert-hash", value_name = "HASH", required = true)]
    pins: Vec<Pin>,
    /// Runtime of the node's containers
    #[arg(long, value_enum, default_value_t)]
    runtime: Runtime,
    /// Socket of the runtime, with `--runtime cri` [default: unix:///run/containerd/containerd.sock]
    #[arg(long, value_name = "ENDPOINT")]
    cri_endpoint: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// Why the process could not join.
pub async fn join(state_dir: &StateDir, options: &Options) -> anyhow::Result<ExitCode> {
    let joining = match &options.command {
        Command::Agent(options) => return join_agent(state_dir, options).await,
        Command::Gateway(_) => Joining::Gateway,
        Command::Controller(_) => Joining::Controller,
        Command::Etcd(_) => Joining::Etcd,
    };
    joining.check()?;
    Ok(ExitCode::FAILURE)
}

async fn join_agent(state_dir: &StateDir, options: &AgentOptions) -> anyhow::Result<ExitCode> {
    if options.cri_endpoint.is_some() && options.runtime != Runtime::Cri {
        bail!("--cri-endpoint needs --runtime cri");
    }
    let _lock = state_dir.lock()?;
    let joined = Joined {
        node: options.node.clone(),
        server: options.server.url(),
        runtime: options.runtime,
        cri_endpoint: options.cri_endpoint.clone(),
        token: options.token.id().to_owned(),
    };
    let agent = Agent::new(state_dir, &joined)?;
    if agent.has_joined() {
        println!(
            "{} has joined by this token before; starting its agent again",
            joined.node
        );
    } else {
        let cluster = discovery::discover(&options.server, &options.token, &options.pins).await?;
        println!(
            "The cluster of {} is the one that the token is from",
            options.server
        );
        review::check(&options.server, &cluster, &options.token).await?;
        joined.write(state_dir, &cluster.pem(), &options.token.text())?;
    }
    agent.start(&options.server).await?;
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
        assert_eq!(options.server.url(), "https://a:1");
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

    #[tokio::test]
    async fn whatever_else_is_to_join_is_refused_in_clear_words() {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        for line in [
            "join gateway",
            "join etcd https://a:1 --token x",
            "join controller --for y",
        ] {
            let refused = join(&state_dir, &parse(line).unwrap()).await.unwrap_err();
            assert!(
                refused.to_string().starts_with("only agents join so far"),
                "{refused}"
            );
        }
        assert!(!state_dir.state().exists());
    }
}
