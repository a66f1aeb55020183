//! The certificates of an agent that nobody gives it: it asks for them by CertificateSigningRequests.
//!
//! ```text
//! token ─▶ client certificate ─▶ registers its Node ─▶ serving certificate ─▶ serves gateways
//!          (once: join)          └────────── both renewed by itself: keeper ──────────┘
//! ```
//! The first request is one of a bootstrap token, which is for one node and one use. From then on the agent is its
//! node, and the token's file is gone. The gateway is verified by the pinned CA of the cluster from the first byte on;
//! until there is a serving certificate, no handshake with the agent succeeds. A change of the CA is followed
//! (`authorities`).
//!
//! # Decisions
//!
//! * 2026-11: an agent whose Node was deleted says so and ends, as its certificate is refused for good: we chose that
//!   over waiting, since a new Node of that name needs a new token, and a process that does nothing looks alive. Its
//!   containers go on, as at each end of an agent. Wrong if a process manager restarts agents without a limit.
//! * 2026-11: renewals begin after 70 to 75 % of the life of a certificate, over the kubelet's 70 to 90 %: from 75 %
//!   on, each process of Setpoint reports a certificate that is about to expire and was not renewed.

mod authorities;
mod directory;
mod join;
mod keeper;
mod request;
mod settings;

pub use join::identity;
pub use keeper::Keeper;
pub use settings::Settings;
