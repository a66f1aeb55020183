//! The cluster of `compose.yaml`, unmodified, driven from outside with Compose and kubectl.

mod file;
mod project;
mod story;
