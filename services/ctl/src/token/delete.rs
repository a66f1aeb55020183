//! `setpoint token delete`.

use std::process::ExitCode;

use clap::Args;
use setpoint_controller::Client;
use setpoint_controller::client::Preconditions;
use setpoint_model::{Key, bootstrap_token};
use setpoint_proto::Reason;
use setpoint_proto::core::Secret;

use super::secret::id_of;
use crate::connection::Connection;

/// The options of `setpoint token delete`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The ids of the tokens, or the tokens
    #[arg(value_name = "ID|TOKEN", required = true)]
    tokens: Vec<String>,
}

/// Deletes tokens. The exit code is a failure if one could not be deleted; the others are.
pub async fn delete(connection: &Connection, options: &Options) -> anyhow::Result<ExitCode> {
    let ids: anyhow::Result<Vec<_>> = options.tokens.iter().map(|one| id_of(one)).collect();
    let (ids, gateway, mut code) = (ids?, connection.gateway()?, ExitCode::SUCCESS);
    for id in ids {
        match delete_one(&gateway, id).await {
            Ok(()) => println!("bootstrap token \"{id}\" deleted"),
            Err(why) => {
                eprintln!("setpoint: {why}");
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

async fn delete_one(gateway: &Client, id: &str) -> Result<(), String> {
    let key = Key::new(bootstrap_token::NAMESPACE, bootstrap_token::secret_name(id));
    let deleted = gateway
        .delete::<Secret>(&key, Preconditions::default(), None)
        .await;
    deleted.map(drop).map_err(|error| match error.reason {
        Reason::NotFound => {
            format!("there is no token {id}: `setpoint token list` shows those that there are")
        }
        _ => format!("the token {id} cannot be deleted: {}", error.message),
    })
}
