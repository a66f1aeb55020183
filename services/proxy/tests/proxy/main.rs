//! Tests of what the proxy programs: as data, as text, and with packets.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod answered;
mod contract;
mod deltas;
mod ending;
mod health;
mod machine;
mod netlink;
mod network_policies;
mod objects;
mod policies;
mod routes;
mod scripts;
mod site_traffic;
mod sites;
mod supervisor;
mod traffic;
mod userspace;
mod world;
