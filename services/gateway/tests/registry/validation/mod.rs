//! What each kind accepts, held against Kubernetes 1.36: the same values are refused at the same fields for the same
//! reasons, and the others are accepted.

mod apps;
mod metadata;
mod node;
mod placement;
mod plain;
mod pod;
mod service;
mod status;
mod subresources;
mod table;
mod volumes;
