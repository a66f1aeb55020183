//! `portforward` over WebSocket, by channels.

use tokio_tungstenite::tungstenite::Message;

use super::{POD, Plane};

#[tokio::test]
async fn each_port_has_a_channel_for_data_and_one_for_errors() {
    let plane = Plane::start().await;
    let path = format!("{POD}/portforward?ports=7,9");
    let mut client = plane.socket(&path, "v4.channel.k8s.io").await;
    let mut begun = Vec::new();
    let mut error = None;
    while begun.len() < 4 || error.is_none() {
        let message = client.next().await.unwrap();
        match message.as_slice() {
            [channel, low, high] => begun.push((*channel, u16::from_le_bytes([*low, *high]))),
            [channel, text @ ..] => {
                error = Some((*channel, String::from_utf8(text.to_vec()).unwrap()));
            }
            [] => panic!("an empty message"),
        }
    }
    begun.sort_unstable();
    assert_eq!(begun, [(0, 7), (1, 7), (2, 9), (3, 9)]);
    let (channel, error) = error.unwrap();
    assert_eq!(channel, 3);
    assert!(
        error.starts_with("error forwarding port 9 to pod web, uid ")
            && error.ends_with(": connection refused"),
        "{error}"
    );
    client.send(Message::binary(&b"\x00ping"[..])).await;
    assert_eq!(client.next().await.unwrap(), b"\x00ping");
    drop(client);
    plane.agent.idle().await;
}

#[tokio::test]
async fn ports_must_be_named() {
    let plane = Plane::start().await;
    for (query, problem) in [
        ("", "query parameter \\\"ports\\\" is required"),
        ("?ports=x", "unable to parse"),
        ("?ports=0", "unable to parse"),
    ] {
        let path = format!("{POD}/portforward{query}");
        let refused = plane.open(&path, "v4.channel.k8s.io").await.err().unwrap();
        assert_eq!(refused.status(), 400);
        let body = String::from_utf8(refused.into_body().unwrap_or_default()).unwrap();
        assert!(body.contains(problem), "{body}");
    }
}
