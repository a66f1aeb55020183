//! Subcommands of the binary beside the agent itself.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use setpoint_runtime::process::sweep;
use setpoint_runtime::{docker, program};
use tokio::signal::unix::{SignalKind, signal};

/// Grace period of containers that a sweep stops.
const SWEEP_GRACE: Duration = Duration::from_secs(2);
/// `EX_USAGE` of sysexits.h.
const USAGE: u8 = 64;

/// Runs the subcommand in `args`: `sweep <state-dir>`, `sweep --runtime docker`, or one of the runtimes' own. Returns
/// `None` if there is none and the agent is to run.
pub fn subcommand(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let args: Vec<_> = args.into_iter().collect();
    match args.as_slice() {
        [name, rest @ ..] if name == "sweep" => Some(match Sweep::parse(rest) {
            Some(sweep) => run_sweep(sweep),
            None => {
                eprintln!("{SWEEP_USAGE}");
                ExitCode::from(USAGE)
            }
        }),
        others => program::run(others),
    }
}

const SWEEP_USAGE: &str = "\
usage: node-agent sweep <state-dir>
       node-agent sweep --runtime docker [--docker-cluster NAME] [--docker-socket PATH] [--on-stop]";

/// Arguments of `sweep`.
#[derive(Debug, PartialEq)]
struct Sweep {
    /// State directory of the process runtime; `None` for a Docker engine.
    state: Option<PathBuf>,
    socket: Option<PathBuf>,
    cluster: String,
    /// Wait for SIGTERM or SIGINT first.
    on_stop: bool,
}

impl Sweep {
    fn parse(args: &[OsString]) -> Option<Self> {
        let mut sweep = Self {
            state: None,
            socket: None,
            cluster: String::new(),
            on_stop: false,
        };
        let mut docker = false;
        let words = args.iter().map(|word| word.to_str());
        let words = words.collect::<Option<Vec<_>>>()?;
        // Accept both `--flag value` and `--flag=value`.
        let mut words = words.iter().flat_map(|word| match word.split_once('=') {
            Some((flag, value)) if flag.starts_with('-') => vec![flag, value],
            _ => vec![*word],
        });
        while let Some(word) = words.next() {
            match word {
                "--on-stop" => sweep.on_stop = true,
                "--runtime" => docker = words.next()? == "docker",
                "--docker-cluster" => sweep.cluster = words.next()?.to_owned(),
                "--docker-socket" => sweep.socket = Some(words.next()?.into()),
                flag if flag.starts_with('-') => return None,
                state => sweep.state = Some(state.into()),
            }
        }
        (docker != sweep.state.is_some()).then_some(sweep)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run_sweep(sweep: Sweep) -> ExitCode {
    let swept = async {
        if sweep.on_stop {
            stop_signal().await.map_err(|error| error.to_string())?;
        }
        run(&sweep).await
    };
    match swept.await {
        Ok(count) => {
            println!("stopped {count} containers");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("node-agent: cannot sweep: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(wanted: &Sweep) -> Result<usize, String> {
    if let Some(state) = &wanted.state {
        let swept = sweep(state, SWEEP_GRACE).await;
        return swept.map_err(|error| format!("{}: {error}", state.display()));
    }
    let mut settings = docker::Settings::default();
    settings.socket = wanted.socket.clone().unwrap_or(settings.socket);
    let swept = async {
        let cluster = match wanted.cluster.as_str() {
            "" => docker::own_cluster(&settings).await?,
            named => named.to_owned(),
        };
        docker::sweep(&settings, &cluster).await
    };
    swept.await.map_err(|error| error.to_string())
}

async fn stop_signal() -> std::io::Result<()> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<Sweep> {
        let words: Vec<_> = line.split_whitespace().map(OsString::from).collect();
        Sweep::parse(&words)
    }

    #[test]
    fn a_sweep_takes_either_a_state_directory_or_the_engine() {
        assert_eq!(parse("/state").unwrap().state, Some("/state".into()));
        let engine = parse("--on-stop --runtime docker --docker-cluster shop").unwrap();
        assert_eq!(
            (engine.cluster.as_str(), engine.on_stop, &engine.state),
            ("shop", true, &None)
        );
        assert_eq!(
            parse("--on-stop --runtime=docker --docker-cluster=shop"),
            Some(engine)
        );
        assert_eq!(parse("--runtime docker /state"), None);
        assert_eq!(parse(""), None);
        assert_eq!(parse("--runtime docker --all"), None);
    }
}
