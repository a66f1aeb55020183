//! Handlers that run commands.

use std::time::Duration;

use futures::StreamExt as _;
use setpoint_runtime::{Error, Output, Runtime, Streams};
use tokio::time::timeout;

use super::{MAX_OUTPUT, Outcome, Target};
use crate::pod::duration;
use crate::pod::expand::expand;

/// A command that has ended.
struct Ended {
    code: i32,
    output: String,
}

impl Ended {
    /// Returns whether the command itself was never run. Engines report that by its output and exit code.
    fn was_not_run(&self) -> bool {
        let message = self.output.trim_start();
        let mut reports = ["OCI runtime exec failed", "exec: \""].into_iter();
        [126, 127].contains(&self.code) && reports.any(|report| message.starts_with(report))
    }
}

impl<R: Runtime> Target<R> {
    /// Runs the command of a probe.
    pub(super) async fn probe_command(
        &self,
        command: &[String],
        limit: Duration,
    ) -> Result<Outcome, String> {
        let command = self.expand(command);
        match timeout(limit, self.command(&command)).await {
            Err(_) => Ok(Outcome::Failure(format!(
                "command timed out: {:?} timed out after {}",
                command.join(" "),
                duration::print(limit)
            ))),
            Ok(Err(error)) => Err(error.to_string()),
            Ok(Ok(ended)) if ended.was_not_run() => Err(ended.output),
            Ok(Ok(Ended { code: 0, .. })) => Ok(Outcome::Success),
            Ok(Ok(ended)) => Ok(Outcome::Failure(ended.output)),
        }
    }

    /// Runs the command of a hook.
    pub(super) async fn run_command(&self, command: &[String]) -> Result<(), String> {
        match self.command(command).await {
            Ok(Ended { code: 0, .. }) => Ok(()),
            Ok(Ended { code, output }) => Err(format!(
                "command '{}' exited with {code}: {output}",
                command.join(" ")
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Runs a command to its end; returns the start of its output, both streams in the order of reading.
    async fn command(&self, command: &[String]) -> Result<Ended, Error> {
        let streams = Streams {
            stdout: true,
            stderr: true,
            ..Streams::default()
        };
        let nothing = futures::stream::empty().boxed();
        let mut outputs = self
            .runtime
            .exec(&self.id, command, streams, nothing)
            .await?;
        let mut output = Vec::new();
        while let Some(item) = outputs.next().await {
            match item? {
                Output::Stdout(bytes) | Output::Stderr(bytes) => {
                    let room = MAX_OUTPUT.saturating_sub(output.len()).min(bytes.len());
                    output.extend_from_slice(&bytes[..room]);
                }
                Output::Exit(code) => {
                    let output = String::from_utf8_lossy(&output).into_owned();
                    return Ok(Ended { code, output });
                }
            }
        }
        Err(Error::NotRunning(self.id.name.clone()))
    }

    /// Expands the variables of a probe's command that the container's spec defines by a value.
    fn expand(&self, command: &[String]) -> Vec<String> {
        let env = self.container.env.iter();
        let fixed = env.filter(|variable| variable.value_from.is_none());
        let values = fixed
            .map(|variable| (variable.name.clone(), variable.value.clone()))
            .collect();
        command.iter().map(|word| expand(word, &values)).collect()
    }
}
