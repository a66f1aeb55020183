//! The cluster of `compose.yaml`, unmodified, driven from outside with Compose and kubectl.

mod chaos;
mod engine;
mod file;
mod project;
mod scenario;
mod traffic;
