//! The contract of the [`Runtime`] trait, checked on every implementation.

use std::time::Duration;

use futures::StreamExt as _;
use setpoint_proto::core::ResourceRequirements;
use setpoint_runtime::{
    Error, Input, LogOptions, Output, Runtime, State, Streams, TerminationMessage,
};
use setpoint_testkit::free_port;
use tokio::time::timeout;

use crate::support::answers::{Fault, all_of, fixture_with};
use crate::support::docker::cluster;
use crate::support::{
    ALL_OUTPUT, Fixture, POLL_INTERVAL, TIMEOUT, container, id, pod, resources, sandbox, uid,
    wait_until_no_process_has,
};

macro_rules! on_every_runtime {
    ($($(#[$doc:meta])* $name:ident)*) => {
        mod process {
            $($(#[$doc])* #[tokio::test] async fn $name() { super::$name(crate::support::process()).await; })*
        }
        mod docker {
            $($(#[$doc])* #[tokio::test] async fn $name() {
                if let Some(fixture) = crate::support::docker::fixture().await {
                    super::$name(fixture).await;
                }
            })*
        }
        mod simulated {
            $($(#[$doc])* #[tokio::test] async fn $name() { super::$name(crate::support::simulated()).await; })*
        }
    };
}
/// Simulated containers write no logs.
macro_rules! on_every_runtime_that_runs {
    ($($name:ident)*) => {
        $(mod $name {
            #[tokio::test] async fn process() { super::$name(crate::support::process()).await; }
            #[tokio::test] async fn docker() {
                if let Some(fixture) = crate::support::docker::fixture().await {
                    super::$name(fixture).await;
                }
            }
        })*
    };
}
/// Checks DG1: answers of the engine are lost, late, or those to a second request.
macro_rules! whatever_becomes_of_answers {
    ($($name:ident)*) => {
        mod answers {
            $(mod $name {
                use crate::support::answers::{Fault, fixture_with};
                async fn with(fault: Fault) {
                    if let Some(fixture) = fixture_with(fault).await {
                        super::super::$name(fixture).await;
                    }
                }
                #[tokio::test] async fn lost() { with(Fault::Lost).await; }
                #[tokio::test] async fn late() { with(Fault::Late).await; }
                #[tokio::test] async fn doubled() { with(Fault::Doubled).await; }
            })*
        }
    };
}

mod volumes;

on_every_runtime_that_runs! {
    a_command_has_the_surroundings_of_its_container
    a_command_reads_its_input_to_the_end
    a_command_has_a_terminal_if_it_asks_for_one
    a_command_that_does_not_exist_says_so
    a_command_ends_when_its_client_leaves
    a_command_ends_with_its_container
    a_client_that_attaches_reads_what_is_written_from_now_on
    a_connection_reaches_a_port_of_the_pod_and_is_closed_by_halves
    a_port_without_a_listener_refuses
    a_container_that_has_failed_leaves_the_end_of_its_log_as_its_message
    a_log_is_kept_after_the_end_and_read_from_its_tail
    a_log_that_is_followed_ends_with_its_container
}
on_every_runtime! {
    a_container_that_does_not_run_runs_no_commands
    a_container_without_a_command_runs_until_it_is_stopped
    the_exit_code_is_that_of_the_command
    an_exit_wakes_the_agent
    a_container_that_runs_is_given_other_resources_and_one_that_has_ended_is_not
    starting_the_same_attempt_again_starts_nothing
    stopping_an_exited_container_changes_nothing
    a_running_container_cannot_be_removed
    a_removed_sandbox_leaves_nothing
    a_container_needs_its_sandbox
    attempts_are_kept_apart
}

whatever_becomes_of_answers! {
    a_pod_exists_once_and_leaves_nothing
    the_exit_code_is_that_of_the_command
    a_container_that_runs_is_given_other_resources_and_one_that_has_ended_is_not
}

async fn a_container_without_a_command_runs_until_it_is_stopped<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    fixture
        .runtime
        .stop(&id(0), Duration::from_secs(10))
        .await
        .unwrap();
    fixture.exited(0).await;
    fixture.clean_up().await;
}

async fn the_exit_code_is_that_of_the_command<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sh", "-c", "exit 3"]).await;
    let exit = fixture.exited(0).await;
    assert_eq!((exit.code, exit.reason()), (3, "Error"));
    assert!(exit.started <= exit.finished);
    fixture.start(1, &["true"]).await;
    assert_eq!(fixture.exited(1).await.reason(), "Completed");
    fixture.clean_up().await;
}

async fn an_exit_wakes_the_agent<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sleep", "0.05"]).await;
    assert_eq!(fixture.exited(0).await.code, 0);
    fixture.clean_up().await;
}

async fn a_container_that_runs_is_given_other_resources_and_one_that_has_ended_is_not<
    R: Runtime,
>(
    fixture: Fixture<R>,
) {
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    let has = || fixture.container(0).unwrap().resources;
    assert_eq!(has(), Some(ResourceRequirements::default()));
    let more = resources(&[("cpu", "20m")], &[("cpu", "30m"), ("memory", "64Mi")]);
    fixture.runtime.resize(&id(0), &more).await.unwrap();
    assert_eq!(has(), Some(more.clone()));
    let state = fixture.container(0).unwrap().state;
    assert!(
        matches!(state, State::Running { stopping: None, .. }),
        "it runs on"
    );
    fixture.start(1, &["true"]).await;
    fixture.exited(1).await;
    let refused = fixture.runtime.resize(&id(1), &more).await.unwrap_err();
    assert!(matches!(refused, Error::NotRunning(_)), "{refused}");
    fixture.clean_up().await;
}

async fn starting_the_same_attempt_again_starts_nothing<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    let before = fixture.container(0);
    fixture.start(0, &["true"]).await;
    assert_eq!(fixture.container(0), before);
    assert_eq!(fixture.runtime.sandboxes(&pod()).len(), 1);
    fixture.clean_up().await;
}

async fn stopping_an_exited_container_changes_nothing<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sh", "-c", "exit 3"]).await;
    let exit = fixture.exited(0).await;
    fixture.runtime.stop(&id(0), Duration::ZERO).await.unwrap();
    assert_eq!(fixture.exited(0).await, exit);
    fixture.clean_up().await;
}

