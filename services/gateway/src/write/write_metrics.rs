//! The metrics of a write, counted once it is committed.
//!
//! A generation is met by a write of the status, and the time since when it is wanted is stored in the cause. So each
//! generation is observed once, with any number of gateways and across restarts.

use std::time::Duration;

use setpoint_codec::{Kind, Object};
use setpoint_kinds::{self as kinds, Writes};
use setpoint_proto::Cause;

use crate::metrics;
use crate::write::current::Current;

/// The metrics of a write.
pub(crate) struct WriteMetrics {
    kind: &'static Kind,
    /// The depth of the write in its cascade; `None` for heartbeats and reports, which would outnumber the changes.
    depth: Option<u32>,
    /// The time for which its generation has been wanted, if this write meets it.
    met_after: Option<Duration>,
}

impl WriteMetrics {
    /// Computes the metrics of replacing `old` by `new`, and records in `cause` since when the generation has been
    /// wanted.
    pub(crate) fn of(new: &dyn Object, old: Option<&Current>, cause: &mut Cause) -> Self {
        cause.wanted_ns = wanted_since(new, old, cause.written_ns);
        let met = cause.wanted_ns != 0 && kinds::of(new.kind()).is_met(new) == Some(true);
        let met_after = met.then(|| {
            let waited = cause.written_ns - std::mem::take(&mut cause.wanted_ns);
            // Another gateway's clock may be ahead of ours.
            Duration::from_nanos(waited.max(0).unsigned_abs())
        });
        Self {
            met_after,
            ..Self::of_removal(new.kind(), cause)
        }
    }

    /// Computes the metrics of a removal.
    pub(crate) fn of_removal(kind: &'static Kind, cause: &Cause) -> Self {
        let changes = kinds::of(kind).writes() == Writes::Changes;
        Self {
            kind,
            depth: changes.then_some(cause.depth),
            met_after: None,
        }
    }

    /// Counts the write, unless it was a dry run.
    pub(crate) fn count_unless(self, dry_run: bool) {
        if dry_run {
            return;
        }
        if let Some(depth) = self.depth {
            metrics::written(depth);
        }
        if let Some(after) = self.met_after {
            metrics::converged(&self.kind.kind, after);
        }
    }
}

/// Returns since when the generation has been wanted, in nanoseconds since 1970; 0 if it is met or being deleted.
fn wanted_since(new: &dyn Object, old: Option<&Current>, now: i64) -> i64 {
    let can_be_met = kinds::of(new.kind()).is_met(new).is_some();
    if !can_be_met || new.meta().deletion_timestamp.is_some() {
        return 0;
    }
    match old {
        Some(old) if old.object.meta().generation == new.meta().generation => {
            old.cause.as_ref().map_or(0, |cause| cause.wanted_ns)
        }
        _ => now,
    }
}

#[cfg(test)]
mod tests {
    use setpoint_model::Revision;
    use setpoint_proto::apps::Deployment;
    use setpoint_proto::coordination::Lease;
    use setpoint_proto::core::Event;

    use super::*;

    fn deployment(generation: i64, observed: i64, ready: i32) -> Deployment {
        let mut deployment = Deployment::default();
        deployment.metadata.generation = generation;
        deployment.spec.replicas = Some(2);
        deployment.status.observed_generation = observed;
        deployment.status.replicas = 2;
        deployment.status.updated_replicas = 2;
        deployment.status.ready_replicas = ready;
        deployment
    }

    /// Returns the convergence that each write observes, for writes of one object every ten nanoseconds.
    fn history(writes: &[Deployment]) -> Vec<Option<u64>> {
        let mut old = None;
        let mut counted = Vec::new();
        for (at, write) in (0..).step_by(10).skip(1).zip(writes) {
            let mut cause = Cause {
                written_ns: at,
                ..Default::default()
            };
            let metrics = WriteMetrics::of(write, old.as_ref(), &mut cause);
            let nanos = |after: Duration| u64::try_from(after.as_nanos()).unwrap();
            counted.push(metrics.met_after.map(nanos));
            old = Some(Current {
                object: Box::new(write.clone()),
                raw: Default::default(),
                revision: Revision::default(),
                cause: Some(cause),
                is_live: true,
                is_in_old_form: false,
            });
        }
        counted
    }

    #[test]
    fn a_generation_is_observed_once_when_it_is_ready() {
        let observed_after = history(&[
            deployment(1, 0, 0),
            deployment(1, 1, 1),
            deployment(1, 1, 2),
            deployment(1, 1, 1),
            deployment(1, 1, 2),
        ]);
        assert_eq!(observed_after, [None, None, Some(20), None, None]);
    }

    #[test]
    fn a_replaced_generation_is_not_observed() {
        let observed_after = history(&[
            deployment(1, 0, 0),
            deployment(2, 1, 2),
            deployment(2, 1, 2),
            deployment(2, 2, 2),
        ]);
        assert_eq!(observed_after, [None, None, None, Some(20)]);
    }

    #[test]
    fn an_object_that_is_being_deleted_is_not_observed() {
        let mut ending = deployment(1, 1, 2);
        ending.metadata.deletion_timestamp = Some(Default::default());
        assert_eq!(history(&[deployment(1, 0, 0), ending]), [None, None]);
    }

    #[test]
    fn heartbeats_and_reports_have_no_depth() {
        let depth =
            |object: &dyn Object| WriteMetrics::of(object, None, &mut Cause::default()).depth;
        assert_eq!(depth(&Lease::default()), None);
        assert_eq!(depth(&Event::default()), None);
        assert_eq!(depth(&Deployment::default()), Some(0));
    }
}
