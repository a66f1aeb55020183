//! All tests of the garbage-collector-controller: one binary, since each links a whole gateway.

mod collection;
mod owner_graph;
