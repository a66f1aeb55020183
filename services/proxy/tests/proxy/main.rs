//! Tests of what the proxy programs: as data, as text, and with packets.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod deltas;
mod machine;
mod objects;
mod policies;
mod scripts;
mod traffic;