async fn a_running_container_cannot_be_removed<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    assert!(fixture.runtime.remove(&id(0)).await.is_err());
    assert!(fixture.runtime.remove_sandbox(&uid()).await.is_err());
    fixture.running(0).await;
    fixture.clean_up().await;
}

async fn a_removed_sandbox_leaves_nothing<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["true"]).await;
    fixture.exited(0).await;
    assert_eq!(fixture.runtime.pods(), [pod()]);
    for _ in 0..2 {
        fixture.runtime.remove_sandbox(&uid()).await.unwrap();
        assert!(fixture.runtime.pods().is_empty() && fixture.runtime.sandboxes(&pod()).is_empty());
    }
    fixture.clean_up().await;
}

async fn a_container_needs_its_sandbox<R: Runtime>(fixture: Fixture<R>) {
    assert!(fixture.runtime.start(container(0, &[])).await.is_err());
    assert!(fixture.runtime.sandboxes(&pod()).is_empty());
    fixture.clean_up().await;
}

async fn attempts_are_kept_apart<R: Runtime>(fixture: Fixture<R>) {
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    for attempt in [0, 1] {
        fixture.start(attempt, &["true"]).await;
        fixture.exited(attempt).await;
    }
    fixture.start(2, &[]).await;
    fixture.running(2).await;
    fixture.runtime.remove(&id(0)).await.unwrap();
    let sandboxes = fixture.runtime.sandboxes(&pod());
    let attempts: Vec<_> = sandboxes[0]
        .attempts("main")
        .map(|found| found.id.attempt)
        .collect();
    assert_eq!(attempts, [1, 2]);
    assert!(matches!(
        sandboxes[0].latest("main").unwrap().state,
        State::Running { .. }
    ));
    fixture.clean_up().await;
}

