//! `setpoint status`: what runs, and is it ready?

use std::process::ExitCode;

use futures::future::join_all;

use crate::down::everyone;
use crate::folder::Folder;
use crate::member::Running;
use crate::probe;
use crate::roster::Member;

/// One process, as the table shows it.
struct Line {
    name: String,
    pid: String,
    port: String,
    state: Result<&'static str, String>,
}

/// Prints one line a process; fails unless all of them are ready.
pub async fn status(folder: &Folder) -> anyhow::Result<ExitCode> {
    let everyone = everyone(folder);
    let lines = join_all(everyone.iter().flatten().map(|member| look(folder, member))).await;
    println!("{:<26} {:>8} {:>6}  STATE", "NAME", "PID", "PORT");
    for line in &lines {
        let state = line
            .state
            .as_ref()
            .map_or_else(String::as_str, |state| *state);
        println!(
            "{:<26} {:>8} {:>6}  {state}",
            line.name, line.pid, line.port
        );
    }
    match lines.iter().all(|line| line.state.is_ok()) {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

async fn look(folder: &Folder, member: &Member) -> Line {
    let name = member.name.clone();
    let Some(running) = Running::find(folder, &name) else {
        return Line {
            name,
            pid: "-".to_owned(),
            port: "-".to_owned(),
            state: Err("stopped".to_owned()),
        };
    };
    let port = running.port();
    let state = match port {
        Some(port) => probe::ask(port, member.health()).await,
        None => Err("its port is not recorded".to_owned()),
    };
    let state = state
        .map(|()| "ready")
        .map_err(|why| format!("not ready: {why}"));
    let port = port.map_or_else(|| "-".to_owned(), |port| port.to_string());
    Line {
        name,
        pid: running.pid.to_string(),
        port,
        state,
    }
}
