//! All tests of the service-cidrs-controller: one binary, since each links a whole gateway.

mod decisions;
mod running;
