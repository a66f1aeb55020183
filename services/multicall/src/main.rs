//! All services and the `setpoint` command in one program: it is the one under whose name it is called, as BusyBox.
//!
//! Processes of one program have its code in memory once, and what the services have in common is optimised and linked
//! once. `multicall install <folder>` makes the names, which are hard links to the program.
//!
//! 2026-11: we chose one program over a binary for each service, because `deploy/up` and the images link one instead of
//! eight, and processes of one machine share its pages. Wrong if services are to be updated one at a time, as with
//! images of different builds.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

/// `EX_USAGE` of sysexits.h.
const USAGE: u8 = 64;

type Main = fn() -> ExitCode;

/// The names, and the `main` of each.
const PROGRAMS: [(&str, Main); 10] = [
    ("gateway", setpoint_gateway::main),
    ("deployment-controller", || {
        setpoint_deployment_controller::CONTROLLER.run_process()
    }),
    ("replicaset-controller", || {
        setpoint_replicaset_controller::CONTROLLER.run_process()
    }),
    ("scheduler", setpoint_scheduler::main),
    ("controller-manager", setpoint_controller_manager::main),
    ("dns", setpoint_dns::main),
    ("node-agent", setpoint_node_agent::main),
    ("proxy", setpoint_proxy::main),
    ("setpoint", setpoint_ctl::main),
    // `kubectl setpoint`.
    ("kubectl-setpoint", setpoint_ctl::main),
];

/// The name of the file counts first: a process can show any text as its argument 0, as a placeholder shows the name of
/// an image.
fn main() -> ExitCode {
    match named(env::current_exe().ok()).or_else(|| named(env::args_os().next().map(PathBuf::from)))
    {
        Some(main) => main(),
        None => multicall(),
    }
}

/// Returns the `main` of the program at `path`, which may be that of a running program whose file was replaced.
fn named(path: Option<PathBuf>) -> Option<Main> {
    let path = path?;
    let called = path.file_name()?.to_str()?;
    let called = called.strip_suffix(" (deleted)").unwrap_or(called);
    let found = PROGRAMS.iter().find(|(name, _)| called == *name);
    found.map(|(_, main)| *main)
}

/// Runs the program under its own name.
fn multicall() -> ExitCode {
    let args: Vec<_> = env::args_os().skip(1).collect();
    let outcome = match args.as_slice() {
        [command, folder] if command == "install" => install(folder),
        _ => {
            let names = PROGRAMS.map(|(name, _)| name).join(", ");
            eprintln!(
                "usage: multicall install <folder>\nCalled by one of these names, it is that program: {names}"
            );
            return ExitCode::from(USAGE);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("multicall: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Links each name in `folder`, which must be on the file system of the program, to the program.
fn install(folder: &OsStr) -> io::Result<()> {
    let program = env::current_exe()?;
    for (name, _) in PROGRAMS {
        let link = Path::new(folder).join(name);
        match fs::remove_file(&link) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::hard_link(&program, &link)?,
        }
    }
    Ok(())
}
