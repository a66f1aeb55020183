//! The process runtime: process groups, signals, state files, restarts of the agent, and a full disk.

mod disk_full;
pub mod fixture;
mod hosts;
mod network;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use setpoint_model::hash::fnv32a;
use setpoint_runtime::contract::{
    ALL_OUTPUT, POLL_INTERVAL, TIMEOUT, container, id, pod, sandbox, sandbox_with, uid,
};
use setpoint_runtime::process::{Processes, sweep};
use setpoint_runtime::{LogLimits, LogOptions, Mount, Runtime, Security, State, VolumeKind};

use self::fixture::{OnDisk, PROGRAM, is_alive, on_disk, process_in, wait_until_gone};

#[tokio::test]
async fn a_container_gets_its_environment_and_its_marker() {
    let fixture = on_disk();
    fixture.start(0, &["env"]).await;
    fixture.exited(0).await;
    let log = fixture.file(0, "log");
    let mut lines: Vec<_> = log.lines().collect();
    lines.sort_unstable();
    let mark = format!("SETPOINT_CONTAINER={}", id(0));
    assert_eq!(lines, ["GREETING=hello", "PATH=/usr/bin:/bin", &mark]);
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_a_start_error_that_names_it() {
    let fixture = on_disk();
    fixture.start(0, &["no-such-program"]).await;
    let exit = fixture.exited(0).await;
    assert_eq!((exit.code, exit.reason()), (128, "StartError"));
    assert_eq!(
        exit.message,
        "exec: \"no-such-program\": executable file not found in $PATH"
    );
}

fn is_root() -> bool {
    let root = nix::unistd::Uid::effective().is_root();
    if !root {
        eprintln!("SKIPPED: changing the user requires root");
    }
    root
}

/// Checks F7.
#[tokio::test]
async fn a_container_runs_as_the_requested_user_and_gains_no_privileges() {
    if !is_root() {
        return;
    }
    let fixture = on_disk();
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let script = "grep -E 'Uid|Gid|Groups|CapEff|NoNewPrivs' /proc/self/status";
    let mut config = container(0, &["sh", "-c", script]);
    config.security = Security {
        run_as_user: Some(65534),
        run_as_group: Some(4242),
        run_as_non_root: true,
        supplemental_groups: vec![17, 18],
        no_new_privileges: true,
        ..Security::default()
    };
    fixture.runtime.start(config).await.unwrap();
    fixture.exited(0).await;
    let log = fixture.file(0, "log");
    for expected in [
        "Uid:\t65534\t65534\t65534\t65534\n",
        "Gid:\t4242\t4242\t4242\t4242\n",
        "Groups:\t17 18 \n",
        "CapEff:\t0000000000000000\n",
        "NoNewPrivs:\t1\n",
    ] {
        assert!(log.contains(expected), "{expected:?} in {log}");
    }
}

/// Checks F7.
#[tokio::test]
async fn a_program_that_another_user_cannot_start_is_a_start_error() {
    if !is_root() {
        return;
    }
    let fixture = on_disk();
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let mut config = container(0, &["no-such-program"]);
    config.security.run_as_user = Some(65534);
    fixture.runtime.start(config).await.unwrap();
    let exit = fixture.exited(0).await;
    assert_eq!((exit.code, exit.reason()), (128, "StartError"));
    let message = "exec: \"no-such-program\": executable file not found in $PATH";
    assert_eq!(exit.message, message);
}

/// Checks F7.
#[tokio::test]
async fn a_container_that_must_not_be_root_is_not_started_as_root() {
    let fixture = on_disk();
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let mut config = container(0, &["true"]);
    config.security.run_as_non_root = true;
    config.security.run_as_user = Some(0);
    let refused = fixture.runtime.start(config).await.unwrap_err().to_string();
    assert!(
        refused.starts_with("container's runAsUser breaks non-root policy"),
        "{refused}"
    );
    assert!(fixture.container(0).is_none());
}

/// Checks N4.
#[tokio::test]
async fn a_container_that_ignores_the_request_to_stop_is_killed_after_its_grace() {
    let fixture = on_disk();
    fixture
        .start(
            0,
            &[
                "sh",
                "-c",
                "trap '' TERM; echo armed; while :; do sleep 1; done",
            ],
        )
        .await;
    wait_until_trap_is_set(&fixture).await;
    let asked = std::time::Instant::now();
    fixture
        .runtime
        .stop(&id(0), Duration::from_millis(300))
        .await
        .unwrap();
    assert_eq!(fixture.exited(0).await.code, 137);
    assert!(asked.elapsed() >= Duration::from_millis(300));
}

/// Checks N4.
#[tokio::test]
async fn a_container_may_exit_by_itself_within_its_grace_period() {
    let fixture = on_disk();
    fixture
        .start(
            0,
            &[
                "sh",
                "-c",
                "trap 'exit 7' TERM; echo armed; while :; do sleep 0.01; done",
            ],
        )
        .await;
    wait_until_trap_is_set(&fixture).await;
    fixture
        .runtime
        .stop(&id(0), Duration::from_secs(30))
        .await
        .unwrap();
    assert_eq!(fixture.exited(0).await.code, 7);
}

/// Checks F1 and N4.
#[tokio::test]
async fn a_shorter_grace_period_overrides_a_longer_one() {
    let fixture = on_disk();
    fixture
        .start(
            0,
            &[
                "sh",
                "-c",
                "trap '' TERM; echo armed; while :; do sleep 1; done",
            ],
        )
        .await;
    wait_until_trap_is_set(&fixture).await;
    fixture.runtime.stop(&id(0), Duration::MAX).await.unwrap();
    fixture.runtime.stop(&id(0), Duration::ZERO).await.unwrap();
    assert_eq!(fixture.exited(0).await.code, 137);
}

#[tokio::test]
async fn a_killed_process_is_observed() {
    let fixture = on_disk();
    fixture.start(0, &[]).await;
    kill(Pid::from_raw(fixture.pid(0)), Signal::SIGKILL).unwrap();
    let exit = fixture.exited(0).await;
    assert_eq!((exit.code, exit.reason()), (137, "Error"));
}

#[tokio::test]
async fn no_process_of_a_container_outlives_its_main_process() {
    let fixture = on_disk();
    let script = "sleep 1000 & echo $! > a; setsid sleep 1000 & echo $! > b; exit 0";
    fixture.start(0, &["sh", "-c", script]).await;
    assert_eq!(fixture.exited(0).await.code, 0);
    for child in ["../../.work/a", "../../.work/b"] {
        let pid = fixture.file(0, child).trim().parse().unwrap();
        assert!(!is_alive(pid), "{child}");
    }
}

/// Checks F39.
#[tokio::test]
async fn the_container_of_a_killed_shim_is_killed_with_processes_outside_its_group() {
    let fixture = on_disk();
    let script = "setsid sleep 1000 & echo $! > a; echo up; exec sleep 1000";
    fixture.start(0, &["sh", "-c", script]).await;
    fixture.read_lines(0, 1).await;
    let left = fixture.file(0, "../../.work/a").trim().parse().unwrap();
    assert!(is_alive(left));
    let shim: serde_json::Value = serde_json::from_str(&fixture.file(0, "shim.json")).unwrap();
    let shim = i32::try_from(shim["pid"].as_i64().unwrap()).unwrap();
    kill(Pid::from_raw(shim), Signal::SIGKILL).unwrap();
    let exit = fixture.exited(0).await;
    assert_eq!((exit.code, exit.reason()), (137, "ContainerStatusUnknown"));
    wait_until_gone(fixture.pid(0)).await;
    wait_until_gone(left).await;
}

/// Checks F31.
#[tokio::test]
async fn a_rotated_log_keeps_the_newest_lines() {
    let fixture = on_disk();
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let script = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done; echo last >&2";
    let mut config = container(0, &["sh", "-c", script]);
    config.log = LogLimits {
        max_size: 10_000,
        max_files: 3,
    };
    fixture.runtime.start(config).await.unwrap();
    let follow = LogOptions {
        follow: true,
        ..LogOptions::default()
    };
    assert!(fixture.log(0, follow).await.ends_with("line 3000\nlast\n"));
    fixture.exited(0).await;
    let files = ["log.3", "log.2", "log.1", "log"].map(|name| fixture.file(0, name));
    assert_eq!(files[0], "");
    assert!(files.iter().all(|file| file.len() <= 10_000));
    let kept = files.concat();
    let numbers = kept.lines().filter_map(|line| line.strip_prefix("line "));
    let numbers: Vec<u32> = numbers.map(|number| number.parse().unwrap()).collect();
    assert!(numbers.len() > 1500 && numbers.is_sorted_by(|a, b| a + 1 == *b));
    assert_eq!(numbers.last(), Some(&3000));
}

/// Runs `work` as one life of an agent: its tasks end with the closure, the containers do not.
fn with_agent<T>(state: &Arc<tempfile::TempDir>, work: impl AsyncFnOnce(OnDisk) -> T) -> T {
    let machine = tokio::runtime::Runtime::new().unwrap();
    machine.block_on(async { work(process_in(Arc::clone(state))).await })
}

/// Checks N2.
#[test]
fn a_restarted_agent_adopts_running_containers_and_starts_nothing_twice() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    let pid = with_agent(&state, async |fixture| {
        fixture.start(0, &["sleep", "1000"]).await;
        fixture.running(0).await;
        fixture.pid(0)
    });
    assert!(is_alive(pid));
    with_agent(&state, async |fixture| {
        assert_eq!(fixture.runtime.pods(), [pod()]);
        assert_eq!(fixture.runtime.sandboxes(&pod())[0].config, sandbox());
        fixture.running(0).await;
        fixture
            .runtime
            .start(container(0, &["sleep", "1000"]))
            .await
            .unwrap();
        assert_eq!(fixture.pid(0), pid);
        // It is not a child of this agent; its end must be observed all the same.
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        assert_eq!(fixture.exited(0).await.code, 137);
        fixture.clean_up().await;
    });
}

