//! The whole cluster, end to end: real etcd, real processes, real kubectl.

mod busy;
mod clock;
mod docker;
mod engine;
mod events;
mod failover;
mod faults;
mod fencing;
mod flaps;
mod history;
mod logs;
mod main_job;
mod metrics;
mod mistakes;
mod nodes;
mod panics;
mod pulls;
mod rejected;
mod replicas;
mod rolling;
mod scheduling;
mod sets;
mod succession;
mod trace;
mod web;
mod why;
