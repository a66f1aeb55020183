//! All tests of the node-ipam-controller: one binary, since each links a whole gateway.

mod decisions;
mod running;
mod settings;
mod simulation;