/// Returns the files and directories below a directory, without the working directories of containers.
fn state_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| !path.ends_with(".work"));
    let below = |path: PathBuf| match path.is_dir() {
        true => [vec![path.clone()], state_files(&path)].concat(),
        false => vec![path],
    };
    paths.flat_map(below).collect()
}

/// Checks DG7: also for a container of an agent that was restarted, commands have the environment.
#[test]
fn no_file_has_the_environment_of_a_container_and_no_other_user_may_read_any() {
    const PASSWORD: &str = "hunter2-top-secret";
    let state = Arc::new(tempfile::tempdir().unwrap());
    std::fs::set_permissions(state.path(), Permissions::from_mode(0o755)).unwrap();
    with_agent(&state, async |fixture| {
        fixture.runtime.run_sandbox(sandbox()).await.unwrap();
        let mut config = container(0, &["sh", "-c", "exec sleep 1000", PASSWORD]);
        config.env.push(("PASSWORD".into(), PASSWORD.into()));
        fixture.runtime.start(config).await.unwrap();
        fixture.running(0).await;
    });
    let files = [vec![state.path().to_owned()], state_files(state.path())].concat();
    assert!(
        files
            .iter()
            .any(|path| path.ends_with("main/0/config.json"))
    );
    assert!(files.iter().any(|path| path.ends_with("main/0/log")));
    for path in files {
        let mode = path.metadata().unwrap().permissions().mode();
        // Users of the container read it where it is mounted; nobody else enters the directory.
        let others = if path.ends_with("etc-hosts") {
            0o044
        } else {
            0
        };
        assert_eq!(mode & 0o077, others, "{}", path.display());
        let content = std::fs::read(&path).unwrap_or_default();
        let content = String::from_utf8_lossy(&content);
        assert!(!content.contains(PASSWORD), "{}", path.display());
    }
    with_agent(&state, async |fixture| {
        fixture.running(0).await;
        let command = ["sh", "-c", "echo $PASSWORD"];
        let said = fixture.run(&command, ALL_OUTPUT, &[]).await;
        assert_eq!(said, (format!("{PASSWORD}\n"), String::new(), 0));
        fixture.clean_up().await;
    });
}

