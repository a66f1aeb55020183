//! Readiness of a process over HTTP or HTTPS, for `<service> health` and for launchers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::http::header::HOST;
use setpoint_tls::Credentials;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::http_client::{self, Answer};
use crate::unverified_tls;

/// The time limit of a response.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Health reports are short; more would not be one.
const MAX_BYTES: usize = 16 << 10;

/// Requests `/readyz` of the process that listens at `listen`.
///
/// # Errors
/// Why it is not ready, in one line.
pub(crate) async fn ready(listen: SocketAddr, is_tls: bool) -> Result<(), String> {
    if listen.port() == 0 {
        return Err(
            "cannot be asked: it listens on any free port; give --listen a port".to_owned(),
        );
    }
    match is_tls {
        true => ask_over_tls(reachable(listen), "/readyz").await,
        false => ask(reachable(listen), "/readyz").await,
    }
}

/// The unspecified address cannot be connected to; a process that listens on it listens on the loopback, too.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// Requests the health report at `path` of the process at `address`.
///
/// # Errors
/// Why it is not ready, in one line that goes on where its name left off.
pub async fn ask(address: SocketAddr, path: &str) -> Result<(), String> {
    let url = format!("http://{address}{path}");
    judge_within(address, http_client::get(&url, MAX_BYTES)).await
}

/// Requests the health report at `path` of the process at `address`, as [`ask`] does, over TLS. Its certificate is not
/// verified, since the answer decides nothing but whether it is called ready.
///
/// # Errors
/// Why it is not ready, in one line that goes on where its name left off.
pub async fn ask_over_tls(address: SocketAddr, path: &str) -> Result<(), String> {
    let answer = async {
        let connection = TcpStream::connect(address).await?;
        let host = address.ip().to_string();
        let connection = unverified_tls::connect(&host, connection).await;
        let connection = connection.map_err(anyhow::Error::msg)?;
        let request = Request::get(path).header(HOST, address.to_string());
        http_client::send_on(connection, request.body(Body::empty())?, MAX_BYTES).await
    };
    judge_within(address, answer).await
}

/// Requests the health report at `path` of the process at `address` over TLS, as a client with these credentials.
///
/// # Errors
/// Why it is not ready, in one line that goes on where its name left off.
pub async fn ask_as(
    credentials: &Credentials,
    address: SocketAddr,
    path: &str,
) -> Result<(), String> {
    let url = format!("https://{address}{path}");
    let answer = async {
        let request = Request::get(url).body(Body::empty())?;
        http_client::send_as(Some(credentials), request, MAX_BYTES).await
    };
    judge_within(address, answer).await
}

/// Judges the answer of the process at `address`, if it comes in time.
async fn judge_within(
    address: SocketAddr,
    answer: impl Future<Output = anyhow::Result<Answer>>,
) -> Result<(), String> {
    match timeout(TIMEOUT, answer).await {
        Ok(Ok(answer)) => judge(&answer),
        Ok(Err(error)) => {
            let cause = error.root_cause();
            Err(format!("does not listen on {address}: {cause}"))
        }
        Err(_) => Err(format!("does not answer within {} s", TIMEOUT.as_secs())),
    }
}

fn judge(answer: &Answer) -> Result<(), String> {
    if answer.status == 200 {
        return Ok(());
    }
    let lines = answer.body.lines();
    let failed: Vec<_> = lines
        .filter_map(|line| line.strip_prefix("[-]"))
        .map(|line| line.replacen(" failed:", ":", 1))
        .collect();
    match failed.is_empty() {
        true => Err(format!("is not ready: it answered {}", answer.status)),
        false => Err(format!("is not ready: {}", failed.join("; "))),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    #[test]
    fn every_check_that_fails_is_a_reason() {
        let judge = |status, body: &str| {
            judge(&Answer {
                status,
                body: body.to_owned(),
                ..Answer::default()
            })
        };
        assert_eq!(judge(StatusCode::OK, "ok"), Ok(()));
        let body =
            "[+]a ok\n[-]etcd failed: no answer\n[-]cache failed: starting\nreadyz check failed\n";
        assert_eq!(
            judge(StatusCode::INTERNAL_SERVER_ERROR, body).unwrap_err(),
            "is not ready: etcd: no answer; cache: starting"
        );
        assert_eq!(
            judge(StatusCode::NOT_FOUND, "").unwrap_err(),
            "is not ready: it answered 404 Not Found"
        );
    }

    #[test]
    fn who_listens_everywhere_is_asked_on_the_loopback() {
        let ask = |listen: &str| reachable(listen.parse().unwrap()).to_string();
        assert_eq!(ask("0.0.0.0:8080"), "127.0.0.1:8080");
        assert_eq!(ask("[::]:8080"), "[::1]:8080");
        assert_eq!(ask("10.1.2.3:80"), "10.1.2.3:80");
    }

    #[tokio::test]
    async fn where_nobody_listens_nobody_is_ready() {
        // Bound without listening, so that connections to the port are refused.
        let held = TcpSocket::new_v4().unwrap();
        held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = held.local_addr().unwrap();
        let why = ask(address, "/readyz").await.unwrap_err();
        let known = format!("does not listen on {address}: ");
        assert!(why.starts_with(&known), "{why}");
    }

    #[tokio::test]
    async fn a_connection_that_ends_without_an_answer_is_a_failure() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let _ = listener.accept().await;
            }
        });
        assert!(ask(address, "/readyz").await.is_err());
    }
}
