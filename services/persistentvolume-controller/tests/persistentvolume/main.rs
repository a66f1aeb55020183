//! All tests of the persistentvolume-controller: one binary, since each links a whole gateway.

mod cluster;
mod decisions;
mod properties;
