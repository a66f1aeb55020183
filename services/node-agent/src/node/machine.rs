//! What the machine says about itself.

use std::fs;

use nix::sys::statvfs::statvfs;

/// The machine that this process runs on. What cannot be found out is empty.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// CPUs, as a quantity.
    pub cpu: String,
    /// Memory, as a quantity.
    pub memory: String,
    /// The disk that containers write to, as a quantity.
    pub storage: String,
    /// Survives reboots.
    pub id: String,
    /// Does not.
    pub boot_id: String,
    /// The release of its kernel.
    pub kernel: String,
    /// The name of its distribution.
    pub os_image: String,
}

impl Machine {
    /// Asks the machine.
    pub fn read() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let meminfo = read("/proc/meminfo");
        let total = meminfo
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"));
        let kilobytes = total.and_then(|total| total.split_whitespace().next());
        Self {
            cpu: cpus.to_string(),
            memory: format!("{}Ki", kilobytes.unwrap_or("0")),
            storage: storage(),
            id: read("/etc/machine-id"),
            boot_id: read("/proc/sys/kernel/random/boot_id"),
            kernel: read("/proc/sys/kernel/osrelease"),
            os_image: os_image(&read("/etc/os-release")),
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The size of the file system that the process is in; of the engine's, if it is in a container.
fn storage() -> String {
    let bytes = statvfs(".").map_or(0, |stat| stat.blocks().saturating_mul(stat.fragment_size()));
    format!("{}Ki", bytes / 1024)
}

fn os_image(release: &str) -> String {
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or("Linux", |name| name.trim_matches('"'))
        .to_owned()
}

/// The machine's architecture as Go names it.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_knows_its_size() {
        let machine = Machine::read();
        assert!(machine.cpu.parse::<usize>().unwrap() > 0);
        for size in [machine.memory, machine.storage] {
            assert!(size.ends_with("Ki") && size != "0Ki", "{size}");
        }
    }

    #[test]
    fn the_distribution_is_named_as_it_names_itself() {
        assert_eq!(
            os_image("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"),
            "Debian GNU/Linux 12"
        );
        assert_eq!(os_image(""), "Linux");
    }
}
