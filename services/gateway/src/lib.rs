//! The API server over etcd: gRPC for controllers and REST for kubectl, on one port.
//!
//! # Several gateways
//!
//! Gateways keep no state of their own, so any number may run over one etcd (`setpoint up --gateways 2`; two in
//! compose.yaml, behind haproxy for kubectl). Controllers, the scheduler and node agents are given all of them:
//! `--gateway-address http://127.0.0.1:6443,http://127.0.0.1:6444`, or a name with several addresses. A client has one
//! connection and leaves it when the gateway stops or dies, when nothing was received for 5 s + 5 s (pings on both
//! ends), or when the gateway says that it is not ready and another one is. Its watches go on, at whichever gateway,
//! from the revision that they had reached: a gateway that is behind waits until it has it, so that no client sees an
//! older state than before.
//!
//! * Every five minutes (`cache_check`), and whenever it was without etcd for a while, a gateway compares the keys and
//!   revisions of its cache with etcd's, and reads everything again where they differ, as after a backup was restored.
//!   If its watch of etcd is open but does not deliver a revision within five seconds, it begins the watch again; until
//!   it has caught up it is not ready, and consistent reads are answered by etcd.
//! * Each write has an identity in its envelope (a deletion: in the key `/setpoint/farewell`, which the next one
//!   overwrites). If etcd's answer to a write is lost, the gateway looks for that identity in the history of the key.
//!   What the history does not decide is answered with 504: the write may have been made, and is not made again.
//! * What a gateway decides because of what is in its cache commits only if that still stands, in the same etcd
//!   transaction: addresses of Services are unique over all gateways, no quota is exceeded, and nothing is created in a
//!   namespace that another gateway has just ended.
//! * A client that reads nothing of what is sent to it for 30 s (`stall`) is disconnected and counted.
//! * The key that signs tokens of ServiceAccounts is in etcd, at `/setpoint/token-key`: the first gateway that needs it
//!   creates it, so each gateway accepts the tokens of the others. When its time is over
//!   (`authentication.token_key_lifetime`), the gateway that issues the next token replaces it, and lists all keys at
//!   `/setpoint/token-keys`, where the others find those whose tokens they do not know. A gateway that finds the key
//!   missing writes the one that it knows again, and one that finds another follows it and still accepts the tokens of
//!   the former: only a restart of all gateways after the deletion of both invalidates all tokens.
//!
//! # Decisions
//!
//! * 2026-11: we chose loops in every gateway, whose writes agree, over an elected one, because what they keep
//!   (definitions, the Service `kubernetes`, documents of other servers) each gateway needs itself. Wrong if one of
//!   them does much work that the others repeat: such loops are controllers, as that of quotas became one.

mod admission;
mod agents;
mod aggregation;
mod audit;
mod background;
mod cached;
mod computed;
mod converter;
mod dial_policy;
mod errors;
pub mod explain;
mod grpc;
mod http;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod in_process;
mod kubeconfig;
mod metrics;
mod offload;
mod outbound;
mod prometheus_adapter;
pub mod registry;
mod request;
mod request_context;
mod reviews;
mod router;
mod server_info;
mod service_ranges;
mod settings;
mod settings_file;
mod start;
mod usage;
pub mod verbs;
mod warnings;
mod webhook;
mod write;

pub use admission::Selection as AdmissionPlugins;
pub use dial_policy::DialPolicy;
pub use prometheus_adapter::{Adapter, CustomRule, ExternalRule, Settings as AdapterSettings};
pub use request::authentication::{
    Configuration as AuthenticationConfiguration, Options as AuthenticationOptions, StaticTokens,
    TokenWebhook,
};
pub use request::authorization::{
    Configuration as AuthorizationConfiguration, Mode as AuthorizationMode,
};
pub use router::router;
pub use server_info::ServerInfo;
pub use setpoint_pod_security::Configuration as PodSecurityConfiguration;
pub use settings::Settings;
pub use start::start;

/// Runs the gateway's process.
#[tokio::main]
pub async fn main() -> std::process::ExitCode {
    setpoint_host::run("gateway", start).await
}
