//! The contract between Setpoint's services, and with Kubernetes' tools: messages, services and errors.
//!
//! Messages have the field numbers of Kubernetes and serialize to its JSON. They are generated from the `.proto` files
//! of this crate, whose options also have all rules that are not types (see [`DESCRIPTORS`]).

mod any;
mod duration;
mod error;
mod json_schema;
mod lenient;
mod number;
mod object;
pub mod quantity;
mod time;
pub mod trace;
mod watch;
mod wellknown;
mod why;

#[allow(missing_docs, clippy::all)]
mod messages {
    include!(concat!(env!("OUT_DIR"), "/messages.rs"));
}
#[allow(missing_docs, clippy::all)]
mod openapi {
    include!(concat!(env!("OUT_DIR"), "/openapi.rs"));
}
#[allow(missing_docs)]
mod kinds {
    include!(concat!(env!("OUT_DIR"), "/kinds.rs"));
}

pub use any::Any;
pub use error::{
    ApiError, FENCED, NAMESPACE_TERMINATING, NOT_TRANSFORMABLE, Reason, Retry, StatusOverride,
};
pub use kinds::SCALARS;
#[doc(hidden)]
pub use messages::k8s;
pub use messages::k8s::admissionregistration::v1 as admissionregistration;
pub use messages::k8s::apidiscovery::v2 as apidiscovery;
pub use messages::k8s::apiextensions::v1 as apiextensions;
pub use messages::k8s::apiregistration::v1 as apiregistration;
pub use messages::k8s::apps::v1 as apps;
pub use messages::k8s::authentication::v1 as authentication;
pub use messages::k8s::authorization::v1 as authorization;
pub use messages::k8s::autoscaling::v1 as autoscaling;
pub use messages::k8s::autoscaling::v2 as autoscaling_v2;
pub use messages::k8s::batch::v1 as batch;
pub use messages::k8s::certificates::v1 as certificates;
pub use messages::k8s::coordination::v1 as coordination;
pub use messages::k8s::core::v1 as core;
pub use messages::k8s::custom_metrics::v1beta1 as custom_metrics_v1beta1;
pub use messages::k8s::custom_metrics::v1beta2 as custom_metrics;
pub use messages::k8s::discovery::v1 as discovery;
pub use messages::k8s::events::v1 as events;
pub use messages::k8s::external_metrics::v1beta1 as external_metrics;
pub use messages::k8s::flowcontrol::v1 as flowcontrol;
pub use messages::k8s::meta::v1 as meta;
pub use messages::k8s::metrics::v1beta1 as metrics;
pub use messages::k8s::networking::v1 as networking;
pub use messages::k8s::node::v1 as node;
pub use messages::k8s::policy::v1 as policy;
pub use messages::k8s::rbac::v1 as rbac;
pub use messages::k8s::resource::v1 as resource;
pub use messages::k8s::runtime;
pub use messages::k8s::scheduling::v1 as scheduling;
pub use messages::k8s::storage::v1 as storage;
pub use messages::setpoint::v1 as setpoint;
pub use messages::setpoint::v1::Cause;
pub use object::{Body, Resource};
pub use openapi::openapi::v2 as openapi_v2;
pub use trace::{TraceContext, Traceparent};
pub use watch::{EventType, WatchEvent};

/// The options of fields and kinds in [`DESCRIPTORS`].
pub mod options {
    pub use super::messages::setpoint::{
        Column, FieldRules, GroupRules, KindRules, List, Patch, Scope,
    };
}

/// The compiled `.proto` files with their options, as an encoded `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The comments of Kubernetes' messages and fields, which OpenAPI documents have as descriptions: lines of a full name,
/// a tab and the text, in the order of the names. It is read where it stands, so that it takes no memory of its own.
pub const COMMENTS: &str = include_str!(concat!(env!("OUT_DIR"), "/comments.txt"));

/// [`DESCRIPTORS`] with the comments of the files, for server reflection. Decoded, they are several times as large.
pub const COMMENTED_DESCRIPTORS: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/commented_descriptors.bin"));

/// The metadata key of the fence of a write, `<namespace>/<lease>/<term>`.
pub const FENCE: &str = "setpoint-fence";

/// The header with the name of the node that a request to a page of its agent is about: one agent may serve many nodes.
pub const NODE_HEADER: &str = "setpoint-node";

/// The pages of HTTP that an agent serves only to gateways.
pub const AGENT_PAGES: [&str; 2] = ["/stats/summary", "/metrics/resource"];
