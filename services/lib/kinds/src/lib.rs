//! The stored kinds, one file each: defaults, preparation, validation, and table cells.
//!
//! Names and fields of a kind are in the options of its message. The rest is [`StoredKind`], whose items all have
//! defaults, so that an ordinary kind is an empty impl. A kind without an impl does not compile.
//!
//! Nothing here does I/O or reads other objects: what depends on them is an admission plugin of the gateway.

mod admission;
pub mod age;
pub mod apiservice;
pub mod certificatesigningrequest;
mod configmap;
mod controllerrevision;
pub mod create;
mod cronjob;
mod csidriver;
mod csinode;
mod csistoragecapacity;
pub mod custom;
pub mod customresourcedefinition;
mod daemonset;
pub mod default_class;
pub mod delete;
mod deployment;
mod device;
mod deviceclass;
mod endpoints;
mod endpointslice;
mod event;
pub mod expressions;
pub mod flowcontrol;
mod flowschema;
mod horizontalpodautoscaler;
pub mod identity;
pub mod ingress;
pub mod ingressclass;
mod ipaddress;
mod job;
pub mod json_path;
mod lease;
pub mod limitrange;
mod namespace;
mod networkpolicy;
mod node;
pub mod persistentvolume;
pub mod persistentvolumeclaim;
pub mod pod;
pub mod poddisruptionbudget;
mod podtemplate;
pub mod priorityclass;
mod prioritylevelconfiguration;
mod rbac;
mod replicaset;
mod replicationcontroller;
mod resourceclaim;
mod resourcequota;
mod resourceslice;
mod runtimeclass;
mod secret;
pub mod service;
mod serviceaccount;
pub mod servicecidr;
mod statefulset;
mod status;
pub mod storageclass;
mod stored_kind;
mod strategy;
mod subresource;
mod target;
mod template;
#[cfg(test)]
mod tests;
pub mod update;
pub mod validation;
pub mod versions;
mod volumeattachment;
mod volumeattributesclass;
pub mod waits;

pub use identity::Identity;
pub use stored_kind::{Paths, Replicas, Role, StoredKind, Writes};
pub use strategy::{Strategy, find, of};
pub use subresource::Subresource;
pub use target::Target;
