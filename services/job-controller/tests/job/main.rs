//! All tests of the job-controller: one binary, since each links a whole gateway.

mod acts;
mod decisions;
