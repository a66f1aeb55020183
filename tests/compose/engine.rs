//! The container engine: its command, and addresses that it has left.

use std::process::Command;

/// Runs docker.
///
/// # Panics
/// When it fails.
pub fn docker(arguments: &[&str]) -> String {
    try_docker(arguments).unwrap_or_else(|why| panic!("docker {arguments:?}: {why}"))
}

/// Runs docker.
///
/// # Errors
/// Its output, if it fails.
pub fn try_docker(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("docker")
        .args(arguments)
        .output()
        .expect("it ran before");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    match output.status.success() {
        true => Ok(stdout),
        false => Err(stdout + &stderr),
    }
}

/// Runs docker and returns the lines of its output.
pub fn ids(arguments: &[&str]) -> Vec<String> {
    docker(arguments).lines().map(str::to_owned).collect()
}

/// Returns the first two bytes of a range that no network of the engine and no route of this machine has.
pub fn free_prefix() -> String {
    let routes = Command::new("ip").args(["route", "show"]).output();
    let mut used = routes.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    );
    for network in ids(&["network", "ls", "-q"]) {
        let subnets = "{{range .IPAM.Config}}{{.Subnet}} {{end}}";
        // It may be gone by now.
        used += &try_docker(&["network", "inspect", "-f", subnets, &network]).unwrap_or_default();
    }
    let first = std::process::id() % 64;
    let mut prefixes = (0..64).map(|number| format!("10.{}", 150 + (first + number) % 64));
    let free = prefixes.find(|prefix| !used.contains(&format!("{prefix}.")));
    free.expect("one of 64 ranges is free")
}
