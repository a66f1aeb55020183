//! Runs commands beside the processes of a container.
//!
//! ```text
//! agent ─▶ node-agent exec ─▶ node-agent confine ─▶ the command
//!          kills all below it   leads a session and
//!          once the agent says  drops privileges
//!          so, or is gone
//! ```

use std::io;
use std::process::Stdio;

use bytes::Bytes;
use futures::StreamExt as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use setpoint_task::catch_panic;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};

use super::Processes;
use super::folder::Folder;
use super::terminal::Terminal;
use crate::streams::{CHUNK, OutputSender, output_channel};
use crate::{ContainerId, Error, Input, Inputs, Output, Outputs, Streams, log_file};

/// Exit code of a command that was killed, as by the end of its container.
const KILLED: i32 = 137;

impl Processes {
    /// Starts a command with its streams.
    pub(super) fn run_command(
        &self,
        id: &ContainerId,
        command: &[String],
        streams: Streams,
        input: Inputs,
    ) -> Result<Outputs, Error> {
        self.shared.table.lock().running(id)?;
        let failed = |source| Error::Exec {
            container: id.name.clone(),
            source,
        };
        let session = self.spawn(id, command, streams).map_err(failed)?;
        let shim = self.shared.shims.lock().get(id).cloned();
        let ended = async move {
            // Without one, the container has ended meanwhile.
            if let Some(shim) = shim {
                shim.gone().await;
            }
        };
        let (output, outputs) = output_channel();
        let name = id.name.clone();
        tokio::spawn(catch_panic("exec", async move {
            session.run(name, input, output, ended).await;
        }));
        Ok(outputs)
    }

    fn spawn(&self, id: &ContainerId, command: &[String], streams: Streams) -> io::Result<Session> {
        let folder: Folder = self.folder(id);
        let mut helper = Command::new(&self.shared.program);
        helper
            .arg("exec")
            .arg(folder.path())
            .arg(std::process::id().to_string())
            .arg(if streams.tty { "tty" } else { "plain" })
            .args(command)
            .env_clear();
        let piped = |wanted| {
            if wanted {
                Stdio::piped()
            } else {
                Stdio::null()
            }
        };
        let terminal = match streams.tty {
            true => {
                let (terminal, peer) = Terminal::open()?;
                helper.stdin(peer.try_clone()?);
                helper.stdout(peer.try_clone()?);
                helper.stderr(peer);
                Some(terminal)
            }
            false => {
                helper.stdin(piped(streams.stdin));
                helper.stdout(piped(streams.stdout));
                helper.stderr(piped(streams.stderr));
                None
            }
        };
        let helper = Helper(helper.spawn()?);
        Ok(Session { helper, terminal })
    }

    /// Follows the output of a container's own process from now on. Its stdin is /dev/null.
    pub(super) fn follow_output(&self, id: &ContainerId) -> Result<Outputs, Error> {
        self.shared.table.lock().running(id)?;
        let path = self.folder(id).path().join("log");
        let pieces = log_file::read(&id.to_string(), path, Some(0), true, self.has_exited(id))?;
        Ok(pieces.map(|piece| piece.map(Output::Stdout)).boxed())
    }
}

/// The process that supervises a command. Dropping it kills the command and its process group.
struct Helper(Child);

impl Drop for Helper {
    fn drop(&mut self) {
        // It has an id until it was waited for, so that no other process can be meant.
        if let Some(pid) = self.0.id() {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGUSR1);
        }
    }
}

/// A running command.
struct Session {
    helper: Helper,
    terminal: Option<Terminal>,
}

impl Session {
    /// Relays the streams until the command ends, its container ends, or the client leaves.
    async fn run(
        mut self,
        container: String,
        input: Inputs,
        output: OutputSender,
        container_ended: impl Future<Output = ()>,
    ) {
        let exit = tokio::select! {
            () = output.closed() => return,
            () = container_ended => Ok(KILLED),
            code = self.relay(input, &output) => code,
        };
        let exit = exit.map(Output::Exit);
        let exit = exit.map_err(|source| Error::Exec { container, source });
        // The client may have left.
        let _ = output.send(exit).await;
    }

    /// Relays the streams until the command ends; returns its exit code.
    async fn relay(&mut self, input: Inputs, output: &OutputSender) -> io::Result<i32> {
        let child = &mut self.helper.0;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let terminal = self.terminal.as_ref();
        let ended = async {
            let (stdout, stderr, terminal) = tokio::join!(
                copy(stdout, output, Output::Stdout),
                copy(stderr, output, Output::Stderr),
                copy_terminal(terminal, output),
            );
            stdout.and(stderr).and(terminal)?;
            // The helper exits with the code of the command.
            Ok(child.wait().await?.code().unwrap_or(KILLED))
        };
        let fed = async {
            // A command may close its stdin and go on.
            let _ = match terminal {
                Some(terminal) => feed_terminal(terminal, input).await,
                None => feed(stdin, input).await,
            };
            std::future::pending().await
        };
        tokio::select! {
            code = ended => code,
            never = fed => never,
        }
    }
}

async fn copy(
    source: Option<impl AsyncRead + Unpin>,
    output: &OutputSender,
    wrap: fn(Bytes) -> Output,
) -> io::Result<()> {
    let Some(mut source) = source else {
        return Ok(());
    };
    loop {
        let mut chunk = bytes::BytesMut::with_capacity(CHUNK);
        if source.read_buf(&mut chunk).await? == 0 {
            return Ok(());
        }
        if output.send(Ok(wrap(chunk.freeze()))).await.is_err() {
            return Ok(());
        }
    }
}

async fn copy_terminal(terminal: Option<&Terminal>, output: &OutputSender) -> io::Result<()> {
    let Some(terminal) = terminal else {
        return Ok(());
    };
    loop {
        let chunk = terminal.read().await?;
        if chunk.is_empty() || output.send(Ok(Output::Stdout(chunk))).await.is_err() {
            return Ok(());
        }
    }
}

async fn feed(stdin: Option<ChildStdin>, mut input: Inputs) -> io::Result<()> {
    let Some(mut stdin) = stdin else {
        return Ok(());
    };
    while let Some(item) = input.next().await {
        match item {
            Input::Stdin(bytes) => stdin.write_all(&bytes).await?,
            Input::StdinEnd => break,
            Input::Resize(..) => {}
        }
    }
    Ok(())
}

async fn feed_terminal(terminal: &Terminal, mut input: Inputs) -> io::Result<()> {
    while let Some(item) = input.next().await {
        match item {
            Input::Stdin(bytes) => terminal.write_all(bytes).await?,
            Input::StdinEnd => {}
            Input::Resize(columns, rows) => terminal.resize(columns, rows)?,
        }
    }
    Ok(())
}
