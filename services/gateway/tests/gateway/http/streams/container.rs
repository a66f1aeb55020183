//! `exec`, `attach` and `log` over WebSocket.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{Client, POD, Plane};

fn exec(query: &str) -> String {
    format!("{POD}/exec?{query}")
}

fn binary(bytes: &'static [u8]) -> Message {
    Message::binary(bytes)
}

/// Asserts that the first message is empty, on the first channel that the client reads.
async fn opened(client: &mut Client, channel: u8) {
    assert_eq!(client.next().await.unwrap(), [channel]);
}

fn status(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn a_command_has_its_output_and_its_exit_code_as_a_status() {
    let plane = Plane::start().await;
    let query = "command=echo&command=a&command=b+c&stdout=true&stderr=true";
    let mut client = plane.socket(&exec(query), "v5.channel.k8s.io").await;
    assert_eq!(client.protocol, "v5.channel.k8s.io");
    let (output, errors) = client.rest(1).await;
    assert_eq!(output, "a b c");
    assert_eq!(
        status(&errors),
        json!({ "metadata": {}, "status": "Success" })
    );
    let opened = &plane.agent.opened()[0];
    assert_eq!(opened.command, ["echo", "a", "b c"]);
    assert_eq!(
        (opened.pod.as_str(), opened.container.as_str()),
        ("web", "main")
    );
    assert!(!opened.uid.is_empty() && opened.stdout && opened.stderr && !opened.stdin);
    let path = exec("command=exit&command=3&stdout=1");
    let mut client = plane.socket(&path, "v4.channel.k8s.io").await;
    let (_, errors) = client.rest(1).await;
    let status = status(&errors);
    assert_eq!(status["reason"], "NonZeroExitCode");
    assert_eq!(
        status["details"]["causes"],
        json!([{ "reason": "ExitCode", "message": "3" }])
    );
    plane.agent.idle().await;
}

#[tokio::test]
async fn stdin_ends_when_a_client_of_version_5_closes_it() {
    let plane = Plane::start().await;
    let path = exec("command=cat&stdin=true&stdout=true");
    let mut client = plane.socket(&path, "v5.channel.k8s.io").await;
    opened(&mut client, 1).await;
    client.send(binary(b"\x00in")).await;
    assert_eq!(client.next().await.unwrap(), b"\x01in");
    client.send(binary(b"\xff\x00")).await;
    let (output, errors) = client.rest(1).await;
    assert_eq!(output, ".");
    assert_eq!(status(&errors)["status"], "Success");
}

#[tokio::test]
async fn sizes_of_a_terminal_have_a_channel() {
    let plane = Plane::start().await;
    let path = exec("command=cat&stdin=true&stdout=true&stderr=true&tty=true");
    let mut client = plane.socket(&path, "v4.channel.k8s.io").await;
    opened(&mut client, 1).await;
    client
        .send(binary(b"\x04{\"Width\":80,\"Height\":24}\n"))
        .await;
    assert_eq!(client.next().await.unwrap(), b"\x0180x24");
    let opened = &plane.agent.opened()[0];
    assert!(opened.tty && !opened.stderr);
}

#[tokio::test]
async fn older_protocols_have_texts_for_errors() {
    let plane = Plane::start().await;
    let path = exec("command=exit&command=3&stdout=1");
    for protocol in ["", "channel.k8s.io"] {
        let mut client = plane.socket(&path, protocol).await;
        assert_eq!(client.protocol, protocol);
        let (_, errors) = client.rest(1).await;
        assert!(errors.ends_with("exit code 3"), "{errors}");
    }
    let path = exec("command=echo&command=a&stdout=1");
    let mut client = plane.socket(&path, "x, base64.channel.k8s.io").await;
    assert_eq!(client.next().await.unwrap(), b"1");
    let expected = format!("1{}", BASE64_STANDARD.encode("a"));
    assert_eq!(client.next().await.unwrap(), expected.into_bytes());
    assert_eq!(client.next().await, None);
}

#[tokio::test]
async fn the_first_message_is_on_a_channel_that_the_client_reads() {
    let plane = Plane::start().await;
    let path = exec("command=complain&stderr=1");
    let mut client = plane.socket(&path, "v4.channel.k8s.io").await;
    opened(&mut client, 2).await;
    assert_eq!(client.rest(2).await.0, "no");
    let path = exec("command=exit&command=0&stdin=1");
    let mut client = plane.socket(&path, "v4.channel.k8s.io").await;
    opened(&mut client, 3).await;
}

#[tokio::test]
async fn an_attachment_ends_with_the_container() {
    let plane = Plane::start().await;
    let path = format!("{POD}/attach?container=main&stdin=1&stdout=1");
    let mut client = plane.socket(&path, "v5.channel.k8s.io").await;
    opened(&mut client, 1).await;
    client.send(binary(b"\x00a")).await;
    assert_eq!(client.next().await.unwrap(), b"\x01a");
    client.send(binary(b"\xff\x00")).await;
    let (output, errors) = client.rest(1).await;
    assert_eq!(output, ".");
    assert_eq!(status(&errors)["status"], "Success");
    assert!(plane.agent.opened()[0].command.is_empty());
}

#[tokio::test]
async fn streams_that_break_are_a_failure() {
    let plane = Plane::start().await;
    let path = exec("command=break&stdout=1");
    let mut client = plane.socket(&path, "v5.channel.k8s.io").await;
    let (_, errors) = client.rest(1).await;
    let status = status(&errors);
    assert_eq!(status["reason"], "InternalError");
    assert_eq!(
        status["message"],
        "Internal error occurred: error executing command in container: the node is gone"
    );
}

/// The agent is told, even if it only writes, or only waits.
#[tokio::test]
async fn a_client_that_leaves_ends_the_call() {
    let plane = Plane::start().await;
    for command in ["cat", "flood"] {
        let path = exec(&format!("command={command}&stdin=1&stdout=1"));
        let mut client = plane.socket(&path, "v5.channel.k8s.io").await;
        opened(&mut client, 1).await;
        drop(client);
        plane.agent.idle().await;
    }
}

#[tokio::test]
async fn a_log_is_sent_in_messages() {
    let plane = Plane::start().await;
    let path = format!("{POD}/log");
    let mut client = plane.socket(&path, "binary.k8s.io").await;
    assert_eq!(client.next().await.unwrap(), b"one\n");
    assert_eq!(client.next().await.unwrap(), b"two\n");
    assert_eq!(client.next().await, None);
    let mut client = plane.socket(&path, "base64.binary.k8s.io").await;
    let expected = BASE64_STANDARD.encode("one\n").into_bytes();
    assert_eq!(client.next().await.unwrap(), expected);
    let plain = plane.api.get(&path).await;
    assert_eq!(plain.body, "one\ntwo\n");
}
