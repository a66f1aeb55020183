//! All tests of the namespace-controller: one binary, since each links a whole gateway.

mod decisions;
mod deletion;
