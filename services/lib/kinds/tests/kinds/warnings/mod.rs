//! The warnings about valid objects. Their texts are those of Kubernetes 1.36.

mod admission;
mod definitions;
mod endpoints;
mod network;
mod nodes;
mod pods;
mod ports;
mod projections;
mod secrets;
mod services;
mod storage;
mod templates;

use setpoint_kinds::{create, update};

use crate::cases::changed;
use crate::table::Base;

/// A change of the base, and the expected warnings.
pub type Creation = (&'static str, &'static [&'static str]);
/// A change of the stored base, which is not validated, one of the update, and the expected warnings.
pub type Change = (&'static str, &'static str, &'static [&'static str]);

impl Base {
    /// Checks the warnings of creates, with each of the changes.
    pub fn warned(&self, cases: &[Creation]) {
        let wrong = cases.iter().filter_map(|(change, expected)| {
            let created = self.created_object(&changed(&self.object, change));
            let found = created
                .map(|(target, object)| create::warnings(&target, &*object))
                .map_err(|error| error.message);
            differs(change, &found, expected)
        });
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Checks the warnings of updates.
    pub fn warned_of_update(&self, cases: &[Change]) {
        self.warned_of_part("", cases);
    }

    /// Checks the warnings of updates of the status.
    pub fn warned_of_status(&self, cases: &[Change]) {
        self.warned_of_part("status", cases);
    }

    fn warned_of_part(&self, part: &str, cases: &[Change]) {
        let base = self.create(&self.object).expect("the base is valid");
        let wrong = cases.iter().filter_map(|(before, change, expected)| {
            let stored = changed(&base, before);
            let updated = self.updated_object(part, &stored, &changed(&stored, change));
            let found = updated
                .map(|one| update::warnings(&one.target, &*one.old, &*one.new))
                .map_err(|error| error.message);
            differs(&format!("{before} → {change}"), &found, expected)
        });
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Returns how the warnings differ from the expected ones, if they do.
fn differs(change: &str, found: &Result<Vec<String>, String>, expected: &[&str]) -> Option<String> {
    let is_right = found.as_ref().is_ok_and(|found| found == expected);
    (!is_right).then(|| format!("{change}\n    expected {expected:#?}\n    found    {found:#?}"))
}
