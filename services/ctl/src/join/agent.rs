//! The processes of a node that joins.

use std::fs;

use anyhow::bail;
use serde_json::Value;

use super::gateway::Gateway;
use super::node;
use crate::converge;
use crate::down::stop;
use crate::launcher::{
    Joined, ProcessSpec, RunningProcess, StateDir, node_dns, program, proxy, topology,
};

/// Returns what has joined by the token of `joined` before, and has a certificate that has not expired.
///
/// # Errors
/// An agent of the node runs in this state directory, or has left containers there.
pub fn joined_before(state_dir: &StateDir, joined: &Joined) -> anyhow::Result<Option<Joined>> {
    let process = topology::joined_agent(state_dir, joined);
    program(process.service)?;
    let (node, state) = (&joined.node, state_dir.shown(state_dir.state()));
    if let Some(running) = RunningProcess::find(state_dir, &process.name) {
        bail!(
            "an agent of the node {node} runs already in {state}, with the process id {}",
            running.pid
        );
    }
    let before = Joined::read(state_dir, node);
    if before.is_none() && state_dir.node(node).exists() {
        bail!("{state} has another agent of the node {node}: choose another --state or node");
    }
    let same = before.filter(|before| before.token == joined.token);
    Ok(same.filter(|before| before.credentials(state_dir).is_some()))
}

/// Starts the agent of a node, waits until the node is Ready, and starts its proxy if it has one. An agent that gets no
/// certificate is stopped, and leaves nothing behind but its log.
///
/// # Errors
/// The reason for which it did not join.
pub async fn start(
    state_dir: &StateDir,
    joined: &Joined,
    gateways: &[Gateway],
) -> anyhow::Result<()> {
    let processes = topology::joined(state_dir, joined);
    let Some((agent, others)) = processes.split_first() else {
        return Ok(());
    };
    start_agent(state_dir, joined, agent, gateways).await?;
    start_node(state_dir, others).await
}

/// Starts processes of a node, and makes first what a proxy and the DNS of a node need.
///
/// # Errors
/// If one does not get ready.
pub async fn start_node(state_dir: &StateDir, processes: &[ProcessSpec]) -> anyhow::Result<()> {
    let has = |service| processes.iter().any(|process| process.service == service);
    if has(proxy::PROXY) {
        proxy::remember(state_dir)?;
    }
    if has(node_dns::DNS) {
        node_dns::add_address()?;
    }
    converge::start(state_dir, processes).await
}

async fn start_agent(
    state_dir: &StateDir,
    joined: &Joined,
    agent: &ProcessSpec,
    gateways: &[Gateway],
) -> anyhow::Result<()> {
    let logged = log(state_dir, agent).len();
    let credentials = || joined.credentials(state_dir);
    let outcome = match converge::start(state_dir, std::slice::from_ref(agent)).await {
        Ok(()) => node::until_ready(gateways, joined, credentials).await,
        Err(error) => Err(error),
    };
    let Err(error) = outcome else {
        return Ok(());
    };
    let said = log(state_dir, agent);
    let said = said.get(logged..).and_then(last_failure);
    if credentials().is_none() {
        stop(state_dir, std::slice::from_ref(&agent.name)).await;
        joined.remove(state_dir)?;
    }
    Err(match said {
        Some(said) => error.context(said),
        None => error,
    })
}

fn log(state_dir: &StateDir, process: &ProcessSpec) -> String {
    let log = fs::read(state_dir.log(&process.name)).unwrap_or_default();
    String::from_utf8_lossy(&log).into_owned()
}

/// Returns the last failure that a log tells, without time and level: of the process, or of its settings.
fn last_failure(log: &str) -> Option<String> {
    log.lines().rev().find_map(|line| {
        let of_settings = line.strip_prefix("node-agent: ").map(str::to_owned);
        of_settings.or_else(|| failure(line))
    })
}

/// Returns the failure in a line of the log, which is in JSON where the standard error is no terminal.
fn failure(line: &str) -> Option<String> {
    let record: Value = serde_json::from_str(line).ok()?;
    let said = record["error"].as_str().filter(|said| !said.is_empty());
    (record["level"] == "ERROR").then(|| said.map(str::to_owned))?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_failure_of_a_log_is_what_the_agent_has_ended_with() {
        let line = |level: &str, error: &str| {
            json!({ "level": level, "message": "failed", "error": error }).to_string() + "\n"
        };
        let denied = line("ERROR", "the request was denied: \"no\"");
        let log = [line("ERROR", "a"), denied, line("INFO", "b"), "{".into()].concat();
        assert_eq!(
            last_failure(&log).as_deref(),
            Some("the request was denied: \"no\"")
        );
        let log = "node-agent: unknown flag\n\n";
        assert_eq!(last_failure(log).as_deref(), Some("unknown flag"));
        assert_eq!(last_failure(&line("INFO", "b")), None);
        assert_eq!(last_failure(""), None);
    }
}
