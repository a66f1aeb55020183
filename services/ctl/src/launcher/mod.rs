//! Starts the processes of a local cluster; for the commands of `setpoint`, and for tests.
//!
//! A [`ClusterSpec`] and a [`StateDir`] determine the [`ProcessSpec`] of each process ([`topology`]); [`command`] makes
//! a command of one. The commands of `setpoint` record the processes that they start, and find them again as
//! [`RunningProcess`]es.

mod cluster_spec;
mod launch;
pub mod port;
mod process;
mod state_dir;
pub mod topology;

pub use cluster_spec::{ClusterSpec, Profile, address, election};
pub use launch::{Started, command, program, start, sweep};
pub use process::{RunningProcess, STOP_TIMEOUT};
pub use state_dir::StateDir;
pub use topology::ProcessSpec;
