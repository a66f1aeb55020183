//! A minimal HTTP client: one request per connection.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::wait::DEADLINE;

/// A response.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status code; 0 if the response has none.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// Sends a GET request to `address`, `<host>:<port>`.
///
/// # Errors
/// The connection fails, or there is no response in time.
pub fn get(address: &str, path: &str) -> std::io::Result<Reply> {
    send("GET", address, path, &[], "")
}

/// Sends a request. `headers` must contain the type of the body.
///
/// # Errors
/// The connection fails, or there is no response in time.
pub fn send(
    method: &str,
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<Reply> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    let headers = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"));
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {}\r\n{}\r\n{body}",
        body.len(),
        headers.collect::<String>()
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok(Reply {
        status: status.unwrap_or_default(),
        body: body.to_owned(),
    })
}
