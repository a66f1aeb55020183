//! The cluster of `compose.yaml`, unmodified, driven from outside with Compose and kubectl.

mod chaos;
mod file;
mod project;
mod scenario;
