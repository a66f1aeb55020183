//! Runs programs with an input and a deadline.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

/// The length of a program's message in an error.
const MESSAGE: usize = 300;

/// A program that has not done its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program does not start.
    #[error("cannot run {program}")]
    Start {
        /// The program.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The program has refused its input.
    #[error("{program} failed: {message}")]
    Failed {
        /// The program.
        program: String,
        /// Its first words.
        message: String,
    },
    /// The program has not ended in time.
    #[error("{program} has not ended after {after:?}")]
    Timeout {
        /// The program.
        program: String,
        /// The time that it had.
        after: Duration,
    },
}

/// Runs a program until it ends, or kills it after `limit`. `command` is the program and its first arguments.
///
/// # Errors
/// If it does not start, fails, or takes too long.
pub async fn run(
    command: &[String],
    args: &[&str],
    input: String,
    limit: Duration,
) -> Result<String, Error> {
    let program = command.first().cloned().unwrap_or_default();
    let start = |source| Error::Start {
        program: program.clone(),
        source,
    };
    let mut child = Command::new(&program)
        .args(command.iter().skip(1))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(start)?;
    let stdin = child.stdin.take();
    let write = async move {
        if let Some(mut stdin) = stdin {
            // A program that has ended says why.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let work = async { tokio::join!(write, child.wait_with_output()).1 };
    let output = match timeout(limit, work).await {
        Ok(output) => output.map_err(start)?,
        Err(_) => {
            let after = limit;
            return Err(Error::Timeout { program, after });
        }
    };
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(Error::Failed {
            program,
            message: first_words(&output.stderr),
        }),
    }
}

/// Returns the start of a program's message in one line.
fn first_words(message: &[u8]) -> String {
    let message = String::from_utf8_lossy(message);
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MESSAGE).collect()
}