async fn a_log_is_kept_after_the_end_and_read_from_its_tail<R: Runtime>(fixture: Fixture<R>) {
    fixture
        .start(0, &["sh", "-c", "echo one; echo two; echo three"])
        .await;
    fixture.exited(0).await;
    assert_eq!(
        fixture.log(0, LogOptions::default()).await,
        "one\ntwo\nthree\n"
    );
    let tail = LogOptions {
        tail: Some(2),
        ..LogOptions::default()
    };
    assert_eq!(fixture.log(0, tail).await, "two\nthree\n");
    fixture.clean_up().await;
}

async fn a_log_that_is_followed_ends_with_its_container<R: Runtime>(fixture: Fixture<R>) {
    fixture
        .start(0, &["sh", "-c", "echo one; sleep 1; echo two"])
        .await;
    // It may have ended before the first look.
    let begun = |state: &State| (*state != State::Starting).then_some(());
    fixture.wait_for(0, begun).await;
    let follow = LogOptions {
        follow: true,
        ..LogOptions::default()
    };
    assert_eq!(fixture.log(0, follow).await, "one\ntwo\n");
    fixture.clean_up().await;
}

async fn a_container_that_does_not_run_runs_no_commands<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["true"]).await;
    fixture.exited(0).await;
    let nothing = || futures::stream::empty().boxed();
    let runtime = &fixture.runtime;
    let command = ["true".to_owned()];
    let executed = runtime.exec(&id(0), &command, ALL_OUTPUT, nothing()).await;
    assert!(matches!(executed, Err(Error::NotRunning(_))));
    let attached = runtime.attach(&id(0), ALL_OUTPUT, nothing()).await;
    assert!(matches!(attached, Err(Error::NotRunning(_))));
    fixture.clean_up().await;
}

async fn a_command_has_the_surroundings_of_its_container<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sleep", "1000"]).await;
    fixture.running(0).await;
    let script = "echo $GREETING; echo oops >&2; exit 3";
    let ended = fixture.run(&["sh", "-c", script], ALL_OUTPUT, &[]).await;
    assert_eq!(ended, ("hello\n".into(), "oops\n".into(), 3));
    fixture.clean_up().await;
}

async fn a_command_reads_its_input_to_the_end<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sleep", "1000"]).await;
    fixture.running(0).await;
    let streams = Streams {
        stdin: true,
        ..ALL_OUTPUT
    };
    let large = "0123456789abcde\n".repeat(20_000);
    let pieces = large.as_bytes().chunks(30_000);
    let mut input: Vec<_> = pieces
        .map(|piece| Input::Stdin(piece.to_vec().into()))
        .collect();
    input.push(Input::StdinEnd);
    let (stdout, _, code) = fixture.run(&["cat"], streams, &input).await;
    assert!(stdout == large && code == 0);
    fixture.clean_up().await;
}

async fn a_command_has_a_terminal_if_it_asks_for_one<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sleep", "1000"]).await;
    fixture.running(0).await;
    let streams = Streams {
        stdin: true,
        stdout: true,
        stderr: false,
        tty: true,
    };
    // The size may be set after the command has started.
    let script = "test -t 0 && test -t 1 && until [ \"$(stty size)\" = '40 120' ]; do sleep 0.01; done; read word; echo got $word";
    let input = [Input::Resize(120, 40), Input::Stdin("hi\n".into())];
    let (stdout, _, code) = fixture.run(&["sh", "-c", script], streams, &input).await;
    assert!(stdout.contains("got hi\r\n") && code == 0, "{stdout}");
    let plain = fixture
        .run(&["sh", "-c", "test -t 0"], ALL_OUTPUT, &[])
        .await;
    assert_eq!(plain.2, 1);
    fixture.clean_up().await;
}

