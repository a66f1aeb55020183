//! The scheduler's decisions: tables of cases for each plugin, plans and preemption, and properties of all plans.

mod filters;
mod hints;
mod inter_pod_affinity;
mod inter_pod_affinity_scores;
mod nominations;
mod plan;
mod preemption;
mod preemption_search;
mod profiles;
mod properties;
mod scores;
mod settings;
mod spread;
mod strategies;
mod volume_limits;
mod volumes;
mod world;
