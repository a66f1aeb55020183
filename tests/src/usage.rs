//! CPU time and memory of a process, and CPU time of the machine, from /proc.

use std::time::Duration;

/// Returns the CPU time of all threads of a process, user and system.
pub fn cpu(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name may hold spaces; the fields after its closing parenthesis do not.
    let fields = stat.rsplit(") ").next().unwrap_or_default();
    let ticks: u64 = fields
        .split(' ')
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    of_ticks(ticks)
}

/// Returns the time that all processors of the machine have worked, for whatever process.
pub fn machine_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let numbers = stat.lines().next().unwrap_or_default().split_whitespace();
    let numbers: Vec<u64> = numbers.skip(1).filter_map(|one| one.parse().ok()).collect();
    // user, nice, system; then idle and iowait; irq, softirq.
    let worked = numbers.iter().take(3).chain(numbers.iter().skip(5).take(2));
    of_ticks(worked.sum())
}

/// USER_HZ is 100 on every Linux that Rust runs on.
fn of_ticks(ticks: u64) -> Duration {
    Duration::from_millis(ticks.saturating_mul(10))
}

/// Returns the resident memory of a process in bytes.
pub fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    kib(&status, "VmRSS:") * 1024
}

/// Returns the part of the resident memory of a process in bytes that is not of a file, such as a program: heap and
/// stacks.
pub fn anonymous_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    kib(&status, "RssAnon:") * 1024
}

/// Returns the memory of a process in bytes, of which pages that several processes have count as equal shares (PSS).
pub fn proportional_memory(pid: u32) -> u64 {
    let path = format!("/proc/{pid}/smaps_rollup");
    kib(&std::fs::read_to_string(path).unwrap_or_default(), "Pss:") * 1024
}

/// Returns the number of kilobytes in the line of `text` that begins with `name`.
fn kib(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or_default()
}
