//! What the binary does when it is not an agent.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use crate::runtime::process::{shim, sweep};

/// How long containers get to stop when everything is swept away.
const SWEEP_GRACE: Duration = Duration::from_secs(2);

/// What the binary does other than being an agent: `shim <folder>`, `pause`, `sweep <state-dir>`.
pub fn subcommand(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let args: Vec<_> = args.into_iter().collect();
    match args.as_slice() {
        [name, folder] if name == "shim" => Some(shim::main(Path::new(folder))),
        [name] if name == "pause" => Some(shim::pause()),
        [name, state] if name == "sweep" => Some(sweep_away(Path::new(state))),
        _ => None,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn sweep_away(state: &Path) -> ExitCode {
    match sweep(state, SWEEP_GRACE).await {
        Ok(count) => {
            println!("stopped {count} containers");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("node-agent: cannot sweep {}: {error}", state.display());
            ExitCode::FAILURE
        }
    }
}
