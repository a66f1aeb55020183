//! Test harness: clusters of real processes over a real etcd, the clients that drive them, and faults between them.

mod address;
mod cli;
mod clock;
mod cluster;
pub mod cri_node;
mod etcd_log;
pub mod http;
mod invariants;
pub mod jaeger;
mod leadership;
mod permission;
mod process;
pub mod trace;
pub mod usage;
mod wait;
mod watchers;
mod writers;

pub use address::Address;
pub use cli::{Kubectl, Output};
pub use clock::WallClock;
pub use cluster::{Cluster, REFUSED, Size, fast_election};
pub use etcd_log::{Entry, EtcdLog, config_map_revisions};
pub use invariants::Rollouts;
pub use leadership::{Handover, LeadershipTerm};
pub use permission::{Permission, WITHOUT};
pub use process::Process;
pub use setpoint_ctl::launcher::{
    election,
    topology::{ELECTED, SERVICES},
};
pub use setpoint_testkit::{Link, free_port};
pub use wait::eventually;
pub use watchers::{Watchers, client};
pub use writers::Writers;
