//! All tests of the statefulset-controller: one binary, since each links a whole gateway.

mod acts;
mod decisions;
