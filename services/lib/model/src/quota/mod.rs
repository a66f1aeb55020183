//! Quotas: the resources that objects use, and the objects that a quota counts (upstream: the evaluators of
//! `pkg/quota`).
//!
//! The gateway charges a write by these functions, and the resourcequota-controller counts what exists by the same
//! ones.

mod scope;
mod usage;

pub use scope::{
    ATTRIBUTES_CLASS, BEST_EFFORT, CROSS_NAMESPACE, NOT_BEST_EFFORT, NOT_TERMINATING,
    PRIORITY_CLASS, TERMINATING, attributes_classes, claim_matches, has_scopes, is_terminating,
    pod_matches,
};
pub use usage::{
    is_measured, number_of, of_claim, of_lists, of_other, of_pod, of_resource_claim, of_service,
    overdue_at, tracks,
};
