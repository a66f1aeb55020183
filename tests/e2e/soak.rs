//! A short soak: all controllers at once, with random actions and faults.

use std::process::Command;

/// Checks D1 and J1, and that nothing is doubled, left over or out of the caches.
#[test]
fn all_controllers_come_to_rest_after_random_actions_and_faults() {
    let report = tempfile::NamedTempFile::new().expect("a temporary file");
    let output = Command::new(env!("CARGO_BIN_EXE_soak"))
        .args(["--seconds", "40", "--nodes", "20", "--seed", "1"])
        .args(["--fault-interval", "4", "--settle", "150", "--output"])
        .arg(report.path())
        .output()
        .expect("it was built");
    let (said, course) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{course}\n{said}");
}
