//! What only real processes can show: groups, signals, files, and agents that die and come back.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use setpoint_node_agent::runtime::{LogLimits, LogOptions, Runtime, Security, State};
use support::{
    Bench, PATIENCE, PAUSE, container, id, is_alive, pod, process, process_in, sandbox, until_gone,
};

#[tokio::test]
async fn a_container_gets_its_environment_and_a_mark_of_its_own() {
    let bench = process();
    bench.start(0, &["env"]).await;
    bench.exited(0).await;
    let log = bench.file(0, "log");
    let mut lines: Vec<_> = log.lines().collect();
    lines.sort_unstable();
    let mark = format!("SETPOINT_CONTAINER={}", id(0));
    assert_eq!(lines, ["GREETING=hello", "PATH=/usr/bin:/bin", &mark]);
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_a_start_error_that_names_it() {
    let bench = process();
    bench.start(0, &["no-such-program"]).await;
    let exit = bench.exited(0).await;
    assert_eq!((exit.code, exit.reason()), (128, "StartError"));
    assert_eq!(
        exit.message,
        "exec: \"no-such-program\": executable file not found in $PATH"
    );
}

fn is_root() -> bool {
    let root = nix::unistd::Uid::effective().is_root();
    if !root {
        eprintln!("SKIPPED: only root can become another user");
    }
    root
}

/// Checks F7.
#[tokio::test]
async fn a_container_runs_as_the_user_that_it_asks_for_and_becomes_no_more() {
    if !is_root() {
        return;
    }
    let bench = process();
    bench.runtime.run_sandbox(sandbox()).await.unwrap();
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
    bench.runtime.start(config).await.unwrap();
    bench.exited(0).await;
    let log = bench.file(0, "log");
    for said in [
        "Uid:\t65534\t65534\t65534\t65534\n",
        "Gid:\t4242\t4242\t4242\t4242\n",
        "Groups:\t17 18 \n",
        "CapEff:\t0000000000000000\n",
        "NoNewPrivs:\t1\n",
    ] {
        assert!(log.contains(said), "{said:?} in {log}");
    }
}

/// Checks F7.
#[tokio::test]
async fn a_program_that_another_user_cannot_start_is_a_start_error() {
    if !is_root() {
        return;
    }
    let bench = process();
    bench.runtime.run_sandbox(sandbox()).await.unwrap();
    let mut config = container(0, &["no-such-program"]);
    config.security.run_as_user = Some(65534);
    bench.runtime.start(config).await.unwrap();
    let exit = bench.exited(0).await;
    assert_eq!((exit.code, exit.reason()), (128, "StartError"));
    let message = "exec: \"no-such-program\": executable file not found in $PATH";
    assert_eq!(exit.message, message);
}

/// Checks F7.
#[tokio::test]
async fn a_container_that_must_not_be_root_is_not_started_as_root() {
    let bench = process();
    bench.runtime.run_sandbox(sandbox()).await.unwrap();
    let mut config = container(0, &["true"]);
    config.security.run_as_non_root = true;
    config.security.run_as_user = Some(0);
    let refused = bench.runtime.start(config).await.unwrap_err().to_string();
    assert!(
        refused.starts_with("container's runAsUser breaks non-root policy"),
        "{refused}"
    );
    assert!(bench.container(0).is_none());
}

/// Checks N4.
#[tokio::test]
async fn a_container_that_ignores_the_request_to_stop_is_killed_after_its_grace() {
    let bench = process();
    bench
        .start(
            0,
            &[
                "sh",
                "-c",
                "trap '' TERM; echo armed; while :; do sleep 1; done",
            ],
        )
        .await;
    armed(&bench).await;
    let asked = std::time::Instant::now();
    bench
        .runtime
        .stop(&id(0), Duration::from_millis(300))
        .await
        .unwrap();
    assert_eq!(bench.exited(0).await.code, 137);
    assert!(asked.elapsed() >= Duration::from_millis(300));
}

/// Checks N4.
#[tokio::test]
async fn a_container_may_use_its_grace_to_end_well() {
    let bench = process();
    bench
        .start(
            0,
            &[
                "sh",
                "-c",
                "trap 'exit 7' TERM; echo armed; while :; do sleep 0.01; done",
            ],
        )
        .await;
    armed(&bench).await;
    bench
        .runtime
        .stop(&id(0), Duration::from_secs(30))
        .await
        .unwrap();
    assert_eq!(bench.exited(0).await.code, 7);
}

/// Checks F1 and N4.
#[tokio::test]
async fn a_shorter_grace_overrules_an_endless_one() {
    let bench = process();
    bench
        .start(
            0,
            &[
                "sh",
                "-c",
                "trap '' TERM; echo armed; while :; do sleep 1; done",
            ],
        )
        .await;
    armed(&bench).await;
    bench.runtime.stop(&id(0), Duration::MAX).await.unwrap();
    bench.runtime.stop(&id(0), Duration::ZERO).await.unwrap();
    assert_eq!(bench.exited(0).await.code, 137);
}

#[tokio::test]
async fn a_killed_process_is_noticed_at_once() {
    let bench = process();
    bench.start(0, &[]).await;
    kill(Pid::from_raw(bench.pid(0)), Signal::SIGKILL).unwrap();
    let exit = bench.exited(0).await;
    assert_eq!((exit.code, exit.reason()), (137, "Error"));
}

#[tokio::test]
async fn nothing_of_a_container_outlives_its_first_process() {
    let bench = process();
    let family = "sleep 1000 & echo $! > a; setsid sleep 1000 & echo $! > b; exit 0";
    bench.start(0, &["sh", "-c", family]).await;
    assert_eq!(bench.exited(0).await.code, 0);
    for child in ["../../a", "../../b"] {
        let pid = bench.file(0, child).trim().parse().unwrap();
        assert!(!is_alive(pid), "{child}");
    }
}

/// Checks F39.
#[tokio::test]
async fn a_killed_shim_takes_its_container_along_and_those_who_left_its_group() {
    let bench = process();
    let family = "setsid sleep 1000 & echo $! > a; echo up; exec sleep 1000";
    bench.start(0, &["sh", "-c", family]).await;
    bench.said(0, 1).await;
    let left = bench.file(0, "../../a").trim().parse().unwrap();
    assert!(is_alive(left));
    let shim: serde_json::Value = serde_json::from_str(&bench.file(0, "shim.json")).unwrap();
    let shim = i32::try_from(shim["pid"].as_i64().unwrap()).unwrap();
    kill(Pid::from_raw(shim), Signal::SIGKILL).unwrap();
    let exit = bench.exited(0).await;
    assert_eq!((exit.code, exit.reason()), (137, "ContainerStatusUnknown"));
    until_gone(bench.pid(0)).await;
    until_gone(left).await;
}

/// Checks F31.
#[tokio::test]
async fn a_container_that_writes_and_writes_keeps_its_newest_lines() {
    let bench = process();
    bench.runtime.run_sandbox(sandbox()).await.unwrap();
    let script = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done; echo last >&2";
    let mut config = container(0, &["sh", "-c", script]);
    config.log = LogLimits {
        max_size: 10_000,
        max_files: 3,
    };
    bench.runtime.start(config).await.unwrap();
    let follow = LogOptions {
        follow: true,
        ..LogOptions::default()
    };
    assert!(bench.log(0, follow).await.ends_with("line 3000\nlast\n"));
    bench.exited(0).await;
    let files = ["log.3", "log.2", "log.1", "log"].map(|name| bench.file(0, name));
    assert_eq!(files[0], "");
    assert!(files.iter().all(|file| file.len() <= 10_000));
    let kept = files.concat();
    let numbers = kept.lines().filter_map(|line| line.strip_prefix("line "));
    let numbers: Vec<u32> = numbers.map(|number| number.parse().unwrap()).collect();
    assert!(numbers.len() > 1500 && numbers.is_sorted_by(|a, b| a + 1 == *b));
    assert_eq!(numbers.last(), Some(&3000));
}

/// An agent's life: everything of it ends with the closure, but not the containers.
fn life<T>(
    state: &Arc<tempfile::TempDir>,
    work: impl AsyncFnOnce(Bench<setpoint_node_agent::runtime::process::Processes>) -> T,
) -> T {
    let machine = tokio::runtime::Runtime::new().unwrap();
    machine.block_on(async { work(process_in(Arc::clone(state))).await })
}

/// Checks N2.
#[test]
fn an_agent_that_comes_back_adopts_what_runs_and_starts_nothing_twice() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    let pid = life(&state, async |bench| {
        bench.start(0, &["sleep", "1000"]).await;
        bench.running(0).await;
        bench.pid(0)
    });
    assert!(is_alive(pid));
    life(&state, async |bench| {
        assert_eq!(bench.runtime.pods(), [pod()]);
        assert_eq!(bench.runtime.sandboxes(&pod())[0].config, sandbox());
        bench.running(0).await;
        bench
            .runtime
            .start(container(0, &["sleep", "1000"]))
            .await
            .unwrap();
        assert_eq!(bench.pid(0), pid);
        // It is nobody's child here, and its end is noticed all the same.
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        assert_eq!(bench.exited(0).await.code, 137);
        bench.clean_up().await;
    });
}

