//! A line to a server that can be cut.

use std::path::{Path, PathBuf};

use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

/// Passes on whatever comes in at one socket to another, until it is cut.
pub struct Line {
    from: PathBuf,
    to: PathBuf,
    task: Option<JoinHandle<()>>,
}

impl Line {
    pub fn new(from: &Path, to: &str) -> Self {
        let (from, to) = (from.to_owned(), to.into());
        let mut line = Self {
            from,
            to,
            task: None,
        };
        line.mend();
        line
    }

    /// Ends all connections; nobody listens from here on.
    pub async fn cut(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            let _ = task.await;
        }
        std::fs::remove_file(&self.from).unwrap();
    }

    /// Listens again.
    pub fn mend(&mut self) {
        let listener = UnixListener::bind(&self.from).unwrap();
        let to = self.to.clone();
        self.task = Some(tokio::spawn(async move {
            let mut calls = JoinSet::new();
            while let Ok((mut caller, _)) = listener.accept().await {
                let to = to.clone();
                calls.spawn(async move {
                    let mut callee = UnixStream::connect(to).await.unwrap();
                    let _ = copy_bidirectional(&mut caller, &mut callee).await;
                });
            }
        }));
    }
}
