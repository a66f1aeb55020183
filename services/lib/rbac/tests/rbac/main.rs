//! The roles of services and controllers: what they allow, and what `SECURITY.md` says of them.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod allocations;
mod security;
mod services;
