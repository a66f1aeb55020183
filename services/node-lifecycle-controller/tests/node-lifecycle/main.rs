//! All tests of the node-lifecycle-controller: one binary, since each links a whole gateway.

mod acts;
mod decisions;
