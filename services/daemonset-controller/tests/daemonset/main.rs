//! All tests of the daemonset-controller: one binary, since each links a whole gateway.

mod acts;
mod decisions;
