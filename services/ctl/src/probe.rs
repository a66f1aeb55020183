//! Asking a process over HTTP whether it is ready.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A process that does not answer a health check so long is not well.
const PATIENCE: Duration = Duration::from_secs(2);
/// Health reports are short; more would not be one.
const LONGEST: u64 = 16 << 10;

/// Ready, or why not.
pub type Readiness = Result<(), String>;

/// Asks the process that listens on `port`.
pub async fn ask(port: u16, path: &str) -> Readiness {
    let address = (Ipv4Addr::LOCALHOST, port).into();
    match timeout(PATIENCE, fetch(address, path, LONGEST)).await {
        Ok(Ok(answer)) => judge(&answer),
        Ok(Err(_)) => Err("does not listen".to_owned()),
        Err(_) => Err("does not answer".to_owned()),
    }
}

/// What a process answers, head and all, but no more than `longest` bytes of it.
pub async fn fetch(address: SocketAddr, path: &str, longest: u64) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    // HTTP/1.0, so that the answer ends with the connection.
    stream
        .write_all(format!("GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n").as_bytes())
        .await?;
    let mut answer = Vec::new();
    stream.take(longest).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn judge(answer: &str) -> Readiness {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    if head
        .lines()
        .next()
        .is_some_and(|status| status.contains(" 200"))
    {
        return Ok(());
    }
    let failed = body.lines().find_map(|line| line.strip_prefix("[-]"));
    Err(failed.unwrap_or("not ready").replacen(" failed:", ":", 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_check_that_fails_is_the_reason() {
        assert_eq!(judge("HTTP/1.0 200 OK\r\n\r\nok"), Ok(()));
        let answer = "HTTP/1.0 500 Internal Server Error\r\nx: y\r\n\r\n[+]a ok\n[-]etcd failed: no answer\nreadyz check failed\n";
        assert_eq!(judge(answer), Err("etcd: no answer".to_owned()));
        assert_eq!(judge(""), Err("not ready".to_owned()));
    }

    #[tokio::test]
    async fn where_nobody_listens_nobody_is_ready() {
        let port = crate::port::free(1).unwrap()[0];
        assert_eq!(
            ask(port, "/readyz").await,
            Err("does not listen".to_owned())
        );
    }
}
