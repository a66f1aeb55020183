//! Tests of the validation of each kind. The expected reasons and fields are those of Kubernetes 1.36.

mod apps;
mod containers;
mod metadata;
mod node;
mod placement;
mod plain;
mod pod;
mod pod_changes;
mod pod_status;
mod rbac;
mod service;
mod status;
mod storage;
mod subresources;
mod system;
mod table;
mod volumes;
