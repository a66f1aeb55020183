//! All tests of the cronjob-controller: one binary, since each links a whole gateway.

mod acts;
mod decisions;
