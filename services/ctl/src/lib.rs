//! The `setpoint` command: local clusters, and views of a cluster that kubectl does not have.
//!
//! `setpoint up` starts a cluster as background processes of this machine and exits. Their records are files of the state
//! directory: `run/<service>-<n>.pid` and `.port`, `log/<service>-<n>.log`, `etcd/`, `node/`, `kubeconfig`, and, while the
//! cluster runs, its size and ports in `cluster.json`.

mod chaos;
mod cli;
mod cluster_spec;
mod connection;
mod converge;
mod down;
mod history;
mod launch;
mod leaders;
mod port;
mod process;
mod relay;
mod state_dir;
mod status;
mod subject;
mod table;
mod time_format;
mod topology;
mod trace;
mod up;
mod why;

pub use cli::Cli;
