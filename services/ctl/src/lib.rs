//! The setpoint command: what kubectl lacks.
//!
//! `setpoint up` starts a cluster as processes of this machine and leaves; the processes stay. What it knows of them
//! is in the state folder: `run/<service>-<n>.pid` and `.port`, `log/<service>-<n>.log`, `etcd/`, `node/`, `kubeconfig`,
//! and while it runs how large it is: `cluster.json`.

mod bring;
mod chaos;
mod cli;
mod columns;
mod down;
mod folder;
mod history;
mod launch;
mod leaders;
mod member;
mod moment;
mod port;
mod reach;
mod relay;
mod roster;
mod shape;
mod status;
mod subject;
mod trace;
mod up;
mod why;

pub use cli::Cli;
