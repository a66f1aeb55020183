//! The usage of containers that the runtime reports, beside that of their cgroups, which is used where a runtime
//! reports none.

use std::fs;
use std::time::Duration;

use setpoint_runtime::Runtime as _;
use setpoint_runtime::container_cgroup::ContainerCgroup;
use setpoint_runtime::contract::{TIMEOUT, id, pod};
use tokio::time::{sleep, timeout};

use super::fixture::fixture;

/// The bytes that the container holds in a file system in memory, as its script writes them.
const HELD: u64 = 32 << 20;
/// The largest difference of the memory. Version 1 of cgroups adds up pages in batches of each CPU.
const MAX_DIFFERENCE: u64 = 4 << 20;
/// The CPU time between two comparisons.
const STEP: Duration = Duration::from_millis(100);

/// Takes memory that stays, and as much of the page cache, which can be reclaimed and is not to be counted; then only
/// uses CPU time.
const SCRIPT: &str = "dd if=/dev/zero of=/dev/shm/held bs=1M count=32 2>/dev/null; \
    dd if=/dev/zero of=/tmp/cached bs=1M count=32 2>/dev/null; echo ready; while :; do :; done";

#[tokio::test]
async fn the_usage_of_a_container_is_what_its_cgroup_has_counted() {
    let Some(fixture) = fixture().await else {
        return;
    };
    fixture.start(0, &["sh", "-c", SCRIPT]).await;
    assert_eq!(fixture.read_lines(0, 1).await, "ready\n");
    let container = fixture.runtime.sandboxes(&pod())[0].containers[0].clone();
    let cgroup = cgroup_of(&container.runtime_id);
    let mut last = Duration::ZERO;
    for _ in 0..5 {
        until_used(&cgroup, last.saturating_add(STEP)).await;
        let before = cgroup.reading().unwrap();
        let reported = fixture.runtime.readings().await[&id(0)];
        let after = cgroup.reading().unwrap();
        // CPU time never decreases.
        let cpu = before.cpu..=after.cpu;
        assert!(
            cpu.contains(&reported.cpu) && reported.cpu > last,
            "{cpu:?} {reported:?}"
        );
        for counted in [before, after] {
            let difference = counted.memory.abs_diff(reported.memory);
            assert!(difference <= MAX_DIFFERENCE, "{counted:?} {reported:?}");
        }
        assert!(reported.memory >= HELD, "{reported:?}");
        last = reported.cpu;
    }
    fixture.clean_up().await;
}

/// Finds the cgroup of a running container.
fn cgroup_of(runtime_id: &str) -> ContainerCgroup {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let mut is_in = pids.filter(|pid: &i32| {
        // A process may end meanwhile.
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        // CRI-O has a monitor of each container, in a cgroup of its own.
        groups.contains(runtime_id) && !groups.contains("conmon")
    });
    ContainerCgroup::of(is_in.next().unwrap()).unwrap()
}

/// Waits until this much CPU time was used.
async fn until_used(cgroup: &ContainerCgroup, cpu: Duration) {
    let used = async {
        while cgroup.reading().unwrap().cpu < cpu {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, used).await.expect("the container runs");
}
