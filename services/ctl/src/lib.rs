//! The `setpoint` command: local clusters, and views of a cluster that kubectl does not have.
//!
//! `setpoint up` starts a cluster as background processes of this machine and exits. Their records are files of the state
//! directory: `run/<service>-<n>.pid` and `.port`, `log/<service>-<n>.log`, `etcd/`, `node/`, `kubeconfig`, and, while the
//! cluster runs, its size and ports in `cluster.json`.

mod chaos;
mod cli;
mod connection;
mod converge;
mod down;
mod history;
pub mod launcher;
mod leaders;
mod relay;
mod status;
mod subject;
mod table;
mod time_format;
mod trace;
mod up;
mod why;

pub use cli::Cli;
