//! The REST API of a gateway over the in-memory store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod api;
mod apply;
mod body;
mod compression;
mod discovery;
mod form;
mod openapi;
mod patch;
mod read;
mod reviews;
mod telemetry;
mod views;
mod watch;
mod write;
