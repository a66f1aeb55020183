//! The resource usage of containers, and the disk space of containers and volumes.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::{ContainerId, ContainerSpace, Space};

/// The resources that a container has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The CPU time since it started.
    pub cpu: Duration,
    /// The memory that it holds, in bytes.
    pub memory: u64,
}

/// The space that Pods hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskUsage {
    /// The space of containers.
    pub containers: HashMap<ContainerId, ContainerSpace>,
    /// The space of the volumes that end with their Pod, by its uid and their name. Volumes in memory are included.
    pub volumes: HashMap<String, BTreeMap<String, Space>>,
}
