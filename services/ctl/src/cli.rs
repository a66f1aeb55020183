//! What can be typed after `setpoint`.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::folder::Folder;
use crate::reach::Reach;
use crate::{chaos, down, history, leaders, relay, status, trace, up, why};

/// Brings a Setpoint cluster up and down on this machine, and shows what kubectl does not.
#[derive(Debug, Parser)]
#[command(name = "setpoint", version)]
pub struct Cli {
    /// Folder of all state: data, logs, process ids, kubeconfig [default: .setpoint in the repository]
    #[arg(long, global = true, value_name = "DIR")]
    state: Option<PathBuf>,
    /// The gateway's address, for a cluster that `setpoint up` did not start, such as http://127.0.0.1:6443
    #[arg(long, global = true, value_name = "URL")]
    gateway: Option<String>,
    #[command(subcommand)]
    command: Command,
}

/// Each has a file of its own, with its options and what it does.
#[derive(Debug, Subcommand)]
enum Command {
    /// Start the cluster, or what is missing of it, and wait until all of it is ready
    Up(up::Options),
    /// Stop the cluster in order; its objects stay for the next `up`
    Down,
    /// Say what runs and what is ready; exits with 1 if something is not
    Status,
    /// Show who leads each service, who stands by, and how fresh their leases are
    Leaders(leaders::Options),
    /// Show the last cascade of an object as a waterfall: who did what when, and why
    Trace(trace::Options),
    /// Break replicas of a service under load, again and again, and say what that has cost
    Chaos(chaos::Options),
    /// Say why an object is as it is: who wrote it, what each controller did about it, and what it waits for
    Why(why::Options),
    /// Show an object's writes as far back as the store remembers: when, who, which fields
    History(history::Options),
    /// Pass connections on; `setpoint up --relays` starts these
    #[command(hide = true)]
    Relay(relay::Options),
}

impl Cli {
    /// Does what was asked.
    ///
    /// # Errors
    /// What went wrong, in one line.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let here = env::current_dir().context("the current folder")?;
        let reach = Reach::new(Folder::find(&here, self.state), self.gateway);
        match self.command {
            Command::Up(options) => up::up(&reach.folder, &options).await,
            Command::Down => down::down(&reach.folder).await,
            Command::Status => status::status(&reach.folder).await,
            Command::Leaders(options) => leaders::leaders(&reach, &options).await,
            Command::Trace(options) => trace::trace(&reach, &options).await,
            Command::Chaos(options) => chaos::chaos(&reach, &options).await,
            Command::Why(options) => why::why(&reach, &options).await,
            Command::History(options) => history::history(&reach, &options).await,
            Command::Relay(options) => relay::relay(&options).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_flag_and_every_command_has_help() {
        let command = Cli::command();
        command.clone().debug_assert();
        for command in command.get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            let silent = command.get_arguments().find(|arg| arg.get_help().is_none());
            assert!(silent.is_none(), "{silent:?}");
        }
    }
}
