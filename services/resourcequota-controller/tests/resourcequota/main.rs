//! All tests of the resourcequota-controller: one binary, since each links a whole gateway.

mod counting;
mod decisions;
