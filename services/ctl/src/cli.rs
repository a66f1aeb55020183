//! What can be typed after `setpoint`.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::folder::Folder;
use crate::{down, status, up};

/// Brings a Setpoint cluster up and down on this machine.
#[derive(Debug, Parser)]
#[command(name = "setpoint", version)]
pub struct Cli {
    /// Folder of all state: data, logs, process ids, kubeconfig [default: .setpoint in the repository]
    #[arg(long, global = true, value_name = "DIR")]
    state: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the cluster, or what is missing of it, and wait until all of it is ready
    Up(Up),
    /// Stop the cluster in order; its objects stay for the next `up`
    Down,
    /// Say what runs and what is ready; exits with 1 if something is not
    Status,
}

/// How to bring the cluster up.
#[derive(Args, Clone, Debug)]
pub struct Up {
    /// Start empty: stop what runs and delete all objects first
    #[arg(long)]
    pub fresh: bool,
    /// Port of the API, on loopback
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    pub port: u16,
    /// Client port of etcd, on loopback
    #[arg(long, value_name = "PORT", default_value_t = 2379)]
    pub etcd_port: u16,
    /// Peer port of etcd, on loopback
    #[arg(long, value_name = "PORT", default_value_t = 2380)]
    pub etcd_peer_port: u16,
    /// How soon a standby takes over from a leader that crashed
    #[arg(long, value_enum, default_value_t = Profile::Standard)]
    pub profile: Profile,
}

/// How soon a standby takes over from a leader that crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Within 15 seconds, as Kubernetes does
    Standard,
    /// Within 3 seconds, for more renewals
    Fast,
}

impl Cli {
    /// Does what was asked.
    ///
    /// # Errors
    /// What went wrong, in one line.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let here = env::current_dir().context("the current folder")?;
        let folder = Folder::find(&here, self.state);
        match self.command {
            Command::Up(options) => up::up(&folder, &options).await,
            Command::Down => down::down(&folder).await,
            Command::Status => status::status(&folder).await,
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
