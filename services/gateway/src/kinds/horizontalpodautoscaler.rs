//! HorizontalPodAutoscaler.

use setpoint_proto::autoscaling_v2::HorizontalPodAutoscaler;

use super::StoredKind;

impl StoredKind for HorizontalPodAutoscaler {}
