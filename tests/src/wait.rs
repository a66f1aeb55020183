//! Waiting for something to become true.

use std::time::{Duration, Instant};

/// How long anything may take on a busy machine before a test gives up.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Looks again and again until `holds` answers `Ok`, and gives that answer back.
///
/// # Panics
/// After a minute, with what `holds` said last.
pub fn eventually<T>(what: &str, mut holds: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match holds() {
            Ok(value) => return value,
            Err(why) => assert!(
                start.elapsed() < DEADLINE,
                "not within {DEADLINE:?}: {what}: {why}"
            ),
        }
        std::thread::sleep(PAUSE);
    }
}
