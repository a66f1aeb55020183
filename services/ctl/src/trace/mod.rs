//! `setpoint trace`: draws the cascade of an object's last write as a waterfall.

mod cascade;
mod waterfall;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use setpoint_proto::ApiError;
use setpoint_proto::setpoint::explain_client::ExplainClient;
use setpoint_proto::setpoint::{HistoryRequest, HistoryResponse, ObjectRef};

use crate::advice::advised;
use crate::connection::Connection;
use crate::subject::ObjectArgs;
use cascade::Cascade;
use waterfall::Waterfall;

/// The options of `setpoint trace`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    named: ObjectArgs,
    /// Address of Jaeger's query API
    #[arg(
        long,
        value_name = "URL",
        env = "SETPOINT_JAEGER",
        default_value = "http://127.0.0.1:16686"
    )]
    jaeger: String,
    /// Show all spans, not only the first few of many similar ones
    #[arg(long)]
    all: bool,
}

/// Prints the cascade that the object's last write belongs to.
pub async fn trace(connection: &Connection, options: &Options) -> anyhow::Result<ExitCode> {
    let last = last_write(connection, options.named.subject()?).await?;
    let id = trace_id(&last)?;
    let jaeger = options.jaeger.trim_end_matches('/');
    let answer = cascade::fetch(jaeger, &format!("/api/traces/{id}")).await;
    let answer = answer.with_context(|| format!("cannot get trace {id} from {jaeger}"))?;
    let cascade =
        Cascade::read(&answer["data"][0]).context("the answer of Jaeger contains no trace")?;
    let all = options.all;
    print!(
        "{}",
        Waterfall {
            cascade: &cascade,
            all
        }
    );
    println!("\n{jaeger}/trace/{id}");
    Ok(ExitCode::SUCCESS)
}

/// Returns the history of an object with its last write only.
async fn last_write(
    connection: &Connection,
    subject: ObjectRef,
) -> anyhow::Result<HistoryResponse> {
    let request = HistoryRequest {
        subject: Some(subject),
        limit: 1,
        diff: false,
    };
    let mut client = ExplainClient::new(connection.gateway()?.channel());
    let answer = client.history(request).await.map_err(ApiError::from)?;
    Ok(answer.into_inner())
}

fn trace_id(last: &HistoryResponse) -> anyhow::Result<&str> {
    let subject = last.subject.clone().unwrap_or_default();
    let (resource, name) = (subject.resource, subject.name);
    let Some(version) = last.versions.first() else {
        return Err(advised(
            format!("{resource} {name:?} not found"),
            format!("kubectl get {resource} --all-namespaces, and -n NAMESPACE"),
        ));
    };
    if version.trace_id.is_empty() {
        let writer = version.cause.clone().unwrap_or_default().writer;
        return Err(advised(
            format!(
                "the last write of {resource}/{name}, by {writer:?}, was not traced; services trace if OTEL_EXPORTER_OTLP_ENDPOINT is set"
            ),
            "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317 ./deploy/up, after ./deploy/down",
        ));
    }
    Ok(&version.trace_id)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::setpoint::Version;

    use super::*;

    #[test]
    fn an_untraced_write_has_no_trace_id() {
        let mut last = HistoryResponse {
            subject: Some(ObjectRef {
                resource: "pods".to_owned(),
                name: "web".to_owned(),
                ..ObjectRef::default()
            }),
            ..HistoryResponse::default()
        };
        let error = trace_id(&last).unwrap_err().to_string();
        assert_eq!(error, r#"pods "web" not found"#);
        last.versions.push(Version::default());
        let error = trace_id(&last).unwrap_err().to_string();
        assert!(error.starts_with("the last write of pods/web"), "{error}");
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        last.versions[0].trace_id = id.to_owned();
        assert_eq!(trace_id(&last).unwrap(), id);
    }
}
