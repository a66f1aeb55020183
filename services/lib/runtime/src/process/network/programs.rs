//! The programs `ip` and `nft`.

use std::io;
use std::process::Stdio;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use super::TIMEOUT;

/// Runs a program with this stdin.
///
/// # Errors
/// With what it has written to its stderr.
pub async fn run(line: &[&str], stdin: &str) -> io::Result<()> {
    let (program, arguments) = line.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let failed = |why: String| io::Error::other(format!("{}: {why}", line.join(" ")));
    let output = async {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        if let Some(mut pipe) = child.stdin.take() {
            // It may end before it has read all.
            let _ = pipe.write_all(stdin.as_bytes()).await;
        }
        child.wait_with_output().await
    };
    let output = timeout(TIMEOUT, output).await;
    let output = output.map_err(|_| failed(format!("has not ended after {TIMEOUT:?}")))?;
    let output = output.map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        )),
    }
}
