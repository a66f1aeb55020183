//! Tests of the cluster's DNS: answers, the index, the server over sockets, and the registration.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod answers;
mod autopath;
mod cluster;
mod index;
mod registration;
mod server;
