//! Waiting for a condition.

use std::time::{Duration, Instant};

use crate::cluster::check_refused;

/// Time limit for every condition; generous because the machine may be busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
pub(crate) const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(400);

/// Calls `holds` until it returns `Ok`, and returns that value. Each pause is a quarter longer than the one before, as
/// most calls start kubectl, which takes CPU from the cluster.
///
/// # Panics
/// After a minute, with the last error of `holds`.
pub fn eventually<T>(what: &str, mut holds: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    let mut pause = PAUSE;
    loop {
        match holds() {
            Ok(value) => return value,
            Err(why) => assert!(
                start.elapsed() < DEADLINE,
                "not within {DEADLINE:?}: {what}: {why}"
            ),
        }
        check_refused();
        std::thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 5 / 4);
    }
}
