//! The scheduler's decisions: tables of cases for each plugin, plans and preemption, and properties of all plans.

mod filters;
mod hints;
mod inter_pod_affinity;
mod inter_pod_affinity_scores;
mod plan;
mod preemption;
mod properties;
mod scores;
mod spread;
mod volumes;
mod world;
