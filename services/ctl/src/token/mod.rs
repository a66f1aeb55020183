//! `setpoint token`: makes, lists and deletes bootstrap tokens, by which processes of other machines join the cluster.

mod certificate_key;
mod create;
mod delete;
mod handover;
mod list;
mod secret;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::connection::Connection;
pub use certificate_key::CertificateKey;
pub use handover::{CONTENT, Handover};
pub use secret::Token;

/// The options of `setpoint token`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Make a token that brings in one process, once, and print the command for it
    Create(create::Options),
    /// List the tokens of the cluster, without their secrets
    List(list::Options),
    /// Delete tokens, which bring in nothing any more
    Delete(delete::Options),
}

/// Runs the command.
///
/// # Errors
/// No gateway is reachable, or what it answers.
pub async fn token(connection: &Connection, options: &Options) -> anyhow::Result<ExitCode> {
    match &options.command {
        Command::Create(options) => create::create(connection, options).await,
        Command::List(options) => list::list(connection, options).await,
        Command::Delete(options) => delete::delete(connection, options).await,
    }
}
