//! Asking a process over HTTP, most of all whether it is ready: what `<service> health` does, and who watches others.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A process that does not answer so long is not well.
const PATIENCE: Duration = Duration::from_secs(2);
/// Health reports are short; more would not be one.
const LONGEST: u64 = 16 << 10;

/// The answer of a process.
#[derive(Debug)]
pub struct Answer {
    /// The first line, such as `HTTP/1.1 200 OK`.
    pub status: String,
    /// The body.
    pub body: String,
}

impl Answer {
    fn read(answer: &str) -> Self {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
        Self {
            status: head.lines().next().unwrap_or_default().to_owned(),
            body: body.to_owned(),
        }
    }

    /// Did all go well?
    pub fn is_ok(&self) -> bool {
        self.status.split(' ').nth(1) == Some("200")
    }
}

/// Asks whoever listens at `listen` for its `/readyz`.
///
/// # Errors
/// Why it is not ready, in one line.
pub(crate) async fn ready(listen: SocketAddr) -> Result<(), String> {
    if listen.port() == 0 {
        return Err(
            "cannot be asked: it listens on any free port; give --listen a port".to_owned(),
        );
    }
    ask(reachable(listen), "/readyz").await
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

/// Asks whoever listens at `address` for its health report at `path`.
///
/// # Errors
/// Why it is not ready, in one line that goes on where its name left off.
pub async fn ask(address: SocketAddr, path: &str) -> Result<(), String> {
    match timeout(PATIENCE, fetch(address, path, LONGEST)).await {
        Ok(Ok(answer)) => judge(&answer),
        Ok(Err(error)) => Err(format!("does not listen on {address}: {error}")),
        Err(_) => Err(format!("does not answer within {} s", PATIENCE.as_secs())),
    }
}

/// What a process answers, but no more than `longest` bytes of it, its head included.
///
/// # Errors
/// When it cannot be reached, or the connection breaks.
pub async fn fetch(address: SocketAddr, path: &str, longest: u64) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(address).await?;
    // HTTP/1.0, so that the answer ends with the connection.
    let request = format!("GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(longest).read_to_end(&mut answer).await?;
    Ok(Answer::read(&String::from_utf8_lossy(&answer)))
}

fn judge(answer: &Answer) -> Result<(), String> {
    if answer.is_ok() {
        return Ok(());
    }
    let lines = answer.body.lines();
    let failed: Vec<_> = lines
        .filter_map(|line| line.strip_prefix("[-]"))
        .map(|line| line.replacen(" failed:", ":", 1))
        .collect();
    match failed.is_empty() {
        true => Err(format!("is not ready: it answered {:?}", answer.status)),
        false => Err(format!("is not ready: {}", failed.join("; "))),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpSocket;

    use super::*;

    #[test]
    fn every_check_that_fails_is_a_reason() {
        let judge = |answer: &str| judge(&Answer::read(answer));
        assert_eq!(judge("HTTP/1.0 200 OK\r\n\r\nok"), Ok(()));
        let answer = "HTTP/1.0 500 Internal Server Error\r\nx: y\r\n\r\n\
            [+]a ok\n[-]etcd failed: no answer\n[-]cache failed: starting\nreadyz check failed\n";
        assert_eq!(
            judge(answer).unwrap_err(),
            "is not ready: etcd: no answer; cache: starting"
        );
        assert!(judge("").is_err(), "no answer is not a good one");
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
        // It has the port, so that nobody else listens there, and does not listen itself.
        let held = TcpSocket::new_v4().unwrap();
        held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = held.local_addr().unwrap();
        let why = ask(address, "/readyz").await.unwrap_err();
        let known = format!("does not listen on {address}: ");
        assert!(why.starts_with(&known), "{why}");
    }
}
