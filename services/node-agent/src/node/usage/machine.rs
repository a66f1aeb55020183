//! The CPU time and the start of the machine.

use std::fs;
use std::time::Duration;

use jiff::Timestamp;
use rustix::param::clock_ticks_per_second;

/// Returns the CPU time that all processes of the machine have used since it started.
pub fn cpu_time() -> Option<Duration> {
    of_stat(&fs::read_to_string("/proc/stat").ok()?)
}

/// Returns when the machine started.
pub fn boot_time() -> Option<Timestamp> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    Timestamp::from_second(line.trim().parse().ok()?).ok()
}

/// Sums up the fields `user`, `nice`, `system`, `irq` and `softirq`: all but the time in which nothing ran.
fn of_stat(stat: &str) -> Option<Duration> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Option<Vec<u64>> = line
        .split_whitespace()
        .map(|field| field.parse().ok())
        .collect();
    let fields = fields?;
    let busy = [0, 1, 2, 5, 6].map(|index| fields.get(index).copied().unwrap_or_default());
    let ticks = busy.into_iter().fold(0, u64::saturating_add);
    Some(Duration::from_secs_f64(
        ticks as f64 / clock_ticks_per_second() as f64,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_nothing_ran_does_not_count() {
        let stat = "cpu  100 20 30 1000 200 40 10 5 0 0\ncpu0 1 2 3\nbtime 1700000000\n";
        let seconds = 200.0 / clock_ticks_per_second() as f64;
        assert_eq!(of_stat(stat), Some(Duration::from_secs_f64(seconds)));
        assert_eq!(of_stat("intr 1"), None);
    }

    #[test]
    fn this_machine_has_started_before_and_used_some_time() {
        assert!(boot_time().unwrap() < Timestamp::now());
        assert!(cpu_time().unwrap() > Duration::ZERO);
    }
}
