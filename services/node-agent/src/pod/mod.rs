//! One Pod: its desired and its actual state, the actions that lead from one to the other, and its status.
//!
//! ```text
//! world ─▶ plan ─▶ act ─▶ status ─▶ gateway
//! ```

pub mod act;
pub mod addresses;
pub mod api_server;
pub mod clients;
pub mod cluster_dns;
pub mod container_config;
pub mod demand;
pub mod downward;
pub mod duration;
pub mod ending;
pub mod env_file;
pub mod environment;
pub mod ephemeral;
pub mod events;
pub mod expand;
#[cfg(test)]
pub mod fake;
pub mod fields;
pub mod handler;
pub mod health;
pub mod hooks;
pub mod image_commands;
pub mod oom_score;
pub mod plan;
pub mod pod_resources;
pub mod probe;
pub mod rejection;
pub mod resize;
pub mod restart;
pub mod service_links;
pub mod status;
pub mod sysctls;
pub mod view;
pub mod volumes;
pub mod world;
