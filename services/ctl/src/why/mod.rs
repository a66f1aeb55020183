//! `setpoint why`: why an object is as it is, and what it waits for.

mod page;

use std::process::ExitCode;

use clap::Args;
use setpoint_proto::ApiError;
use setpoint_proto::setpoint::WhyRequest;
use setpoint_proto::setpoint::explain_client::ExplainClient;

use crate::history::Output;
use crate::reach::Reach;
use crate::subject::Named;

/// What to show of which object.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    named: Named,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Prints why an object is as it is.
///
/// # Errors
/// What the gateway refused, or that there is none.
pub async fn why(reach: &Reach, options: &Options) -> anyhow::Result<ExitCode> {
    let subject = Some(options.named.subject()?);
    let mut client = ExplainClient::new(reach.gateway()?.channel());
    let answer = client.why(WhyRequest { subject }).await;
    let answer = answer.map_err(ApiError::from)?.into_inner();
    match options.output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&answer)?),
        Output::Text => print!("{}", page::page(&answer)),
    }
    Ok(ExitCode::SUCCESS)
}
