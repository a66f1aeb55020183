//! Subcommands of the binary beside the agent itself.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use setpoint_runtime::process::sweep;
use setpoint_runtime::{cri, docker, program};
use tokio::signal::unix::{SignalKind, signal};

/// Grace period of containers that a sweep stops.
const SWEEP_GRACE: Duration = Duration::from_secs(2);
/// `EX_USAGE` of sysexits.h.
const USAGE: u8 = 64;

/// Runs the subcommand in `args`: `sweep`, or one of the runtimes' own. Returns `None` if there is none and the agent
/// is to run.
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
       node-agent sweep --runtime docker [--docker-cluster NAME] [--docker-socket PATH] [--on-stop]
       node-agent sweep --runtime cri --node-name NAME [--cri-endpoint ENDPOINT] [--cri-network routes]
           [--cri-cni-conf-dir DIRECTORY] [--cri-bridge NAME] [--on-stop]";

/// Arguments of `sweep`.
#[derive(Debug, PartialEq)]
struct Sweep {
    containers: Containers,
    /// Wait for SIGTERM or SIGINT first.
    on_stop: bool,
}

/// The containers to remove.
#[derive(Debug, PartialEq)]
enum Containers {
    /// Those of a state directory of the process runtime.
    Process(PathBuf),
    /// Those of a cluster on a Docker engine; empty for that of the agent itself.
    Docker {
        socket: Option<PathBuf>,
        cluster: String,
    },
    /// Those of a node on a runtime that serves the CRI.
    Cri {
        settings: Box<cri::Settings>,
        node: String,
    },
}

/// The words of the command line, by what they say.
#[derive(Default)]
struct Words {
    runtime: Option<String>,
    state: Option<PathBuf>,
    socket: Option<PathBuf>,
    cluster: Option<String>,
    cri: cri::Settings,
    node: Option<String>,
    on_stop: bool,
}

impl Words {
    fn parse(args: &[OsString]) -> Option<Self> {
        let mut parsed = Self::default();
        let words = args.iter().map(|word| word.to_str());
        let words = words.collect::<Option<Vec<_>>>()?;
        // Accept both `--flag value` and `--flag=value`.
        let mut words = words.iter().flat_map(|word| match word.split_once('=') {
            Some((flag, value)) if flag.starts_with('-') => vec![flag, value],
            _ => vec![*word],
        });
        while let Some(word) = words.next() {
            match word {
                "--on-stop" => parsed.on_stop = true,
                "--runtime" => parsed.runtime = Some(words.next()?.to_owned()),
                "--docker-cluster" => parsed.cluster = Some(words.next()?.to_owned()),
                "--docker-socket" => parsed.socket = Some(words.next()?.into()),
                "--cri-endpoint" => words.next()?.clone_into(&mut parsed.cri.endpoint),
                "--cri-network" => parsed.cri.network = network(words.next()?)?,
                "--cri-cni-conf-dir" => parsed.cri.cni_conf_dir = words.next()?.into(),
                "--cri-bridge" => words.next()?.clone_into(&mut parsed.cri.bridge),
                "--node-name" => parsed.node = Some(words.next()?.to_owned()),
                flag if flag.starts_with('-') => return None,
                state => parsed.state = Some(state.into()),
            }
        }
        Some(parsed)
    }
}

fn network(name: &str) -> Option<cri::Network> {
    match name {
        "cni" => Some(cri::Network::Cni),
        "routes" => Some(cri::Network::Routes),
        _ => None,
    }
}

impl Sweep {
    fn parse(args: &[OsString]) -> Option<Self> {
        let Words {
            runtime,
            state,
            socket,
            cluster,
            cri,
            node,
            on_stop,
        } = Words::parse(args)?;
        let containers = match (runtime.as_deref(), state) {
            (None, Some(state)) => Containers::Process(state),
            (Some("docker"), None) => Containers::Docker {
                socket,
                cluster: cluster.unwrap_or_default(),
            },
            (Some("cri"), None) => Containers::Cri {
                settings: Box::new(cri),
                node: node.filter(|node| !node.is_empty())?,
            },
            _ => return None,
        };
        Some(Self {
            containers,
            on_stop,
        })
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
    match &wanted.containers {
        Containers::Process(state) => {
            let swept = sweep(state, SWEEP_GRACE).await;
            swept.map_err(|error| format!("{}: {error}", state.display()))
        }
        Containers::Docker { socket, cluster } => sweep_engine(socket.as_ref(), cluster).await,
        Containers::Cri { settings, node } => {
            let swept = cri::sweep(settings, node).await;
            swept.map_err(|error| error.to_string())
        }
    }
}

async fn sweep_engine(socket: Option<&PathBuf>, cluster: &str) -> Result<usize, String> {
    let mut settings = docker::Settings::default();
    settings.socket = socket.cloned().unwrap_or(settings.socket);
    let swept = async {
        let cluster = match cluster {
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
    fn a_sweep_takes_a_state_directory_an_engine_or_the_node_of_a_runtime() {
        let state = Containers::Process("/state".into());
        assert_eq!(parse("/state").unwrap().containers, state);
        let engine = parse("--on-stop --runtime docker --docker-cluster shop").unwrap();
        let shop = Containers::Docker {
            socket: None,
            cluster: "shop".into(),
        };
        assert_eq!((&engine.containers, engine.on_stop), (&shop, true));
        let line = "--on-stop --runtime=docker --docker-cluster=shop";
        assert_eq!(parse(line), Some(engine));
        let line = "--runtime cri --node-name a --cri-endpoint=unix:///c.sock --cri-network routes \
            --cri-cni-conf-dir /cni";
        let node = Containers::Cri {
            settings: Box::new(cri::Settings {
                endpoint: "unix:///c.sock".into(),
                network: cri::Network::Routes,
                cni_conf_dir: "/cni".into(),
                ..cri::Settings::default()
            }),
            node: "a".into(),
        };
        assert_eq!(parse(line).unwrap().containers, node);
        for wrong in [
            "",
            "--runtime docker /state",
            "--runtime docker --all",
            "--runtime cri",
            "--runtime cri --node-name=",
            "--runtime cri --node-name a --cri-network other",
            "--runtime cri --node-name a /state",
            "--runtime other",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
