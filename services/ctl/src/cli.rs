//! The command line of `setpoint`.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::connection::Connection;
use crate::launcher::StateDir;
use crate::{
    backup, certs, chaos, down, encryption, history, join, kubeconfig, leaders, relay, restore,
    status, token, trace, up, why,
};

/// Starts and stops a Setpoint cluster on this machine, and shows what kubectl does not.
#[derive(Debug, Parser)]
#[command(name = "setpoint", version)]
pub struct Cli {
    /// Directory of all state: data, logs, process ids, kubeconfig [default: .setpoint in the repository]
    #[arg(long, global = true, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Kubeconfig of a cluster that `setpoint up` did not start, such as .setpoint/compose/kubeconfig
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Address of a gateway, if it is another one than that of the kubeconfig, such as https://127.0.0.1:6443
    #[arg(long, global = true, value_name = "URL")]
    gateway: Option<String>,
    #[command(subcommand)]
    command: Command,
}

/// The subcommands. The options and the code of each are in the module of the same name.
#[derive(Debug, Subcommand)]
enum Command {
    /// Start the cluster, or its missing processes, and wait until all are ready
    Up(up::Options),
    /// Stop the cluster; its objects are kept for the next `up`
    Down,
    /// List all processes and whether they are ready; exits with 1 if one is not
    Status,
    /// Make the certificates of the cluster's processes, and renew them
    Certs(certs::Options),
    /// Make a client certificate for a user, and write it as a kubeconfig
    Kubeconfig(kubeconfig::Options),
    /// Make, list and delete tokens by which agents join the cluster
    Token(token::Options),
    /// Start the agent of a node of a cluster, by a token of `setpoint token create`
    Join(join::Options),
    /// Save all objects to a file, a snapshot of etcd, and check it
    Backup(backup::Options),
    /// Give the cluster the objects of a backup in place of its own
    Restore(restore::Options),
    /// Show the leader and the standbys of each service, and the age of their leases
    Leaders(leaders::Options),
    /// Show the trace of an object's last write, with all writes that it caused, as a waterfall
    Trace(trace::Options),
    /// Inject faults into the replicas of a service under load, and report their effects
    Chaos(chaos::Options),
    /// Explain the state of an object: its writers, the decisions of each controller, and what it waits for
    Why(why::Options),
    /// List the writes of an object that the store still has: time, writer and fields
    History(history::Options),
    /// Store objects anew after the keys that encrypt them in etcd have changed
    Encryption(encryption::Options),
    /// Forward TCP connections; started by `setpoint up --relays`
    #[command(hide = true)]
    Relay(relay::Options),
}

impl Cli {
    /// Runs the subcommand and returns the exit code.
    ///
    /// # Errors
    /// The failure of the subcommand; its error chain is meant to be printed on one line.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let here = env::current_dir().context("cannot find the current directory")?;
        let connection = Connection::new(StateDir::find(&here, self.state), self.gateway);
        let connection = connection.with_kubeconfig(self.kubeconfig);
        match self.command {
            Command::Up(options) => up::up(&connection.state_dir, &options).await,
            Command::Down => down::down(&connection.state_dir).await,
            Command::Status => status::status(&connection.state_dir).await,
            Command::Certs(options) => certs::certs(&connection.state_dir, &options).await,
            Command::Kubeconfig(options) => kubeconfig::kubeconfig(&connection.state_dir, &options),
            Command::Token(options) => token::token(&connection, &options).await,
            Command::Join(options) => join::join(&connection.state_dir, &options).await,
            Command::Backup(options) => backup::backup(&connection.state_dir, &options).await,
            Command::Restore(options) => restore::restore(&connection.state_dir, &options).await,
            Command::Leaders(options) => leaders::leaders(&connection, &options).await,
            Command::Trace(options) => trace::trace(&connection, &options).await,
            Command::Chaos(options) => chaos::chaos(&connection, &options).await,
            Command::Why(options) => why::why(&connection, &options).await,
            Command::History(options) => history::history(&connection, &options).await,
            Command::Encryption(options) => encryption::encryption(&connection, &options).await,
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
            let undocumented = command.get_arguments().find(|arg| arg.get_help().is_none());
            assert!(undocumented.is_none(), "{undocumented:?}");
        }
    }
}
