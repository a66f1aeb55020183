//! All tests of the replicaset-controller: one binary, since each links a whole gateway.

mod acts;
mod decisions;
