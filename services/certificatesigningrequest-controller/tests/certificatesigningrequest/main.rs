//! All tests of the certificatesigningrequest-controller: one binary, since each links a whole gateway.

mod certificates;
mod joining;
mod properties;
mod signing;
