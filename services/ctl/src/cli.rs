//! The command line of `setpoint`.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use std::ffi::OsString;

use anyhow::Context;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::connection::Connection;
use crate::launcher::StateDir;
use crate::{
    advice, backup, certs, chaos, completion, down, encryption, history, join, kubeconfig, leaders,
    man, members, pause, plugin, relay, restore, status, stop, token, trace, up, why,
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
    /// Whether the program was called as a plug-in of kubectl.
    #[arg(skip)]
    is_plugin: bool,
}

/// The subcommands. The options and the code of each are in the module of the same name.
#[derive(Debug, Subcommand)]
enum Command {
    /// Start the cluster, or its missing processes, and wait until all are ready
    Up(up::Options),
    /// Stop the cluster; its objects are kept for the next `up`
    Down,
    /// Stop the cluster; its objects, its size and its ports are kept for `start`
    Stop,
    /// Start a cluster again that was stopped, with the same objects, size and ports
    Start,
    /// Freeze all processes of the cluster and of its Pods, which use no CPU until `resume`
    Pause,
    /// Let the processes of a cluster that was paused continue, and wait until they are ready
    Resume,
    /// List all processes and whether they are ready; exits with 1 if one is not
    Status,
    /// Make the certificates of the cluster's processes, and renew them
    Certs(certs::Options),
    /// Make a client certificate for a user, and write it as a kubeconfig
    Kubeconfig(kubeconfig::Options),
    /// Make, list and delete tokens by which agents, and parts of the control plane, join the cluster
    Token(token::Options),
    /// Start the agent of a node, or a part of the control plane, of a cluster, by a token of `setpoint token create`
    Join(join::Options),
    /// List the members of etcd of a cluster of several machines, or remove one; exits with 1 if one is not healthy
    Members(members::Options),
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
    /// Print the script by which a shell completes the command line
    Completion(completion::Options),
    /// Print the page of the manual, or write those of all commands
    Man(man::Options),
    /// Forward TCP connections; started by `setpoint up --relays`
    #[command(hide = true)]
    Relay(relay::Options),
}

/// Returns the description of the command line.
pub fn command() -> clap::Command {
    Cli::command()
}

impl Cli {
    /// Parses the arguments, of which the first is the name of the program. Prints why they cannot be, and ends the
    /// process.
    pub fn parse_from_program(arguments: &[OsString]) -> (Self, String) {
        let is_plugin = plugin::is_called(arguments.first());
        let command = match is_plugin {
            true => command().bin_name("kubectl setpoint"),
            false => command(),
        };
        let matches = command.get_matches_from(arguments);
        let name = matches.subcommand_name().unwrap_or_default().to_owned();
        let cli = Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        (Self { is_plugin, ..cli }, name)
    }

    /// Returns the way to the cluster that the arguments name.
    fn connection(&mut self) -> anyhow::Result<Connection> {
        let here = env::current_dir().context("cannot find the current directory")?;
        let has_chosen = self.state.is_some() || self.gateway.is_some();
        let connection = Connection::new(
            StateDir::find(&here, self.state.take()),
            self.gateway.take(),
        );
        let of_kubectl = || {
            let own = connection.state_dir.kubeconfig();
            plugin::kubeconfig(env::var_os(plugin::KUBECONFIG), &own)
        };
        let kubeconfig = self.kubeconfig.take();
        let kubeconfig = match self.is_plugin && !has_chosen {
            true => kubeconfig.or_else(of_kubectl),
            false => kubeconfig,
        };
        Ok(connection.with_kubeconfig(kubeconfig))
    }

    /// Runs the subcommand and returns the exit code.
    ///
    /// # Errors
    /// The failure of the subcommand; its error chain is meant to be printed on one line.
    async fn run(mut self) -> anyhow::Result<ExitCode> {
        let connection = self.connection()?;
        match self.command {
            Command::Up(options) => up::up(&connection.state_dir, &options).await,
            Command::Down => down::down(&connection.state_dir).await,
            Command::Stop => stop::stop(&connection.state_dir).await,
            Command::Start => stop::start(&connection.state_dir).await,
            Command::Pause => pause::pause(&connection.state_dir),
            Command::Resume => pause::resume(&connection.state_dir).await,
            Command::Status => status::status(&connection.state_dir).await,
            Command::Certs(options) => certs::certs(&connection.state_dir, &options).await,
            Command::Kubeconfig(options) => kubeconfig::kubeconfig(&connection.state_dir, &options),
            Command::Token(options) => token::token(&connection, &options).await,
            Command::Join(options) => join::join(&connection.state_dir, &options).await,
            Command::Members(options) => members::members(&connection.state_dir, &options).await,
            Command::Backup(options) => backup::backup(&connection.state_dir, &options).await,
            Command::Restore(options) => restore::restore(&connection.state_dir, &options).await,
            Command::Leaders(options) => leaders::leaders(&connection, &options).await,
            Command::Trace(options) => trace::trace(&connection, &options).await,
            Command::Chaos(options) => chaos::chaos(&connection, &options).await,
            Command::Why(options) => why::why(&connection, &options).await,
            Command::History(options) => history::history(&connection, &options).await,
            Command::Encryption(options) => encryption::encryption(&connection, &options).await,
            Command::Completion(options) => completion::completion(command(), &options),
            Command::Man(options) => man::man(command(), &options),
            Command::Relay(options) => relay::relay(&options).await,
        }
    }
}

/// Runs the command that the arguments of the process name.
pub async fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().collect();
    let (cli, name) = Cli::parse_from_program(&arguments);
    cli.run().await.unwrap_or_else(|error| {
        advice::print(&error, &name);
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_and_every_command_has_help() {
        let command = command();
        command.clone().debug_assert();
        for command in command.get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            let undocumented = command.get_arguments().find(|arg| arg.get_help().is_none());
            assert!(undocumented.is_none(), "{undocumented:?}");
        }
    }
}
