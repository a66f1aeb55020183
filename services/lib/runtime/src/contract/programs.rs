//! Commands, streams, ports and logs, on every runtime that runs programs.

use std::time::Duration;

use futures::StreamExt as _;
use tokio::time::timeout;

use super::{ALL_OUTPUT, Fixture, POLL_INTERVAL, TIMEOUT, container, id, sandbox, uid};
use crate::{Input, LogOptions, Output, Runtime, State, Streams, TerminationMessage};

pub async fn a_log_is_kept_after_the_end_and_read_from_its_tail<R: Runtime>(fixture: Fixture<R>) {
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

pub async fn a_log_that_is_followed_ends_with_its_container<R: Runtime>(fixture: Fixture<R>) {
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

pub async fn a_command_has_the_surroundings_of_its_container<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sleep", "1000"]).await;
    fixture.running(0).await;
    let script = "echo $GREETING; echo oops >&2; exit 3";
    let ended = fixture.run(&["sh", "-c", script], ALL_OUTPUT, &[]).await;
    assert_eq!(ended, ("hello\n".into(), "oops\n".into(), 3));
    fixture.clean_up().await;
}

pub async fn a_command_reads_its_input_to_the_end<R: Runtime>(fixture: Fixture<R>) {
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

pub async fn a_command_has_a_terminal_if_it_asks_for_one<R: Runtime>(fixture: Fixture<R>) {
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

pub async fn a_command_that_does_not_exist_says_so<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sleep", "1000"]).await;
    fixture.running(0).await;
    let (stdout, stderr, code) = fixture.run(&["no-such-program"], ALL_OUTPUT, &[]).await;
    let said = format!("{stdout}{stderr}");
    // CRI-O passes on a line of the OCI runtime's log, in which quotes are escaped, and that runtime's exit code.
    let (said, codes) = match said.starts_with("time=") {
        true => (said.replace('\\', ""), [255].as_slice()),
        false => (said, [126, 127].as_slice()),
    };
    assert!(
        said.contains("\"no-such-program\": executable file not found in $PATH"),
        "{said}"
    );
    assert!(codes.contains(&code), "{code}");
    fixture.clean_up().await;
}

pub async fn a_command_ends_when_its_client_leaves<R: Runtime>(fixture: Fixture<R>) {
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
    fixture.wait_until_no_process_has(&mark).await;
    fixture.running(0).await;
    fixture.clean_up().await;
}

pub async fn a_command_ends_with_its_container<R: Runtime>(fixture: Fixture<R>) {
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

pub async fn a_client_that_attaches_reads_what_is_written_from_now_on<R: Runtime>(
    fixture: Fixture<R>,
) {
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
    // The container may end before this command, which then ends with it: its exit code says nothing.
    fixture.run(&["touch", "go"], ALL_OUTPUT, &[]).await;
    let pieces = timeout(TIMEOUT, output.collect::<Vec<_>>()).await.unwrap();
    let pieces = pieces.into_iter().map(|piece| match piece.unwrap() {
        Output::Stdout(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    });
    assert_eq!(pieces.collect::<String>(), "late\n");
    fixture.clean_up().await;
}

pub async fn a_connection_reaches_a_port_of_the_pod_and_is_closed_by_halves<R: Runtime>(
    fixture: Fixture<R>,
) {
    let port = (fixture.machine.free_port)();
    let number = port.to_string();
    let server = ["busybox", "nc", "-ll", "-p", &number, "-e", "cat"];
    fixture.start(0, &server).await;
    fixture.running(0).await;
    let data = "ping\n".repeat(20_000);
    let echo = fixture.exchange(port, &data).await;
    assert!(echo == data);
    fixture.clean_up().await;
}

pub async fn a_port_without_a_listener_refuses<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sleep", "1000"]).await;
    fixture.running(0).await;
    let port = (fixture.machine.free_port)();
    let refused = fixture.runtime.connect(&uid(), port).await.err().unwrap();
    let message = refused.to_string();
    assert!(message.starts_with("dial tcp "), "{message}");
    assert!(
        message.ends_with(&format!(":{port}: connect: connection refused")),
        "{message}"
    );
    fixture.clean_up().await;
}

pub async fn a_container_that_has_failed_leaves_the_end_of_its_log_as_its_message<R: Runtime>(
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
