//! All tests of the deployment-controller: one binary, since each links a whole gateway.

mod acts;
mod decisions;
