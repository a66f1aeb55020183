//! `setpoint token create`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use setpoint_controller::Client;
use setpoint_model::Key;
use setpoint_model::names::validate_dns_subdomain;
use setpoint_proto::core::{ConfigMap, Node};
use setpoint_proto::{ApiError, Reason};
use setpoint_tls::{Pin, Pinned};

use super::Joining;
use super::secret::{Purpose, Token};
use crate::connection::Connection;

/// The longest life of a token: what is not joined by then gets another one.
const MAX_TTL: Duration = Duration::from_secs(15 * 60);
const MIN_TTL: Duration = Duration::from_secs(1);

/// Options of `setpoint token create`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The process that the token brings in; so far an agent
    #[arg(long = "for", value_enum)]
    joining: Joining,
    /// Name of the one node that the agent may be the agent of
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Time for which the token is valid, such as 90s; 15m at most
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = parse_ttl)]
    ttl: Duration,
    /// A text for people, which `list` shows
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    /// Print nothing but the command that joins
    #[arg(long)]
    print_join_command: bool,
}

/// Makes a token, and prints it and the command that joins by it.
pub async fn create(connection: &Connection, options: &Options) -> anyhow::Result<ExitCode> {
    options.joining.check()?;
    let node = options.node.as_deref();
    let node = node.context("`--for agent` needs the name of its node: --node NAME")?;
    check_node_name(node)?;
    let server = connection.addresses()?;
    let server = server.split(',').next().unwrap_or_default();
    let pins = pins(connection)?;
    let gateway = connection.gateway()?;
    check_node_is_free(&gateway, node).await?;
    let token = Token::random()?;
    let expiry = Timestamp::now() + SignedDuration::try_from(options.ttl)?;
    let secret = token.to_secret(&Purpose {
        node,
        description: &options.description,
        expiry,
    });
    let created = gateway.create(&secret).await;
    created.context("the token cannot be made")?;
    warn_without_cluster_info(&gateway).await;
    let command = join_command(server, node, &token, &pins);
    match options.print_join_command {
        true => println!("{command}"),
        false => print!("{}", instructions(&token, node, options.ttl, &command)),
    }
    Ok(ExitCode::SUCCESS)
}

fn check_node_name(node: &str) -> anyhow::Result<()> {
    match validate_dns_subdomain(node).first() {
        Some(problem) => bail!("{node:?} cannot be the name of a node: {problem}"),
        None => Ok(()),
    }
}

/// Returns the hashes of the CAs by which this command knows the gateways.
fn pins(connection: &Connection) -> anyhow::Result<Vec<Pin>> {
    let credentials = connection.credentials()?;
    let credentials =
        credentials.context("agents join over TLS only, which this cluster does not speak")?;
    Ok(Pinned::parse(&credentials.authorities())?.pins())
}

/// Fails if an agent of this node runs: a second one would take its place.
async fn check_node_is_free(gateway: &Client, node: &str) -> anyhow::Result<()> {
    let found = gateway.get::<Node>(&Key::new("", node)).await;
    match found {
        Ok(found) if is_ready(&found) => bail!(
            "the node {node} is there already, and is Ready: stop its agent first, or choose another name"
        ),
        Ok(_) => {
            eprintln!(
                "The node {node} exists, and is not Ready. The agent that joins takes its place."
            );
            Ok(())
        }
        Err(error) if error.reason == Reason::NotFound => Ok(()),
        Err(error) => Err(unreadable("the node", error)),
    }
}

fn unreadable(what: &str, error: ApiError) -> anyhow::Error {
    anyhow!(error).context(format!("{what} cannot be read"))
}

/// Returns whether the agent of a node reports that it is ready.
fn is_ready(node: &Node) -> bool {
    let mut conditions = node.status.conditions.iter();
    conditions.any(|condition| condition.r#type == "Ready" && condition.status == "True")
}

/// Says so if machines cannot find the cluster by the token.
async fn warn_without_cluster_info(gateway: &Client) {
    let found = gateway
        .get::<ConfigMap>(&Key::new("kube-public", "cluster-info"))
        .await;
    if found.is_err_and(|error| error.reason == Reason::NotFound) {
        eprintln!(
            "There is no kube-public/cluster-info, by which machines find the cluster: the gateways publish it with the \
             setting cluster_info.server"
        );
    }
}

/// Returns the command that joins by a token.
fn join_command(server: &str, node: &str, token: &Token, pins: &[Pin]) -> String {
    let hashes = pins.iter().map(|pin| format!(" --ca-cert-hash {pin}"));
    let hashes: String = hashes.collect();
    format!(
        "setpoint join agent {server} --node {node} --token {}{hashes}",
        token.text()
    )
}

fn instructions(token: &Token, node: &str, ttl: Duration, command: &str) -> String {
    let ttl = SignedDuration::try_from(ttl).unwrap_or_default();
    format!(
        "{}\n\n\
         It brings in the agent of the node {node}, once, within {ttl:#}:\n\n  {command}\n",
        token.text()
    )
}

fn parse_ttl(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text
        .parse()
        .map_err(|error: jiff::Error| error.to_string())?;
    let ttl = Duration::try_from(parsed).map_err(|_| "it is negative".to_owned())?;
    match (MIN_TTL..=MAX_TTL).contains(&ttl) {
        true => Ok(ttl),
        false => Err("a token is valid for 1s to 15m".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_lives_for_fifteen_minutes_at_most() {
        for (text, seconds) in [("15m", 900), ("90s", 90), ("1s", 1), ("1m30s", 90)] {
            assert_eq!(parse_ttl(text), Ok(Duration::from_secs(seconds)));
        }
        for text in ["0s", "15m1s", "24h", "-1s", "soon", ""] {
            assert!(parse_ttl(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_name_of_a_node_is_one_of_kubernetes() {
        assert!(check_node_name("worker-1.example").is_ok());
        for name in ["", "Worker", "a/b", "a b", "../a"] {
            assert!(check_node_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn the_command_has_the_hash_of_each_ca() {
        let token = "abcdef.0123456789abcdef".parse().unwrap();
        let pins = ["00", "11"].map(|byte| format!("sha256:{}", byte.repeat(32)));
        let pins = pins.map(|pin| pin.parse().unwrap());
        let command = join_command("https://10.0.0.1:6443", "worker-1", &token, &pins);
        let expected = "setpoint join agent https://10.0.0.1:6443 --node worker-1 --token abcdef.0123456789abcdef \
            --ca-cert-hash sha256:0000000000000000000000000000000000000000000000000000000000000000 \
            --ca-cert-hash sha256:1111111111111111111111111111111111111111111111111111111111111111";
        assert_eq!(command, expected);
        let text = instructions(&token, "worker-1", Duration::from_secs(900), &command);
        assert!(
            text.contains("the node worker-1, once, within 15m:\n"),
            "{text}"
        );
    }
}
