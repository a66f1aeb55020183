//! `setpoint trace`: draws the cascade of an object's last write as a waterfall.

mod cascade;
mod waterfall;

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use setpoint_codec::{Kind, kinds};
use setpoint_model::Key;
use setpoint_proto::Cause;
use setpoint_proto::setpoint::ObjectRef;

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
    let subject = options.named.subject()?;
    let kind = kind(&subject.resource)?;
    let namespace = if kind.namespaced {
        subject.namespace.as_str()
    } else {
        ""
    };
    let key = Key::new(namespace, &subject.name);
    let object = connection.gateway()?.object(&kind.resource(), &key).await?;
    let id = trace_id(&subject, object.cause)?;
    let jaeger = options.jaeger.trim_end_matches('/');
    let told = cascade::fetch(jaeger, &format!("/api/traces/{id}")).await;
    let told = told.with_context(|| format!("cannot get trace {id} from {jaeger}"))?;
    let cascade =
        Cascade::read(&told["data"][0]).context("the answer of Jaeger contains no trace")?;
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

/// Finds a kind by any name that kubectl accepts.
fn kind(word: &str) -> anyhow::Result<&'static Kind> {
    let word = word.to_lowercase();
    let is_meant = |kind: &&Kind| {
        let names = [&kind.plural, &kind.singular, &kind.resource()];
        names.contains(&&word) || kind.short_names.contains(&word)
    };
    let found = kinds().iter().find(is_meant);
    found.with_context(|| format!("there is no kind {word:?}"))
}

fn trace_id(subject: &ObjectRef, cause: Option<Cause>) -> anyhow::Result<String> {
    let cause = cause.unwrap_or_default();
    match cause.trace_id() {
        Some(id) => Ok(id.to_string()),
        None => bail!(
            "the last write of {}/{}, by {:?}, was not traced; services trace if OTEL_EXPORTER_OTLP_ENDPOINT is set",
            subject.resource,
            subject.name,
            cause.writer
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_by_plural_singular_short_and_full_name() {
        for word in ["deployment", "deployments", "Deploy", "deployments.apps"] {
            assert_eq!(kind(word).unwrap().kind, "Deployment", "{word}");
        }
        assert!(kind("cats").is_err());
    }

    #[test]
    fn an_untraced_write_has_no_trace_id() {
        let subject = ObjectRef {
            resource: "pod".to_owned(),
            name: "web".to_owned(),
            ..ObjectRef::default()
        };
        let error = trace_id(&subject, None).unwrap_err().to_string();
        assert!(error.starts_with("the last write of pod/web"), "{error}");
        let traced = Cause {
            traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
                .parse()
                .ok(),
            ..Cause::default()
        };
        let id = trace_id(&subject, Some(traced)).unwrap();
        assert_eq!(id, "4bf92f3577b34da6a3ce929d0e0e4736");
    }
}
