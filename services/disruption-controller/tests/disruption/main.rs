//! All tests of the disruption-controller: one binary, since each links a whole gateway.

mod decisions;
mod scales;
