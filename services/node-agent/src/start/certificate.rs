//! The request for a certificate of the node, for an agent that knows its name only once it runs.

use std::fs::File;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use jiff::Timestamp;
use nix::fcntl::{Flock, FlockArg};
use setpoint_host::private;
use setpoint_tls::{Credentials, Files};
use tokio::time::{sleep, timeout};
use tracing::info;

/// The time within which the request is answered.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The time between two looks at the answer.
const INTERVAL: Duration = Duration::from_millis(100);

/// Requests a certificate of the node `name` by a file in the directory `requests`, and waits for `files` in the
/// directory of that name.
///
/// # Errors
/// If another process has the name, or there is no usable certificate in time.
pub async fn request(requests: &Path, name: &str, files: Files) -> anyhow::Result<Files> {
    if name.is_empty() || name.contains('/') {
        bail!("without the name of a node, nothing can be requested in certificate_requests");
    }
    let path = requests.join(name);
    let file = private::options().write(true).open(&path);
    let file = file.with_context(|| format!("cannot write {}", path.display()))?;
    let held = Flock::lock(file, FlockArg::LockExclusiveNonblock)
        .map_err(|_| anyhow!("another agent is the one of node {name}"))?;
    hold(held);
    let files = of_node(name, &files);
    info!(node = name, "requested a certificate");
    let answered = timeout(TIMEOUT, answer(&files)).await;
    answered.with_context(|| format!("nobody has answered {} in time", path.display()))?;
    Ok(files)
}

/// Holds the name until the process ends, by which the next agent with the name knows that it is free.
fn hold(name: Flock<File>) {
    tokio::spawn(async move {
        pending::<()>().await;
        drop(name);
    });
}

/// Returns the files in the directory of the node.
fn of_node(name: &str, files: &Files) -> Files {
    let below = |path: &Path| -> PathBuf {
        let file = path.file_name().unwrap_or_default();
        path.with_file_name(name).join(file)
    };
    Files {
        ca_file: below(&files.ca_file),
        certificate_file: below(&files.certificate_file),
        key_file: below(&files.key_file),
    }
}

/// Waits until the files can be used.
async fn answer(files: &Files) {
    loop {
        let credentials = Credentials::load(files);
        if credentials.is_ok_and(|credentials| credentials.expiry() > Timestamp::now()) {
            return;
        }
        sleep(INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use setpoint_tls::authority::{Authority, Leaf, Usage, write_certificates};

    use super::*;

    fn issue(files: &Files, hours: u64) {
        let authority = Authority::create("test").unwrap();
        let leaf = Leaf {
            name: "system:node:n".to_owned(),
            groups: Vec::new(),
            hosts: Vec::new(),
            usage: Usage::Client,
            lifetime: Duration::from_secs(hours * 3_600),
        };
        write_certificates(&files.ca_file, &[authority.certificate()]).unwrap();
        authority.issue(&leaf).unwrap().write(files).unwrap();
    }

    /// Checks that an expired certificate, as after a long sleep, is no answer.
    #[tokio::test(start_paused = true)]
    async fn a_request_is_answered_by_a_certificate_that_is_valid() {
        let volume = tempfile::tempdir().unwrap();
        let requests = volume.path().join("requests");
        fs::create_dir(&requests).unwrap();
        fs::create_dir(volume.path().join("n")).unwrap();
        let files = Files::in_directory(&volume.path().join("n"));
        issue(&files, 0);
        let request = |name: &'static str| {
            let (requests, given) = (requests.clone(), Files::in_directory(volume.path()));
            tokio::spawn(async move { request(&requests, name, given).await })
        };
        let waiting = request("n");
        sleep(Duration::from_secs(1)).await;
        assert!(!waiting.is_finished());
        assert!(requests.join("n").exists());
        issue(&files, 1);
        assert_eq!(waiting.await.unwrap().unwrap(), files);
        let other = request("n").await.unwrap().unwrap_err().to_string();
        assert_eq!(other, "another agent is the one of node n");
        let late = request("m").await.unwrap().unwrap_err().to_string();
        assert!(late.starts_with("nobody has answered "), "{late}");
    }
}