/// Checks DG7.
#[tokio::test]
async fn a_container_of_another_user_enters_its_working_directory_and_has_no_stdin() {
    if !is_root() {
        return;
    }
    let fixture = on_disk();
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let script = "cat && test -x . && test -r . && ! test -x .. && echo works";
    let mut config = container(0, &["sh", "-c", script]);
    config.security.run_as_user = Some(65534);
    fixture.runtime.start(config).await.unwrap();
    fixture.exited(0).await;
    assert_eq!(fixture.file(0, "log"), "works\n");
}

/// Checks DG26: a pid that another process has got belongs to no container.
#[tokio::test]
async fn a_command_joins_no_process_that_started_at_another_time() {
    let fixture = on_disk();
    if !fixture.runtime.mounts_volumes() {
        return eprintln!("SKIPPED: this agent may not mount volumes");
    }
    let sandbox = sandbox_with([("scratch", VolumeKind::Empty)]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let mut config = container(0, &["sleep", "1000"]);
    config.mounts = vec![Mount {
        volume: "scratch".into(),
        path: format!("/tmp/setpoint-test-{}", uid()),
        ..Mount::default()
    }];
    fixture.runtime.start(config).await.unwrap();
    fixture.running(0).await;
    let run = async || fixture.run(&["echo", "joined"], ALL_OUTPUT, &[]).await;
    assert_eq!(run().await, ("joined\n".into(), String::new(), 0));
    let started = fixture.path(0, "started.json");
    let json = std::fs::read_to_string(&started).unwrap();
    let mut other: serde_json::Value = serde_json::from_str(&json).unwrap();
    other["process"]["ticks"] = 1.into();
    std::fs::write(&started, other.to_string()).unwrap();
    let (stdout, stderr, code) = run().await;
    assert_eq!((stdout.as_str(), code), ("", 126));
    assert!(stderr.contains("has ended"), "{stderr}");
    let _ = std::fs::remove_dir(format!("/tmp/setpoint-test-{}", uid()));
    fixture.clean_up().await;
}

/// Checks N2.
#[test]
fn a_restarted_agent_learns_of_an_exit_that_it_missed() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    let pid = with_agent(&state, async |fixture| {
        fixture
            .start(
                0,
                &[
                    "sh",
                    "-c",
                    "trap 'exit 5' TERM; echo armed; while :; do sleep 0.01; done",
                ],
            )
            .await;
        wait_until_trap_is_set(&fixture).await;
        fixture.pid(0)
    });
    killpg(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    with_agent(&state, async |fixture| {
        assert_eq!(fixture.exited(0).await.code, 5)
    });
}

/// Checks N2.
#[test]
fn a_sandbox_of_an_earlier_boot_is_lost_and_gets_its_volumes_in_memory_again() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    let config = sandbox_with([("cache", VolumeKind::Memory(0))]);
    with_agent(&state, async |fixture| {
        fixture.runtime.run_sandbox(config.clone()).await.unwrap();
        fixture
            .runtime
            .start(container(0, &["true"]))
            .await
            .unwrap();
        fixture.exited(0).await;
        assert!(fixture.runtime.sandboxes(&pod())[0].ready);
    });
    let boot = state.path().join("pods").join(uid()).join("boot.json");
    std::fs::write(boot, "\"another boot\"").unwrap();
    let folder = state.path().join("volumes");
    let folder = fnv32a(folder.as_os_str().as_encoded_bytes());
    let folder = std::path::PathBuf::from(format!("/dev/shm/setpoint-{folder:08x}"));
    std::fs::remove_dir_all(&folder).unwrap();
    with_agent(&state, async |fixture| {
        let lost = fixture.runtime.sandboxes(&pod()).remove(0);
        assert!(!lost.ready);
        fixture.runtime.run_sandbox(config).await.unwrap();
        let again = fixture.runtime.sandboxes(&pod()).remove(0);
        assert!(again.ready && again.id != lost.id);
        assert!(folder.join(uid()).join("cache").is_dir());
        assert_eq!(
            again.containers[0].sandbox, lost.id,
            "its containers have ended in the lost one"
        );
        fixture.runtime.remove_sandbox(&uid()).await.unwrap();
    });
}

