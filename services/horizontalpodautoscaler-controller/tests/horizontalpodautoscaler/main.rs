//! All tests of the horizontalpodautoscaler-controller: one binary, since each links a whole gateway.

mod acts;
mod decisions;
