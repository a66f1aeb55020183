//! `setpoint status`: what runs, and is it ready?

use std::net::Ipv4Addr;
use std::process::ExitCode;

use futures::future::join_all;
use setpoint_host::probe;

use crate::folder::Folder;
use crate::member::Running;
use crate::roster::{health, stages};
use crate::shape::Shape;

/// One process, as the table shows it.
struct Line {
    name: String,
    pid: String,
    port: String,
    state: Result<&'static str, String>,
}

/// Prints one line a process; fails unless all of them are ready.
pub async fn status(folder: &Folder) -> anyhow::Result<ExitCode> {
    let shape = Shape::load(folder)?.unwrap_or_default();
    let members = stages(folder, &shape).into_iter().flatten();
    let mut names: Vec<_> = members.map(|member| member.name).collect();
    let runs = |name: &String| Running::find(folder, name).is_some();
    let others = folder.recorded().into_iter().filter(runs);
    let others: Vec<_> = others.filter(|name| !names.contains(name)).collect();
    names.extend(others);
    let lines = join_all(names.into_iter().map(|name| look(folder, name))).await;
    println!("{:<29} {:>8} {:>6}  STATE", "NAME", "PID", "PORT");
    for line in &lines {
        let state = line
            .state
            .as_ref()
            .map_or_else(String::as_str, |state| *state);
        println!(
            "{:<29} {:>8} {:>6}  {state}",
            line.name, line.pid, line.port
        );
    }
    match lines.iter().all(|line| line.state.is_ok()) {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

async fn look(folder: &Folder, name: String) -> Line {
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
        Some(port) => probe::ask((Ipv4Addr::LOCALHOST, port).into(), health(&name)).await,
        None => Err("cannot be asked: its port is not recorded".to_owned()),
    };
    let port = port.map_or_else(|| "-".to_owned(), |port| port.to_string());
    Line {
        name,
        pid: running.pid.to_string(),
        port,
        state: state.map(|()| "ready"),
    }
}
