//! The process of the agent that joins.

use std::fs;

use anyhow::bail;
use serde_json::Value;
use setpoint_tls::Credentials;

use super::gateway::Gateway;
use super::node;
use crate::converge::start;
use crate::down::stop;
use crate::launcher::{Joined, ProcessSpec, RunningProcess, StateDir, program, topology};

/// The agent of a node in a state directory.
pub struct Agent<'a> {
    state_dir: &'a StateDir,
    joined: &'a Joined,
    process: ProcessSpec,
}

impl<'a> Agent<'a> {
    /// Returns the agent, which does not run.
    ///
    /// # Errors
    /// An agent of the node runs in this state directory, or has left containers there.
    pub fn new(state_dir: &'a StateDir, joined: &'a Joined) -> anyhow::Result<Self> {
        let process = topology::joined_agent(state_dir, joined);
        program(process.service)?;
        let (node, state) = (&joined.node, state_dir.shown(state_dir.state()));
        if let Some(running) = RunningProcess::find(state_dir, &process.name) {
            bail!(
                "an agent of the node {node} runs already in {state}, with the process id {}",
                running.pid
            );
        }
        let is_known = Joined::read(state_dir, node).is_some();
        if !is_known && state_dir.node(node).exists() {
            bail!("{state} has another agent of the node {node}: choose another --state or node");
        }
        Ok(Self {
            state_dir,
            joined,
            process,
        })
    }

    /// Returns whether the agent has joined by this token before, and has a certificate that has not expired.
    pub fn has_joined(&self) -> bool {
        let before = Joined::read(self.state_dir, &self.joined.node);
        let same = before.is_some_and(|before| before.token == self.joined.token);
        same && self.credentials().is_some()
    }

    fn credentials(&self) -> Option<Credentials> {
        self.joined.credentials(self.state_dir)
    }

    /// Starts the process, and waits until the node is Ready. An agent that gets no certificate is stopped, and leaves
    /// nothing behind but its log.
    ///
    /// # Errors
    /// Why it did not join.
    pub async fn start(&self, gateway: &Gateway) -> anyhow::Result<()> {
        let logged = self.log().len();
        let started = start(self.state_dir, std::slice::from_ref(&self.process)).await;
        let outcome = match started {
            Ok(()) => node::until_ready(gateway, self.joined, || self.credentials()).await,
            Err(error) => Err(error),
        };
        let Err(error) = outcome else {
            return Ok(());
        };
        let said = self.log().get(logged..).and_then(last_failure);
        if self.credentials().is_none() {
            stop(self.state_dir, std::slice::from_ref(&self.process.name)).await;
            self.joined.remove(self.state_dir)?;
        }
        Err(match said {
            Some(said) => error.context(said),
            None => error,
        })
    }

    fn log(&self) -> String {
        let log = fs::read(self.state_dir.log(&self.process.name)).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }
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
