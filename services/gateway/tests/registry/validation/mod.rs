//! What each kind accepts, held against Kubernetes 1.36: the same values are refused at the same fields for the same
//! reasons, and the others are accepted.

mod apps;
mod containers;
mod metadata;
mod node;
mod placement;
mod plain;
mod pod;
mod pod_changes;
mod pod_status;
mod service;
mod status;
mod storage;
mod subresources;
mod system;
mod table;
mod volumes;
