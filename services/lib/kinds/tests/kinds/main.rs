//! Tests of the validation of each kind. The expected reasons, fields and messages are those of Kubernetes 1.36.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admission;
mod api_services;
mod apps;
mod autoscaling;
mod batch;
mod cases;
mod certificates;
mod containers;
mod definitions;
mod described;
mod devices;
mod disruption;
mod endpoints;
mod flowcontrol;
mod messages;
mod metadata;
mod network;
mod node;
mod persistent_volumes;
mod placement;
mod plain;
mod pod;
mod pod_changes;
mod pod_parts;
mod pod_status;
mod quota;
mod rbac;
mod service;
mod status;
mod storage;
mod system;
mod table;
mod volumes;
mod warnings;
mod workloads;