async fn a_command_that_does_not_exist_says_so<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sleep", "1000"]).await;
    fixture.running(0).await;
    let (stdout, stderr, code) = fixture.run(&["no-such-program"], ALL_OUTPUT, &[]).await;
    let said = format!("{stdout}{stderr}");
    assert!(
        said.contains("\"no-such-program\": executable file not found in $PATH"),
        "{said}"
    );
    assert!([126, 127].contains(&code), "{code}");
    fixture.clean_up().await;
}

async fn a_command_ends_when_its_client_leaves<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sleep", "1000"]).await;
    fixture.running(0).await;
    // A number of seconds that no other test sleeps.
    let digits: String = uid().chars().filter(char::is_ascii_digit).collect();
    let mark = format!("1000.{digits}");
    // The child leaves the process group, and both ignore the end of their streams.
    let script =
        format!("trap '' TERM HUP; setsid sleep {mark} & echo begun; sleep {mark}; sleep {mark}");
    let command = ["sh".to_owned(), "-c".to_owned(), script];
    let nothing = futures::stream::pending().boxed();
    let output = fixture
        .runtime
        .exec(&id(0), &command, ALL_OUTPUT, nothing)
        .await;
    let mut output = output.unwrap();
    let first = timeout(TIMEOUT, output.next()).await.unwrap();
    assert_eq!(first.unwrap().unwrap(), Output::Stdout("begun\n".into()));
    drop(output);
    wait_until_no_process_has(&mark).await;
    fixture.running(0).await;
    fixture.clean_up().await;
}

async fn a_command_ends_with_its_container<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sleep", "1000"]).await;
    fixture.running(0).await;
    let command = ["sh", "-c", "echo begun; sleep 1000"].map(ToOwned::to_owned);
    let nothing = futures::stream::empty().boxed();
    let output = fixture
        .runtime
        .exec(&id(0), &command, ALL_OUTPUT, nothing)
        .await;
    let mut output = output.unwrap();
    let first = timeout(TIMEOUT, output.next()).await.unwrap();
    assert_eq!(first.unwrap().unwrap(), Output::Stdout("begun\n".into()));
    fixture.runtime.stop(&id(0), Duration::ZERO).await.unwrap();
    let last = timeout(TIMEOUT, output.next()).await.unwrap();
    assert_eq!(last.unwrap().unwrap(), Output::Exit(137));
    fixture.exited(0).await;
    fixture.clean_up().await;
}

