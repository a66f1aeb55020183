//! `setpoint token create`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use setpoint_controller::Client;
use setpoint_model::Key;
use setpoint_model::names::validate_dns_subdomain;
use setpoint_model::users::CONTROL_PLANE;
use setpoint_proto::core::{ConfigMap, Node};
use setpoint_proto::{ApiError, Reason};
use setpoint_tls::{Pin, Pinned};

use super::handover;
use super::secret::{Purpose, Token};
use super::{CertificateKey, Handover};
use crate::advice::advised;
use crate::connection::{Connection, ensure};
use crate::control_plane;
use crate::launcher::{ClusterSpec, Component, Joining};

/// The longest life of a token: what is not joined by then gets another one.
const MAX_TTL: Duration = Duration::from_secs(15 * 60);
const MIN_TTL: Duration = Duration::from_secs(1);

/// Options of `setpoint token create`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Kind of the process that the token brings in. All but agents take the keys of the CAs with them, which the state
    /// directory of a machine with a part of the control plane has
    #[arg(long = "for", value_enum, value_name = "KIND")]
    joining: Joining,
    /// Name of the one node that the agent may be the agent of, with `--for agent`
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// The node is on a machine with a gateway, whose address it has, too: it gets the label
    /// node-role.kubernetes.io/control-plane
    #[arg(long)]
    control_plane: bool,
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
    let made = match options.joining {
        Joining::Agent => create_for_agent(connection, options).await?,
        _ => create_for_component(connection, options).await?,
    };
    warn_without_cluster_info(&connection.gateway()?).await;
    let command = made.command(&pins(connection)?);
    match options.print_join_command {
        true => println!("{command}"),
        false => print!("{}", made.instructions(options.ttl, &command)),
    }
    Ok(ExitCode::SUCCESS)
}

/// A token that was made.
struct Made {
    joining: Joining,
    token: Token,
    /// The URLs of the gateways, comma-separated.
    servers: String,
    /// The node, for an agent.
    node: Option<String>,
    /// The key of what it hands over, for all others.
    key: Option<CertificateKey>,
}

async fn create_for_agent(connection: &Connection, options: &Options) -> anyhow::Result<Made> {
    let node = options.node.as_deref();
    let node = node.context("`--for agent` needs the name of its node: --node NAME")?;
    check_node_name(node)?;
    let gateway = connection.gateway()?;
    check_node_is_free(&gateway, node).await?;
    if options.control_plane {
        label(&gateway, node).await?;
    }
    let token = Token::random()?;
    let secret = token.to_secret(&purpose(options)?);
    let created = gateway.create(&secret).await;
    created.context("the token cannot be made")?;
    Ok(Made {
        joining: options.joining,
        token,
        servers: servers(connection, &gateway).await?,
        node: Some(node.to_owned()),
        key: None,
    })
}

/// Makes a token that hands over what a part of the control plane needs.
async fn create_for_component(connection: &Connection, options: &Options) -> anyhow::Result<Made> {
    let (kind, state_dir) = (options.joining, &connection.state_dir);
    if options.control_plane {
        bail!("--control-plane is for the node of an agent");
    }
    if options.node.is_some() {
        bail!(
            "--node is the name of the node of an agent; {} has none",
            kind.noun()
        );
    }
    if connection.is_given() {
        return Err(advised(
            "the token takes the keys of the CAs with it, which the state directory of the cluster has",
            "setpoint token create without --gateway and --kubeconfig, on a machine of the control plane",
        ));
    }
    let plane = control_plane::current(connection).await?;
    let servers = plane.gateways.join(",");
    let (token, key) = (Token::random()?, CertificateKey::random()?);
    let keys = state_dir.pki().keys()?;
    let sealed = Handover { keys, plane }.seal(&key, &token, kind)?;
    let secret = token.to_secret(&purpose(options)?);
    handover::create(&connection.gateway()?, &token, &secret, &sealed).await?;
    Ok(Made {
        joining: kind,
        token,
        servers,
        node: None,
        key: Some(key),
    })
}

