//! PodDisruptionBudget.

use setpoint_proto::policy::PodDisruptionBudget;

use super::StoredKind;

impl StoredKind for PodDisruptionBudget {}
