//! The services of the agent: the gRPC service of its containers, and the kubelet's pages of statistics.

pub mod service;
pub mod stats;
