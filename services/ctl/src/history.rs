//! `setpoint history`: lists the writes of an object.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use setpoint_proto::ApiError;
use setpoint_proto::setpoint::explain_client::ExplainClient;
use setpoint_proto::setpoint::{
    Change, HistoryEnd, HistoryRequest, HistoryResponse, Version, WriteType,
};

use crate::connection::Connection;
use crate::subject::ObjectArgs;
use crate::time_format::relative;

/// Number of changed fields shown on a line.
const MAX_FIELDS: usize = 3;

/// The options of `setpoint history`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    named: ObjectArgs,
    /// Also show the old and the new value of each changed field
    #[arg(long)]
    diff: bool,
    /// Number of writes to show, newest first
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Text for people
    Text,
    /// JSON for programs
    Json,
}

/// Prints the versions of an object. The exit code is a failure if none is known.
///
/// # Errors
/// No gateway is reachable, or the gateway refused the request.
pub async fn history(connection: &Connection, options: &Options) -> anyhow::Result<ExitCode> {
    let request = HistoryRequest {
        subject: Some(options.named.subject()?),
        limit: options.limit,
        diff: options.diff,
    };
    let mut client = ExplainClient::new(connection.gateway()?.channel());
    let answer = client.history(request).await.map_err(ApiError::from)?;
    let answer = answer.into_inner();
    match options.output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&answer)?),
        Output::Text => print!("{}", text(&answer, options.diff)),
    }
    Ok(match answer.versions.is_empty() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn text(answer: &HistoryResponse, diff: bool) -> String {
    let rows = answer.versions.iter().map(|version| row(version, diff));
    let mut table = vec![["REVISION", "WHEN", "WHO", "GEN", "WHAT"].map(str::to_owned)];
    table.extend(rows);
    let widths: Vec<_> = (0..4)
        .map(|column| {
            table
                .iter()
                .map(|row| row[column].len())
                .max()
                .unwrap_or_default()
        })
        .collect();
    let mut text = String::new();
    for (n, row) in table.iter().enumerate() {
        for (cell, width) in row.iter().zip(&widths) {
            // Writing to a String does not fail.
            let _ = write!(text, "{cell:<width$}  ");
        }
        text.push_str(&row[4]);
        text.push('\n');
        if let Some(version) = n
            .checked_sub(1)
            .and_then(|n| answer.versions.get(n))
            .filter(|_| diff)
        {
            version
                .changes
                .iter()
                .for_each(|change| write_values(&mut text, change));
        }
    }
    text.push_str(end_note(answer.ends()));
    text
}

fn row(version: &Version, diff: bool) -> [String; 5] {
    let cause = version.cause.clone().unwrap_or_default();
    let who = match (cause.writer.as_str(), cause.term) {
        ("", _) => "?".to_owned(),
        (writer, 0) => writer.to_owned(),
        (writer, term) => format!("{writer} (term {term})"),
    };
    let what = match (version.what(), diff) {
        (WriteType::Changed, false) => fields(&version.changes),
        (what, _) => what.to_string(),
    };
    [
        version.revision.clone(),
        relative(cause.written_ns),
        who,
        version.generation.to_string(),
        what,
    ]
}

fn fields(changes: &[Change]) -> String {
    let named: Vec<_> = changes
        .iter()
        .take(MAX_FIELDS)
        .map(|change| &*change.path)
        .collect();
    match changes.len().saturating_sub(MAX_FIELDS) {
        0 if named.is_empty() => "no visible field".to_owned(),
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn write_values(text: &mut String, change: &Change) {
    let value = |value: &str| match value {
        "" => "(not set)".to_owned(),
        value => value.to_owned(),
    };
    let (before, after) = (value(&change.before), value(&change.after));
    // Writing to a String does not fail.
    let _ = writeln!(text, "    {}: {before} → {after}", change.path);
}

fn end_note(end: HistoryEnd) -> &'static str {
    match end {
        HistoryEnd::Compacted => "Earlier writes have been compacted away by the store.\n",
        HistoryEnd::Limit => "There are more writes; raise --limit to show them.\n",
        HistoryEnd::Unknown => "No writes of such an object are known.\n",
        HistoryEnd::Created => "",
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::Cause;

    use super::*;

    #[test]
    fn each_write_is_a_line_and_with_diff_each_field_is_another() {
        let cause = |writer: &str, term| Cause {
            writer: writer.to_owned(),
            term,
            ..Cause::default()
        };
        let answer = HistoryResponse {
            versions: vec![
                Version {
                    revision: "12".to_owned(),
                    generation: 2,
                    what: WriteType::Changed.into(),
                    cause: Some(cause("deployment-controller", 3)),
                    changes: vec![Change {
                        path: "spec.replicas".to_owned(),
                        before: "1".to_owned(),
                        after: String::new(),
                    }],
                    ..Version::default()
                },
                Version {
                    revision: "7".to_owned(),
                    what: WriteType::Created.into(),
                    cause: Some(cause("kubectl", 0)),
                    ..Version::default()
                },
            ],
            ends: HistoryEnd::Compacted.into(),
            ..HistoryResponse::default()
        };
        let plain = text(&answer, false);
        let lines: Vec<_> = plain.lines().collect();
        assert!(
            lines[1].starts_with("12 ") && lines[1].ends_with(" spec.replicas"),
            "{plain}"
        );
        assert!(
            lines[1].contains("deployment-controller (term 3)"),
            "{plain}"
        );
        assert!(lines[2].ends_with("created"), "{plain}");
        assert!(lines[3].contains("compacted"), "{plain}");
        assert!(text(&answer, true).contains("    spec.replicas: 1 → (not set)\n"));
    }
}
