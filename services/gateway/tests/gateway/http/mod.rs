//! The REST API of a gateway over the in-memory store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admission;
mod aggregation;
pub mod api;
mod apply;
mod audit;
mod authentication;
mod authorization;
mod body;
mod cluster_info;
mod compression;
mod containers;
mod custom;
mod custom_conversion;
mod custom_lifecycle;
mod custom_openapi;
mod custom_table;
mod descriptions;
mod discovery;
mod encryption;
mod form;
mod https;
mod isolation;
mod metrics;
mod mutating_policies;
mod openapi;
mod patch;
mod pod_security;
mod policies;
mod prometheus_adapter;
mod read;
mod reviews;
mod service_ranges;
mod streams;
mod telemetry;
mod unreadable;
mod versions;
mod warnings;
mod watch;
mod watch_socket;
mod webhook;
mod write;
