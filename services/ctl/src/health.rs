//! The readiness check of the processes that this command starts beside the services: one that accepts connections is
//! ready.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// Buffer size for the head of a request; its content is ignored.
const REQUEST_HEAD: usize = 1 << 10;
/// Delay after `accept` failed, for example because of too many open files.
const ACCEPT_RETRY: Duration = Duration::from_millis(10);

/// Answers 200 to any request.
pub async fn serve(listener: TcpListener) {
    loop {
        tokio::spawn(answer(accept(&listener).await));
    }
}

/// Accepts the next connection; retries after errors.
pub async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(_) => sleep(ACCEPT_RETRY).await,
        }
    }
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    // Closing a socket with unread bytes resets the connection, and the answer may be lost.
    let _length = stream.read(&mut [0; REQUEST_HEAD]).await?;
    stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nok").await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use setpoint_host::probe;

    use super::*;

    #[tokio::test]
    async fn a_process_that_listens_is_ready() {
        let health = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = health.local_addr().unwrap();
        tokio::spawn(serve(health));
        assert_eq!(probe::ask(address, "/readyz").await, Ok(()));
    }
}
