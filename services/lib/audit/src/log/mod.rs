//! The log back end: one event in JSON on each line, written by a thread of its own, so that a disk that hangs stops
//! neither requests nor other tasks.

mod rotation;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::Receiver;

use crate::metrics;
use crate::sink::{Item, Queue, Queued, Sink};
use rotation::RotatedFile;

const PLUGIN: &str = "log";
/// The path that stands for the standard output.
const STDOUT: &str = "-";
/// The number of events that are written at once.
const BATCH: usize = 256;
/// The rest after a batch that was not full: more events are written at once then, and a busy gateway wakes the thread
/// a hundred times a second instead of for each event.
const REST: Duration = Duration::from_millis(10);
/// The interval of log lines about an error that stays.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The file of the log, and when it is rotated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// The file; `-` for the standard output.
    pub path: PathBuf,
    /// The size in bytes beyond which another file is begun; 0 for no limit.
    pub max_size: u64,
    /// The age after which a file that was rotated is deleted; zero for never.
    pub max_age: Duration,
    /// The number of rotated files that are kept; 0 for all.
    pub max_backups: usize,
}

/// The log back end.
pub struct Log {
    output: Output,
    /// Whether the last write may have left a part of a line.
    is_torn: bool,
    failure: Failure,
}

enum Output {
    Stdout,
    File(RotatedFile),
}

/// The error of the last write, which is logged when it changes and now and then.
#[derive(Default)]
struct Failure {
    text: String,
    logged: Option<Instant>,
}

impl Log {
    /// Opens the file, and adds its queue for so many events to a sink.
    ///
    /// # Errors
    /// If the file cannot be opened for writing, or there can be no thread.
    pub fn start(options: LogOptions, buffer: usize, sink: Sink) -> io::Result<Sink> {
        let output = match options.path == Path::new(STDOUT) {
            true => Output::Stdout,
            false => Output::File(RotatedFile::open(options)?),
        };
        let log = Self {
            output,
            is_torn: false,
            failure: Failure::default(),
        };
        let (queue, receiver) = Queue::new(PLUGIN, buffer);
        let thread = thread::Builder::new().name("audit-log".into());
        thread.spawn(move || log.run(receiver))?;
        Ok(sink.with(queue))
    }

    /// Writes what comes, until the queue is closed.
    fn run(mut self, mut receiver: Receiver<Item>) {
        let mut items = Vec::with_capacity(BATCH);
        while receiver.blocking_recv_many(&mut items, BATCH) > 0 {
            let is_full = items.len() == BATCH;
            let (mut events, mut flushed) = (Vec::new(), Vec::new());
            for item in items.drain(..) {
                match item {
                    Item::Event(queued) => events.push(queued),
                    Item::Flush(done) => flushed.push(done),
                }
            }
            self.write(&events);
            flushed.into_iter().for_each(|done| {
                // Nobody may wait any more.
                let _ = done.send(());
            });
            if !is_full {
                thread::sleep(REST);
            }
        }
    }

    fn write(&mut self, events: &[Queued]) {
        if events.is_empty() {
            return;
        }
        let mut lines = String::new();
        if self.is_torn {
            lines.push('\n');
        }
        for queued in events {
            lines.push_str(queued.event.json());
            lines.push('\n');
        }
        let written = match &mut self.output {
            Output::Stdout => write_stdout(lines.as_bytes()),
            Output::File(file) => file.write(lines.as_bytes()),
        };
        self.is_torn = written.is_err();
        match written {
            Ok(()) => self.failure.end(),
            Err(error) => {
                metrics::errors(PLUGIN, events.len());
                self.failure.log(&error, events.len());
            }
        }
    }
}

fn write_stdout(lines: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(lines)?;
    stdout.flush()
}

impl Failure {
    fn log(&mut self, error: &io::Error, events: usize) {
        let text = error.to_string();
        let is_told = self.logged.is_some_and(|at| at.elapsed() < LOG_INTERVAL);
        if text == self.text && is_told {
            return;
        }
        tracing::error!(%error, events, "audit events were not written");
        (self.text, self.logged) = (text, Some(Instant::now()));
    }

    fn end(&mut self) {
        if !self.text.is_empty() {
            tracing::info!("audit events are written again");
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests;
