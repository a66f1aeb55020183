//! Tests of what the proxy programs: as data, as text, and with packets.

mod deltas;
mod machine;
mod objects;
mod policies;
mod scripts;
mod traffic;
