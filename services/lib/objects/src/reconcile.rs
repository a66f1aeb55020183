//! One reconcile, as the runtime of controllers makes it.

use setpoint_controller::{Outcome, Reconciler};
use setpoint_proto::{ApiError, Reason};

use crate::{Objects, Stored};

impl Objects {
    /// Executes the plan for a world with `apply`, in order and until an action fails, and then writes the status, if
    /// the object has not changed since it was observed.
    ///
    /// # Panics
    /// If a write is invalid: a plan and a status must be such that the gateway accepts them.
    pub fn reconcile<R: Reconciler<Object: Stored>>(
        &mut self,
        world: &R::World,
        mut apply: impl FnMut(&mut Self, &R::Action) -> Result<(), ApiError>,
    ) -> Outcome<R::Action> {
        let mut outcome = Outcome::of(R::plan(world));
        for step in &outcome.plan.steps {
            match apply(self, &step.action) {
                Ok(()) => outcome.done += 1,
                Err(error) => outcome.failed = Some(error),
            }
            if outcome.failed.is_some() {
                break;
            }
        }
        if let Some(status) = R::status(world, &outcome)
            && let Err(error) = self.update_status_of::<R::Object>(R::meta(world), status)
        {
            outcome.failed.get_or_insert(error);
        }
        let reason = outcome.failed.as_ref().map(|error| error.reason);
        assert_ne!(reason, Some(Reason::Invalid), "{:?}", outcome.failed);
        outcome
    }
}
