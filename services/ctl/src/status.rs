//! `setpoint status`: lists the processes of the cluster and whether they are ready.

use std::process::ExitCode;

use futures::future::join_all;

use crate::launcher::{Component, Joined, RunningProcess, StateDir, frozen, readiness, topology};
use crate::style::{Colour, Style};

/// One row of the table.
struct Row {
    name: String,
    pid: String,
    port: String,
    state: Result<&'static str, String>,
    colour: Colour,
}

/// Prints a row for each process. The exit code is a failure unless all are ready.
pub async fn status(state_dir: &StateDir) -> anyhow::Result<ExitCode> {
    let joined = Joined::all(state_dir);
    let has_parts = !Component::all(state_dir)?.is_empty();
    let processes = topology::recorded(state_dir)?.into_iter().flatten();
    // Without a cluster, what has joined another one is all that there is.
    let processes = processes.filter(|_| has_parts || joined.is_empty() || state_dir.has_cluster());
    let joined = joined
        .iter()
        .flat_map(|joined| topology::joined(state_dir, joined));
    let names = processes.chain(joined).map(|process| process.name);
    let mut names: Vec<_> = names.collect();
    let runs = |name: &String| RunningProcess::find(state_dir, name).is_some();
    let others = state_dir.recorded().into_iter().filter(runs);
    let others: Vec<_> = others.filter(|name| !names.contains(name)).collect();
    names.extend(others);
    let rows = join_all(names.into_iter().map(|name| inspect(state_dir, name))).await;
    println!("{:<29} {:>8} {:>6}  STATE", "NAME", "PID", "PORT");
    let style = Style::stdout();
    for row in &rows {
        let state = row
            .state
            .as_ref()
            .map_or_else(String::as_str, |state| *state);
        let state = style.paint(row.colour, state);
        println!("{:<29} {:>8} {:>6}  {state}", row.name, row.pid, row.port);
    }
    match rows.iter().all(|row| row.state.is_ok()) {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

async fn inspect(state_dir: &StateDir, name: String) -> Row {
    let Some(running) = RunningProcess::find(state_dir, &name) else {
        return Row {
            name,
            pid: "-".to_owned(),
            port: "-".to_owned(),
            state: Err("stopped".to_owned()),
            colour: Colour::Yellow,
        };
    };
    let port = running.port();
    let is_frozen = frozen::is_frozen(running.pid);
    let state = match port {
        // It would not answer.
        _ if is_frozen => Err("paused".to_owned()),
        Some(port) => readiness::ask(state_dir, &name, port).await,
        None => Err("unknown: its port is not recorded".to_owned()),
    };
    let port = port.map_or_else(|| "-".to_owned(), |port| port.to_string());
    Row {
        name,
        pid: running.pid.to_string(),
        port,
        colour: match &state {
            Ok(()) => Colour::Green,
            Err(_) if is_frozen => Colour::Yellow,
            Err(_) => Colour::Red,
        },
        state: state.map(|()| "ready"),
    }
}
