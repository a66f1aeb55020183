//! `setpoint trace`: the last cascade of an object, as a waterfall in the terminal.

mod cascade;
mod jaeger;
mod waterfall;

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use setpoint_codec::{Kind, kinds};
use setpoint_model::Key;
use setpoint_proto::Cause;
use setpoint_proto::setpoint::Subject;

use crate::reach::Reach;
use crate::subject::Named;
use cascade::Cascade;
use waterfall::Waterfall;

/// Whose cascade, and where it is kept.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    named: Named,
    /// Where Jaeger is
    #[arg(
        long,
        value_name = "URL",
        env = "SETPOINT_JAEGER",
        default_value = "http://127.0.0.1:16686"
    )]
    jaeger: String,
    /// Every span; else only the first few of many that are alike
    #[arg(long)]
    all: bool,
}

/// Shows the cascade that the object's last write belongs to.
pub async fn trace(reach: &Reach, options: &Options) -> anyhow::Result<ExitCode> {
    let subject = options.named.subject()?;
    let kind = kind(&subject.resource)?;
    let namespace = if kind.namespaced {
        subject.namespace.as_str()
    } else {
        ""
    };
    let key = Key::new(namespace, &subject.name);
    let object = reach.gateway()?.object(&kind.resource(), &key).await?;
    let id = trace_id(&subject, object.cause)?;
    let jaeger = options.jaeger.trim_end_matches('/');
    let told = jaeger::ask(jaeger, &format!("/api/traces/{id}")).await;
    let told = told.with_context(|| format!("trace {id} is not to be had from {jaeger}"))?;
    let cascade = Cascade::read(&told["data"][0]).context("Jaeger told no trace")?;
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

/// The kind that a person means, as kubectl would take it.
fn kind(word: &str) -> anyhow::Result<&'static Kind> {
    let word = word.to_lowercase();
    let is_meant = |kind: &&Kind| {
        let names = [&kind.plural, &kind.singular, &kind.resource()];
        names.contains(&&word) || kind.short_names.contains(&word)
    };
    let found = kinds().iter().find(is_meant);
    found.with_context(|| format!("there is no kind {word:?}"))
}

fn trace_id(subject: &Subject, cause: Option<Cause>) -> anyhow::Result<String> {
    let cause = cause.unwrap_or_default();
    match cause.trace_id() {
        Some(id) => Ok(id.to_string()),
        None => bail!(
            "the last write of {}/{}, by {:?}, was not traced; services trace where OTEL_EXPORTER_OTLP_ENDPOINT says",
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
    fn kinds_are_named_as_kubectl_takes_them() {
        for word in ["deployment", "deployments", "Deploy", "deployments.apps"] {
            assert_eq!(kind(word).unwrap().kind, "Deployment", "{word}");
        }
        assert!(kind("cats").is_err());
    }

    #[test]
    fn a_write_that_nobody_traced_has_no_cascade_to_show() {
        let subject = Subject {
            resource: "pod".to_owned(),
            name: "web".to_owned(),
            ..Subject::default()
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
