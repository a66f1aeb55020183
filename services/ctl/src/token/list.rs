//! `setpoint token list`.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use setpoint_controller::client::ListOptions;
use setpoint_model::bootstrap_token::{
    self, DESCRIPTION, EXTRA_GROUPS, NAMESPACE, NODE_ANNOTATION, TYPE, USED_BY_ANNOTATION, data,
};
use setpoint_proto::core::Secret;

use crate::connection::Connection;
use crate::launcher::Joining;
use crate::table::render;
use crate::time_format::short;

/// The options of `setpoint token list`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Output format
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table
    Table,
    /// A JSON array
    Json,
}

/// The columns of a token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Row {
    id: String,
    /// The process that it brings in; `None` for a token that `setpoint token create` has not made.
    r#for: Option<&'static str>,
    node: Option<String>,
    /// Whether it has brought in its process; it is removed soon.
    used: bool,
    /// `None` for never.
    expires: Option<Timestamp>,
    description: String,
}

/// Prints the tokens of the cluster.
pub async fn list(connection: &Connection, options: &Options) -> anyhow::Result<ExitCode> {
    let tokens = ListOptions {
        namespace: NAMESPACE.to_owned(),
        fields: format!("type={TYPE}"),
        ..ListOptions::default()
    };
    let gateway = connection.gateway()?;
    let listed = gateway.list::<Secret>(&tokens).await;
    let listed = listed.context("the tokens cannot be read")?;
    let rows: Vec<_> = listed.items.iter().filter_map(row).collect();
    match options.output {
        Format::Json => println!("{}", serde_json::to_string_pretty(&rows)?),
        Format::Table => print!("{}", table(&rows, Timestamp::now())),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns what is told of a token; `None` for a Secret that is none.
fn row(secret: &Secret) -> Option<Row> {
    let id = bootstrap_token::id(secret)?;
    let text = |key| String::from_utf8_lossy(data(secret, key)).into_owned();
    let groups = text(EXTRA_GROUPS);
    let is_for = |kind: &Joining| groups.split(',').any(|group| group.trim() == kind.group());
    Some(Row {
        id: id.to_owned(),
        r#for: Joining::ALL.into_iter().find(is_for).map(Joining::name),
        node: secret.metadata.annotations.get(NODE_ANNOTATION).cloned(),
        used: secret.metadata.annotations.contains_key(USED_BY_ANNOTATION),
        expires: bootstrap_token::expiry(secret),
        description: text(DESCRIPTION),
    })
}

fn table(rows: &[Row], now: Timestamp) -> String {
    let header = ["TOKEN", "FOR", "NODE", "EXPIRES", "DESCRIPTION"];
    let rows = rows.iter().map(|row| {
        [
            row.id.clone(),
            row.r#for.unwrap_or("-").to_owned(),
            row.node.clone().unwrap_or_else(|| "-".to_owned()),
            expires(row, now),
            // A text of a user stays on its line, and moves no cursor.
            row.description.replace(char::is_control, " "),
        ]
    });
    render(header, rows)
}

fn expires(row: &Row, now: Timestamp) -> String {
    if row.used {
        return "used".to_owned();
    }
    let Some(expiry) = row.expires else {
        return "never".to_owned();
    };
    let left = expiry.duration_since(now);
    let ns = i64::try_from(left.as_nanos()).unwrap_or(i64::MAX);
    match left.is_positive() {
        true => format!("in {}", short(ns)),
        false => "expired".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::secret::{Purpose, Token};
    use super::*;

    #[test]
    fn the_table_tells_what_tokens_are_for_and_never_their_secrets() {
        let now: Timestamp = "2026-11-28T12:00:00Z".parse().unwrap();
        let token: Token = "abcdef.0123456789abcdef".parse().unwrap();
        let secret = token.to_secret(&Purpose {
            joining: Joining::Agent,
            node: Some("worker-1"),
            description: "rack 2,\nleft",
            expiry: "2026-11-28T12:14:59Z".parse().unwrap(),
        });
        let mut expired = secret.clone();
        expired.data.insert(
            "expiration".to_owned(),
            b"2026-11-28T12:00:00Z".to_vec().into(),
        );
        let mut used = secret.clone();
        let by = ("setpoint.dev/used-by".to_owned(), "uid".to_owned());
        used.metadata.annotations.extend([by]);
        let mut other = secret.clone();
        for key in ["expiration", "auth-extra-groups", "description"] {
            other.data.remove(key);
        }
        other.metadata.annotations.clear();
        let opaque = Secret {
            r#type: "Opaque".to_owned(),
            ..secret.clone()
        };
        let gateway = token.to_secret(&Purpose {
            joining: Joining::Gateway,
            node: None,
            description: "",
            expiry: "2026-11-28T12:01:00Z".parse().unwrap(),
        });
        let all = [secret, expired, used, other, opaque, gateway];
        let rows: Vec<_> = all.iter().filter_map(row).collect();
        let shown = table(&rows, now);
        let expected = "\
TOKEN    FOR       NODE       EXPIRES     DESCRIPTION
abcdef   agent     worker-1   in 14m59s   rack 2, left
abcdef   agent     worker-1   expired     rack 2, left
abcdef   agent     worker-1   used        rack 2, left
abcdef   -         -          never
abcdef   gateway   -          in 60s
";
        assert_eq!(shown, expected);
        let json = serde_json::to_string(&rows).unwrap();
        for text in [shown, json] {
            assert!(!text.contains("0123456789"), "{text}");
        }
    }
}
