//! Tests in a network namespace of their own.

use std::env;
use std::process::Command;

/// Says that this process is in the namespace.
const INSIDE: &str = "SETPOINT_TEST_NAMESPACE";

/// Runs a program that does not see the namespaces that `ip netns` has named for others, nor the addresses of other
/// clusters.
const ALONE: &str = "mkdir -p /run/netns /run/setpoint && mount -t tmpfs none /run/netns && \
                     mount -t tmpfs none /run/setpoint && exec \"$@\"";

/// Runs a test, whose path is `test`, in a network namespace with a loopback, in which `ip` has set up these lines.
/// `ip netns` and `setpoint up` know only what the test has made itself, since other tests run at the same time.
///
/// Returns whether this is the process in it. If this machine allows no namespaces, says that `what` was not tested.
///
/// # Panics
/// If the test fails there.
pub fn enter_namespace(test: &str, what: &str, lines: &[&str]) -> bool {
    if env::var_os(INSIDE).is_some() {
        for line in ["link set lo up"].iter().chain(lines) {
            let status = Command::new("ip").args(line.split(' ')).status();
            assert!(status.unwrap().success(), "ip {line}");
        }
        return true;
    }
    let trial = Command::new("unshare")
        .args(["--net", "--mount", "nft", "list", "tables"])
        .output();
    if !trial.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: {what} was NOT tested: that takes root, ip and nft");
        return false;
    }
    let program = env::current_exe().unwrap();
    let status = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", ALONE, "sh"])
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "yes")
        .status();
    assert!(
        status.unwrap().success(),
        "the test in the namespace failed"
    );
    false
}
