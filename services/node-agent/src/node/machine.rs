//! Properties of the machine.

use std::fs;
use std::path::Path;

use nix::sys::statvfs::statvfs;

/// The machine that this process runs on. Unknown properties are empty.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// CPUs, as a quantity.
    pub cpu: String,
    /// Memory, as a quantity.
    pub memory: String,
    /// Size of the disk that containers write to, as a quantity.
    pub storage: String,
    /// Machine id, which survives reboots.
    pub id: String,
    /// Boot id, which changes with every boot.
    pub boot_id: String,
    /// Kernel release.
    pub kernel: String,
    /// Name of the distribution.
    pub os_image: String,
}

impl Machine {
    /// Reads the properties from `/proc`, `/etc` and the file system of `disk`, a path that need not exist yet.
    pub fn read(disk: &Path) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let meminfo = read("/proc/meminfo");
        let total = meminfo
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"));
        let kilobytes = total.and_then(|total| total.split_whitespace().next());
        Self {
            cpu: cpus.to_string(),
            memory: format!("{}Ki", kilobytes.unwrap_or("0")),
            storage: storage(disk),
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

/// Returns the size of the file system of a path, or of the one that it will be on.
fn storage(disk: &Path) -> String {
    let found = disk.ancestors().find_map(|path| match path.as_os_str() {
        here if here.is_empty() => statvfs(".").ok(),
        _ => statvfs(path).ok(),
    });
    let bytes = found.map_or(0, |stat| stat.blocks().saturating_mul(stat.fragment_size()));
    format!("{}Ki", bytes / 1024)
}

fn os_image(release: &str) -> String {
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or("Linux", |name| name.trim_matches('"'))
        .to_owned()
}

/// Returns the machine's architecture as Go names it.
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
    fn cpus_memory_and_disk_of_the_machine_are_read() {
        let machine = Machine::read(Path::new("none/yet"));
        assert!(machine.cpu.parse::<usize>().unwrap() > 0);
        assert_eq!(machine.storage, storage(Path::new("/proc/self/cwd")));
        for size in [machine.memory, machine.storage] {
            assert!(size.ends_with("Ki") && size != "0Ki", "{size}");
        }
    }

    #[test]
    fn the_os_image_is_the_pretty_name_of_the_distribution() {
        assert_eq!(
            os_image("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"),
            "Debian GNU/Linux 12"
        );
        assert_eq!(os_image(""), "Linux");
    }
}
