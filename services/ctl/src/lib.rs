//! The `setpoint` command: local clusters, and views of a cluster that kubectl does not have.
//!
//! `setpoint up` starts a cluster as background processes of this machine and exits. Their records are files of the
//! state directory: `run/<service>-<n>.pid` and `.port`, `log/<service>-<n>.log`, `etcd/`, `node/`, `kubeconfig`, and,
//! while the cluster runs, its size and ports in `cluster.json`. `join/` has the agents that have joined a cluster,
//! this or another one, and `control-plane/` the parts of the control plane of another one.

#[macro_use]
mod output;

mod advice;
mod backup;
mod certs;
mod chaos;
mod cli;
mod completion;
mod connection;
mod containers;
mod control_plane;
mod converge;
mod down;
mod encryption;
mod etcd_options;
mod health;
mod history;
mod join;
mod kubeconfig;
pub mod launcher;
mod leaders;
mod man;
mod members;
mod pause;
mod plugin;
mod relay;
mod restore;
mod rotation;
mod status;
mod stop;
mod style;
mod subject;
mod table;
mod time_format;
mod token;
mod trace;
mod up;
mod why;

use std::process::ExitCode;

/// Runs the command that the arguments name.
#[tokio::main(flavor = "current_thread")]
pub async fn main() -> ExitCode {
    cli::main().await
}
