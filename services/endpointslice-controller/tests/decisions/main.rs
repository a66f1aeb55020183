//! The plan of the endpointslice-controller.

mod cluster;
mod mirrors;
mod properties;
mod slices;
mod topology;
