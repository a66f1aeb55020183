//! The log in files.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::policy::{Decision, Level};
use crate::{Head, Record};

const LIMIT: Duration = Duration::from_secs(10);

fn options(path: PathBuf) -> LogOptions {
    LogOptions {
        path,
        max_size: 0,
        max_age: Duration::ZERO,
        max_backups: 0,
    }
}

fn record(sink: &Arc<Sink>, id: &str) {
    let decision = Decision {
        level: Level::Metadata,
        ..Decision::default()
    };
    let head = Head {
        audit_id: id.into(),
        ..Head::default()
    };
    Record::begin(sink, decision, head, None, false).respond(200);
}

fn started(options: LogOptions) -> Arc<Sink> {
    Arc::new(Log::start(options, 100, Sink::default()).unwrap())
}

fn files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[tokio::test]
async fn each_line_is_an_event() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let sink = started(options(path.clone()));
    record(&sink, "a");
    sink.flush(LIMIT).await;
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let stages: Vec<_> = lines
        .iter()
        .map(|line| line["stage"].as_str().unwrap())
        .collect();
    assert_eq!(stages, ["RequestReceived", "ResponseComplete"]);
    assert_eq!(lines[1]["auditID"], "a");
    assert_eq!(lines[1]["responseStatus"]["code"], 200);
    // Events are appended to what is there.
    let sink = started(options(path.clone()));
    record(&sink, "b");
    sink.flush(LIMIT).await;
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 4);
}

#[tokio::test]
async fn a_file_is_rotated_by_size_and_only_so_many_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    for other in [
        "audit-of-others.log",
        "audit-2026-11-28.log",
        "audit.log.bak",
    ] {
        fs::write(directory.path().join(other), "kept").unwrap();
    }
    let sink = started(LogOptions {
        max_size: 1,
        max_backups: 2,
        ..options(path.clone())
    });
    for number in 0..5 {
        record(&sink, &number.to_string());
        sink.flush(LIMIT).await;
    }
    let found = files(directory.path());
    assert_eq!(found.len(), 6, "{found:?}");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(r#""auditID":"4""#), "{text}");
    // No line is lost or torn at a rotation.
    let rotated = found
        .iter()
        .filter(|name| name.starts_with("audit-2026-11-28T") || name.contains('T'));
    for name in rotated {
        let text = fs::read_to_string(directory.path().join(name)).unwrap();
        text.lines().for_each(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        });
    }
}

#[tokio::test]
async fn files_that_are_too_old_are_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let [old, new] = [
        "audit-2020-01-01T00-00-00.000.log",
        "audit-2020-01-02T00-00-00.000.log",
    ];
    for name in [old, new] {
        fs::write(directory.path().join(name), "x").unwrap();
    }
    let week = Duration::from_secs(7 * 24 * 60 * 60);
    let file = fs::File::options()
        .write(true)
        .open(directory.path().join(old))
        .unwrap();
    file.set_modified(std::time::SystemTime::now() - 2 * week)
        .unwrap();
    let _sink = started(LogOptions {
        max_age: week,
        ..options(path)
    });
    assert_eq!(files(directory.path()), [new, "audit.log"]);
}

/// Events that cannot be written are counted, and stop no request.
#[tokio::test]
async fn a_full_disk_is_counted() {
    let before = metrics::failed(PLUGIN);
    let sink = started(options("/dev/full".into()));
    record(&sink, "a");
    sink.flush(LIMIT).await;
    record(&sink, "b");
    sink.flush(LIMIT).await;
    assert!(metrics::failed(PLUGIN) >= before + 4);
}

#[test]
fn what_cannot_be_rotated_is_written_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let options = LogOptions {
        max_size: 1,
        ..options(path)
    };
    let mut file = RotatedFile::open(options).unwrap();
    file.write(b"one\n").unwrap();
    fs::remove_dir_all(directory.path()).unwrap();
    file.write(b"two\n").unwrap();
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error() {
    let started = Log::start(options("/nowhere/audit.log".into()), 1, Sink::default());
    assert!(started.is_err());
}