/// Checks N2.
#[test]
fn a_container_without_shim_and_exit_record_is_lost() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    with_agent(&state, async |fixture| {
        fixture.start(0, &["sleep", "1000"]).await;
        fixture.clean_up().await;
    });
    let folder = state.path().join("pods").join(uid()).join("main/0");
    std::fs::remove_file(folder.join("exit.json")).unwrap();
    with_agent(&state, async |fixture| {
        assert_eq!(fixture.exited(0).await.reason(), "ContainerStatusUnknown");
    });
}

/// Checks N2.
#[test]
fn a_start_without_a_shim_has_failed_and_a_late_shim_cannot_run() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    with_agent(&state, async |fixture| {
        fixture.start(0, &["true"]).await;
        fixture.exited(0).await;
    });
    let folder = state.path().join("pods").join(uid()).join("main/0");
    for file in ["shim.json", "started.json", "exit.json"] {
        std::fs::remove_file(folder.join(file)).unwrap();
    }
    with_agent(&state, async |fixture| {
        assert!(matches!(
            fixture.container(0).unwrap().state,
            State::Exited(_)
        ));
    });
    let late = std::process::Command::new(PROGRAM)
        .arg("shim")
        .arg(&folder)
        .status();
    assert!(!late.unwrap().success());
    assert!(!folder.join("started.json").exists());
}

#[test]
fn a_sweep_stops_containers_and_the_next_agent_observes_their_exits() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    let pid = with_agent(&state, async |fixture| {
        fixture.start(0, &["sleep", "1000"]).await;
        fixture.pid(0)
    });
    let machine = tokio::runtime::Runtime::new().unwrap();
    let swept = machine.block_on(sweep(state.path(), Duration::from_secs(2)));
    assert_eq!(swept.unwrap(), 1);
    assert!(!is_alive(pid));
    with_agent(&state, async |fixture| {
        assert_eq!(fixture.exited(0).await.code, 143)
    });
}

#[test]
fn a_state_directory_is_locked_by_one_agent() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    with_agent(&state, async |fixture| {
        let second = Processes::open(state.path(), PROGRAM, None, Arc::new(|_| {}));
        assert!(second.is_err());
        drop(fixture);
    });
}

async fn wait_until_trap_is_set(fixture: &OnDisk) {
    let armed = async {
        while !fixture.file(0, "log").contains("armed") {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(TIMEOUT, armed)
        .await
        .expect("the trap is set");
}