/// Gives a Node the label of the control plane. Creates the Node if it is not there.
async fn label(gateway: &Client, name: &str) -> anyhow::Result<()> {
    let labels = json!({ CONTROL_PLANE: "" });
    let node = json!({ "metadata": { "name": name, "labels": labels } });
    let labelled = ensure::<Node>(gateway, node).await;
    labelled.with_context(|| format!("the node {name} cannot be labelled"))
}

fn purpose(options: &Options) -> anyhow::Result<Purpose<'_>> {
    Ok(Purpose {
        joining: options.joining,
        node: options.node.as_deref(),
        description: &options.description,
        expiry: Timestamp::now() + SignedDuration::try_from(options.ttl)?,
    })
}

/// Returns the URLs by which a machine joins: those of all gateways that others reach, or else those that this command
/// uses.
async fn servers(connection: &Connection, gateway: &Client) -> anyhow::Result<String> {
    let state_dir = &connection.state_dir;
    let spec = ClusterSpec::load(state_dir)?;
    let has_machines = spec.is_some_and(|spec| spec.network.machine().is_some())
        || !Component::all(state_dir)?.is_empty();
    if has_machines && !connection.is_given() {
        let reached = control_plane::gateways(gateway).await?;
        if !reached.is_empty() {
            return Ok(reached.join(","));
        }
    }
    connection.addresses()
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
        credentials.context("machines join over TLS only, which this cluster does not speak")?;
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

impl Made {
    /// Returns the command that joins by the token.
    fn command(&self, pins: &[Pin]) -> String {
        let (kind, servers, token) = (self.joining.name(), &self.servers, self.token.text());
        let node = self.node.iter().map(|node| format!(" --node {node}"));
        let hashes = pins.iter().map(|pin| format!(" --ca-cert-hash {pin}"));
        let key = self.key.iter();
        let key = key.map(|key| format!(" --certificate-key {}", key.text()));
        let (node, rest): (String, String) = (node.collect(), hashes.chain(key).collect());
        format!("setpoint join {kind} {servers}{node} --token {token}{rest}")
    }

    fn instructions(&self, ttl: Duration, command: &str) -> String {
        let ttl = SignedDuration::try_from(ttl).unwrap_or_default();
        let what = match &self.node {
            Some(node) => format!("the agent of the node {node}"),
            None => self.joining.noun().to_owned(),
        };
        let secrecy = match self.key {
            Some(_) => {
                "\nThe command has the key of the CAs: who has it before it was used can join, too.\n"
            }
            None => "",
        };
        format!(
            "{}\n\n\
             It brings in {what}, once, within {ttl:#}:\n\n  {command}\n{secrecy}",
            self.token.text()
        )
    }
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
        let pins = ["00", "11"].map(|byte| format!("sha256:{}", byte.repeat(32)));
        let pins = pins.map(|pin| pin.parse().unwrap());
        let agent = Made {
            joining: Joining::Agent,
            token: "abcdef.0123456789abcdef".parse().unwrap(),
            servers: "https://10.0.0.1:6443".to_owned(),
            node: Some("worker-1".to_owned()),
            key: None,
        };
        let command = agent.command(&pins);
        let expected = "setpoint join agent https://10.0.0.1:6443 --node worker-1 --token abcdef.0123456789abcdef \
            --ca-cert-hash sha256:0000000000000000000000000000000000000000000000000000000000000000 \
            --ca-cert-hash sha256:1111111111111111111111111111111111111111111111111111111111111111";
        assert_eq!(command, expected);
        let text = agent.instructions(Duration::from_secs(900), &command);
        assert!(
            text.contains("the node worker-1, once, within 15m:\n"),
            "{text}"
        );
        let gateway = Made {
            joining: Joining::Gateway,
            node: None,
            key: Some("ab".repeat(32).parse().unwrap()),
            servers: "https://10.0.0.1:6443,https://10.0.0.2:6443".to_owned(),
            ..agent
        };
        let command = gateway.command(&pins[..1]);
        let start =
            "setpoint join gateway https://10.0.0.1:6443,https://10.0.0.2:6443 --token abcdef.";
        assert!(command.starts_with(start), "{command}");
        assert!(command.ends_with(&format!(" --certificate-key {}", "ab".repeat(32))));
    }
}
