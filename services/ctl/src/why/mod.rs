//! `setpoint why`: explains the state of an object and what it waits for.

mod page;

use std::process::ExitCode;

use clap::Args;
use setpoint_proto::ApiError;
use setpoint_proto::setpoint::WhyRequest;
use setpoint_proto::setpoint::explain_client::ExplainClient;

use crate::connection::Connection;
use crate::history::Output;
use crate::subject::ObjectArgs;

/// The options of `setpoint why`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    named: ObjectArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Prints the explanation of an object's state.
///
/// # Errors
/// No gateway is reachable, or the gateway refused the request.
pub async fn why(connection: &Connection, options: &Options) -> anyhow::Result<ExitCode> {
    let subject = Some(options.named.subject()?);
    let mut client = ExplainClient::new(connection.gateway()?.channel());
    let answer = client.why(WhyRequest { subject }).await;
    let answer = answer.map_err(ApiError::from)?.into_inner();
    match options.output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&answer)?),
        Output::Text => print!("{}", page::page(&answer)),
    }
    Ok(ExitCode::SUCCESS)
}
