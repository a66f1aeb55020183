//! `setpoint` on a whole cluster of real processes.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod agent_machine;
mod backup;
mod certificates;
mod chaos;
mod control_plane;
mod harness;
mod join;
mod leaders;
mod lifecycle;
mod machine;
mod other_machines;
mod pause;
mod proxy;
mod refusals;
mod size;
mod watch;
