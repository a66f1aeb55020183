//! The run of a test without a permission.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use setpoint_tests::WITHOUT;

use super::table::Row;

/// The line of a gateway, which the harness shows.
const REFUSED: &str = "a request of a service is not allowed";
const BINARY: &str = "setpoint-tests::e2e";

/// The outcome of a test without a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It failed because a request was refused, as it should.
    Refused,
    /// It passed: it does not need the permission.
    Passed,
    /// It failed for another reason.
    Failed,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Refused => "refused",
            Self::Passed => "PASSED",
            Self::Failed => "FAILED",
        })
    }
}

/// Runs tests of the built binary.
pub struct Trials {
    binary: PathBuf,
}

impl Trials {
    /// Finds the binary, and builds it if it is not.
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn prepare() -> anyhow::Result<Self> {
        let arguments =
            "nextest list --workspace --locked --list-type binaries-only --message-format json";
        let listed = Command::new("cargo").args(arguments.split(' ')).output()?;
        ensure!(
            listed.status.success(),
            "{}",
            String::from_utf8_lossy(&listed.stderr)
        );
        let listed: Value = serde_json::from_slice(&listed.stdout)?;
        let path = listed["rust-binaries"][BINARY]["binary-path"].as_str();
        let binary = path
            .with_context(|| format!("no test binary {BINARY}"))?
            .into();
        Ok(Self { binary })
    }

    /// Runs the test of a row without its permission. Returns how that ended, and after which time.
    ///
    /// # Errors
    /// If the binary cannot be run.
    pub fn run(&self, row: &Row) -> anyhow::Result<(Outcome, Duration)> {
        let begin = Instant::now();
        let mut command = Command::new(&self.binary);
        command.args(["--exact", row.test]);
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")));
        command.env(WITHOUT, row.permission.to_string());
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(
            text.contains("running 1 test"),
            "there is no test {}",
            row.test
        );
        let outcome = match output.status.success() {
            true => Outcome::Passed,
            false if text.contains(REFUSED) => Outcome::Refused,
            false => Outcome::Failed,
        };
        Ok((outcome, begin.elapsed()))
    }
}