async fn a_client_that_attaches_reads_what_is_written_from_now_on<R: Runtime>(fixture: Fixture<R>) {
    let script = "echo early; until [ -e go ]; do sleep 0.01; done; echo late";
    fixture.start(0, &["sh", "-c", script]).await;
    fixture.running(0).await;
    while !fixture
        .log(0, LogOptions::default())
        .await
        .contains("early")
    {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let nothing = futures::stream::empty().boxed();
    let output = fixture
        .runtime
        .attach(&id(0), ALL_OUTPUT, nothing)
        .await
        .unwrap();
    let touched = fixture.run(&["touch", "go"], ALL_OUTPUT, &[]).await;
    assert_eq!(touched.2, 0);
    let pieces = timeout(TIMEOUT, output.collect::<Vec<_>>()).await.unwrap();
    let pieces = pieces.into_iter().map(|piece| match piece.unwrap() {
        Output::Stdout(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    });
    assert_eq!(pieces.collect::<String>(), "late\n");
    fixture.clean_up().await;
}

async fn a_connection_reaches_a_port_of_the_pod_and_is_closed_by_halves<R: Runtime>(
    fixture: Fixture<R>,
) {
    let port = free_port();
    let number = port.to_string();
    let server = ["busybox", "nc", "-ll", "-p", &number, "-e", "cat"];
    fixture.start(0, &server).await;
    fixture.running(0).await;
    let data = "ping\n".repeat(20_000);
    let echo = fixture.exchange(port, &data).await;
    assert!(echo == data);
    fixture.clean_up().await;
}

async fn a_port_without_a_listener_refuses<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sleep", "1000"]).await;
    fixture.running(0).await;
    let port = free_port();
    let refused = fixture.runtime.connect(&uid(), port).await.err().unwrap();
    let message = refused.to_string();
    assert!(message.starts_with("dial tcp "), "{message}");
    assert!(
        message.ends_with(&format!(":{port}: connect: connection refused")),
        "{message}"
    );
    fixture.clean_up().await;
}

async fn a_container_that_has_failed_leaves_the_end_of_its_log_as_its_message<R: Runtime>(
    fixture: Fixture<R>,
) {
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    for (attempt, code, message) in [(0, 1, "last words\n"), (1, 0, "")] {
        let script = format!("echo last words; exit {code}");
        let mut config = container(attempt, &["sh", "-c", &script]);
        config.termination_message = TerminationMessage {
            path: "/dev/termination-log".into(),
            falls_back_to_logs: true,
        };
        fixture.runtime.start(config).await.unwrap();
        let exit = fixture.exited(attempt).await;
        assert_eq!((exit.code, exit.message.as_str()), (code, message));
    }
    fixture.clean_up().await;
}

/// Checks DG1.
async fn a_pod_exists_once_and_leaves_nothing<R: Runtime>(fixture: Fixture<R>) {
    let (uid, runtime) = (uid(), &fixture.runtime);
    fixture.start(0, &["sh", "-c", "echo ran; sleep 1"]).await;
    fixture.start(1, &[]).await;
    fixture.running(1).await;
    fixture.exited(0).await;
    assert_eq!(fixture.log(0, LogOptions::default()).await, "ran\n");
    let engine = ["POD", "main"].map(|name| format!("/k8s_{name}_web_default_{uid}"));
    let [pause, main] = &engine;
    let left = [
        format!("{pause}_0"),
        format!("/k8s_files_{uid}"),
        format!("{main}_0"),
        format!("{main}_1"),
        format!("k8s_{uid}_setpoint.termination"),
    ];
    assert_eq!(all_of(&cluster()).await, left);
    runtime.remove(&id(0)).await.unwrap();
    assert_eq!(all_of(&cluster()).await.len(), left.len() - 1);
    runtime.stop(&id(1), Duration::ZERO).await.unwrap();
    fixture.exited(1).await;
    for _ in 0..2 {
        runtime.remove_sandbox(&uid).await.unwrap();
        assert_eq!(all_of(&cluster()).await, Vec::<String>::new());
    }
}

/// Checks DG1: a message is read once. The engine runs a container that has ended again if it is asked to, so that this cannot
/// hold if requests are doubled.
#[tokio::test]
async fn a_message_is_read_although_an_answer_is_lost() {
    if let Some(fixture) = fixture_with(Fault::Lost).await {
        a_container_that_has_failed_leaves_the_end_of_its_log_as_its_message(fixture).await;
    }
}

/// Simulated containers have no processes.
#[tokio::test]
async fn a_simulated_node_refuses_commands_and_connections_with_a_reason() {
    let fixture = crate::support::simulated();
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    let nothing = || futures::stream::empty().boxed();
    let (runtime, command) = (&fixture.runtime, ["true".to_owned()]);
    let refused = [
        runtime
            .exec(&id(0), &command, ALL_OUTPUT, nothing())
            .await
            .err(),
        runtime.attach(&id(0), ALL_OUTPUT, nothing()).await.err(),
        runtime.connect(&uid(), 80).await.err(),
    ];
    for (error, what) in refused.into_iter().zip(["exec", "attach", "port-forward"]) {
        let expected = format!("{what} is not supported on simulated nodes: no process runs there");
        assert_eq!(error.unwrap().to_string(), expected);
    }
    fixture.clean_up().await;
}
