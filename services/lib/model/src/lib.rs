//! The semantics of API objects, without I/O: keys, selectors, quantities, owners, conditions.
//!
//! All functions are pure; those that depend on the time take it as an argument. The exception is the loopback range of
//! endpoints ([`ip::allow_loopback_endpoints`]), which a process sets once, from its settings.

pub mod amounts;
pub mod bootstrap_token;
mod cidr;
pub mod condition;
pub mod cron;
pub mod endpointslice;
mod fence;
pub mod hash;
mod host_port;
pub mod ip;
mod key;
pub mod labels;
pub mod legacy_token;
mod meta;
pub mod names;
pub mod owner;
pub mod percent;
pub mod placement;
pub mod pod;
pub mod pod_references;
mod qos;
pub mod quantity;
pub mod quota;
pub mod replicas;
pub mod resource_name;
mod resources;
mod revision;
pub mod selector;
mod target;
pub mod template;
pub mod time;
pub mod users;
mod verb;
pub mod version;
pub mod volume;

pub use cidr::Cidr;
pub use fence::{Fence, Malformed};
pub use host_port::HostPort;
pub use key::Key;
pub use labels::Labels;
pub use meta::Meta;
pub use owner::Owner;
pub use qos::qos_class;
pub use resources::Resources;
pub use revision::Revision;
pub use selector::Selector;
pub use target::Target;
pub use template::Template;
pub use verb::Verb;