/// Checks N2.
#[test]
fn an_end_while_the_agent_was_away_is_known_when_it_comes_back() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    let pid = life(&state, async |bench| {
        bench
            .start(
                0,
                &[
                    "sh",
                    "-c",
                    "trap 'exit 5' TERM; echo armed; while :; do sleep 0.01; done",
                ],
            )
            .await;
        armed(&bench).await;
        bench.pid(0)
    });
    killpg(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    life(&state, async |bench| {
        assert_eq!(bench.exited(0).await.code, 5)
    });
}

/// Checks N2.
#[test]
fn a_container_whose_shim_died_unseen_is_known_to_be_lost() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    life(&state, async |bench| {
        bench.start(0, &["sleep", "1000"]).await;
        bench.clean_up().await;
    });
    let folder = state
        .path()
        .join("pods")
        .join(support::uid())
        .join("main/0");
    std::fs::remove_file(folder.join("exit.json")).unwrap();
    life(&state, async |bench| {
        assert_eq!(bench.exited(0).await.reason(), "ContainerStatusUnknown");
    });
}

/// Checks N2.
#[test]
fn a_start_that_was_cut_off_before_its_shim_came_up_is_not_made_up_for() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    life(&state, async |bench| {
        bench.start(0, &["true"]).await;
        bench.exited(0).await;
    });
    let folder = state
        .path()
        .join("pods")
        .join(support::uid())
        .join("main/0");
    for file in ["shim.json", "started.json", "exit.json"] {
        std::fs::remove_file(folder.join(file)).unwrap();
    }
    life(&state, async |bench| {
        assert!(matches!(
            bench.container(0).unwrap().state,
            State::Exited(_)
        ));
    });
    let late = std::process::Command::new(env!("CARGO_BIN_EXE_node-agent"))
        .arg("shim")
        .arg(&folder)
        .status();
    assert!(!late.unwrap().success());
    assert!(!folder.join("started.json").exists());
}

#[test]
fn a_sweep_ends_what_an_agent_left_and_the_next_agent_knows() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    let pid = life(&state, async |bench| {
        bench.start(0, &["sleep", "1000"]).await;
        bench.pid(0)
    });
    let swept = std::process::Command::new(env!("CARGO_BIN_EXE_node-agent"))
        .arg("sweep")
        .arg(state.path())
        .output();
    assert_eq!(swept.unwrap().stdout, b"stopped 1 containers\n");
    assert!(!is_alive(pid));
    life(&state, async |bench| {
        assert_eq!(bench.exited(0).await.code, 143)
    });
}

#[test]
fn two_agents_do_not_share_a_state_folder() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    life(&state, async |bench| {
        let second = setpoint_node_agent::runtime::process::Processes::open(
            state.path(),
            env!("CARGO_BIN_EXE_node-agent"),
            Arc::new(|_| {}),
        );
        assert!(second.is_err());
        drop(bench);
    });
}

async fn armed(bench: &Bench<setpoint_node_agent::runtime::process::Processes>) {
    let said = async {
        while !bench.file(0, "log").contains("armed") {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, said)
        .await
        .expect("the trap is set");
}
