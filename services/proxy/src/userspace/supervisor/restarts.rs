//! Restarts after the end of a child. Pure.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

/// `EX_USAGE` of sysexits.h: the settings are invalid, and a restart does not help.
const USAGE: i32 = 64;
/// The first and the longest wait.
const WAIT: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(10)];
/// The time after which a child is not one that ended soon.
const LONG: Duration = Duration::from_secs(30);

/// The waits between children.
#[derive(Debug)]
pub struct Restarts {
    wait: Duration,
}

impl Default for Restarts {
    fn default() -> Self {
        Self { wait: WAIT[0] }
    }
}

impl Restarts {
    /// Returns the wait until the next child; `None` if there is to be none, after an end by itself that a restart does
    /// not change.
    pub fn after(&mut self, status: ExitStatus, lived: Duration) -> Option<Duration> {
        if matches!(status.code(), Some(0 | USAGE)) {
            return None;
        }
        if lived >= LONG {
            self.wait = WAIT[0];
        }
        let wait = self.wait;
        self.wait = wait.saturating_mul(2).min(WAIT[1]);
        Some(wait)
    }
}

/// Returns the exit code of a process whose child ended so, as a shell has it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| signal.saturating_add(128));
    let code = status.code().or(signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILLED: i32 = 9;

    #[test]
    fn waits_grow_while_children_end_soon() {
        let mut restarts = Restarts::default();
        let mut after = |raw, lived| {
            let wait = restarts.after(ExitStatus::from_raw(raw), Duration::from_secs(lived));
            wait.map(|wait| wait.as_millis())
        };
        let waits: Vec<_> = (0..10).filter_map(|_| after(KILLED, 1)).collect();
        assert_eq!(
            waits,
            [50, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
        );
        assert_eq!(after(1 << 8, 60), Some(50));
        assert_eq!(after(0, 1), None);
        assert_eq!(after(64 << 8, 1), None);
    }

    #[test]
    fn codes_are_those_of_shells() {
        assert_eq!(exit_code(ExitStatus::from_raw(KILLED)), 137);
        assert_eq!(exit_code(ExitStatus::from_raw(64 << 8)), 64);
        assert_eq!(exit_code(ExitStatus::from_raw(0)), 0);
    }
}
