//! All tests of the podgc-controller: one binary, since each links a whole gateway.

mod acts;
mod decisions;
