//! The hooks of kinds with a spec of users and a status of controllers, which are written separately.

/// The items of [`StoredKind`](super::StoredKind) that restore the status in a write of the whole object, and the spec
/// in one of the status. `counted`: without those that compare or restore the spec; `uncounted`: also without
/// generations.
macro_rules! status_items {
    () => {
        crate::status::status_items!(counted);

        fn prepare_status_update(&mut self, old: &Self) {
            self.spec.clone_from(&old.spec);
        }

        fn intent_changed(&self, old: &Self) -> bool {
            self.spec != old.spec
        }
    };
    (counted) => {
        const COUNTS_GENERATIONS: bool = true;

        crate::status::status_items!(uncounted);
    };
    (uncounted) => {
        fn prepare_create(&mut self) {
            self.status = Default::default();
        }

        fn prepare_update(&mut self, old: &Self) {
            self.status.clone_from(&old.status);
        }
    };
}
pub(super) use status_items;
