//! The Pod security standards of Kubernetes 1.36, without I/O (upstream: `k8s.io/pod-security-admission`).
//!
//! A [`Policy`] says which [`Level`] of which [`Version`] the Pods of a namespace must keep to (`enforce`), of which
//! violations are recorded (`audit`), and of which their users are warned (`warn`). It is read from the labels of the
//! namespace, over the defaults of a [`Configuration`]. [`evaluate`] compares a Pod with a level of a version: each
//! check of upstream is one of [`checks`], with its revisions, and sees the containers of all three lists.

pub mod checks;
mod configuration;
mod containers;
mod evaluation;
mod level;
mod policy;
mod version;
mod violation;
mod wording;

pub use configuration::{Configuration, Exemptions};
pub use evaluation::evaluate;
pub use level::{Level, LevelVersion};
pub use policy::{InvalidLabel, Mode, Policy};
pub use version::Version;
pub use violation::{Violation, Violations};
