//! The renewals of Leases, counted in those of this replica.

use std::collections::HashMap;

/// The renewals of this replica after which another that did not renew has ended: as long as a Lease lasts.
pub const MISSED: usize = 4;

/// The renewals of this replica since each other's last one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Renewals {
    since: HashMap<String, usize>,
}

impl Renewals {
    /// Counts the renewal of a Lease, of which `own` is that of this replica.
    pub fn renewed(&mut self, lease: &str, own: &str) {
        if lease == own {
            self.since
                .values_mut()
                .for_each(|count| *count = count.saturating_add(1));
        }
        self.since.insert(lease.to_owned(), 0);
    }

    /// Forgets a Lease that was deleted.
    pub fn deleted(&mut self, lease: &str) {
        self.since.remove(lease);
    }

    /// Returns whether a replica is there: its Lease exists, and is still renewed.
    pub fn is_present(&self, lease: &str) -> bool {
        self.since.get(lease).is_some_and(|count| *count < MISSED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_has_ended_after_four_renewals_of_this_one_without_its_own() {
        let mut renewals = Renewals::default();
        renewals.renewed("b", "a");
        for _ in 1..MISSED {
            renewals.renewed("a", "a");
        }
        assert!(renewals.is_present("b"));
        renewals.renewed("a", "a");
        assert!(!renewals.is_present("b") && renewals.is_present("a"));
        renewals.renewed("b", "a");
        assert!(renewals.is_present("b"), "it is back");
        renewals.deleted("b");
        assert!(!renewals.is_present("b"));
    }

    /// While no gateway is there, nobody renews.
    #[test]
    fn time_in_which_this_replica_cannot_renew_does_not_count() {
        let mut renewals = Renewals::default();
        renewals.renewed("b", "a");
        renewals.renewed("a", "a");
        assert!(renewals.is_present("b"));
    }
}
