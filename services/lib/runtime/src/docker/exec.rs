//! Runs commands in containers of the engine, and connects to the streams of containers.

use std::fs;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error as BollardError;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, ResizeContainerTTYOptionsBuilder, ResizeExecOptionsBuilder,
};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use nix::unistd::Pid;
use setpoint_task::catch_panic;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::task::spawn_blocking;
use tracing::{debug, warn};

use super::{Shared, engine_error};
use crate::descendants::kill_tree;
use crate::streams::{CHUNK, OutputSender, output_channel};
use crate::{ContainerId, Error, Input, Inputs, Output, Outputs, Streams};

/// Exit code of a command whose end the engine does not report, because its container has ended.
const KILLED: i32 = 137;
/// Attempts at reading the exit code and the process of a command and at setting the size of its terminal, and the time
/// between them: the engine may report the end of a command after that of its streams, and has its process and its
/// terminal some time after it was asked to start it.
const ATTEMPTS: u32 = 20;
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A connection to the streams of a process.
pub(super) struct Attached {
    pub(super) output: BoxStream<'static, Result<LogOutput, BollardError>>,
    pub(super) input: Pin<Box<dyn AsyncWrite + Send>>,
    resize: Resize,
}

/// Sets the columns and rows of a terminal.
type Resize = Box<dyn Fn(u16, u16) -> BoxFuture<'static, Result<(), BollardError>> + Send + Sync>;

impl Shared {
    /// Runs a command in a running container.
    pub(super) async fn exec(
        self: &Arc<Self>,
        id: &ContainerId,
        command: &[String],
        streams: Streams,
        input: Inputs,
    ) -> Result<Outputs, Error> {
        let runtime_id = self.table.lock().running(id)?.runtime_id.clone();
        let what = format!("run a command in container {}", id.name);
        let failed = |error| engine_error(what.clone(), error);
        let (exec, attached) = self
            .start_exec(&runtime_id, command, streams, None)
            .await
            .map_err(failed)?;
        let (output, outputs) = output_channel();
        let this = Arc::clone(self);
        tokio::spawn(catch_panic("exec", async move {
            let code = tokio::select! {
                () = output.closed() => return this.kill_exec(&exec, &runtime_id).await,
                relayed = relay(attached, streams, input, &output) => match relayed {
                    Ok(()) => this.exec_code(&exec).await,
                    Err(error) => Err(error),
                },
            };
            let exit = code
                .map(Output::Exit)
                .map_err(|error| engine_error(what, error));
            // The client may have left.
            let _ = output.send(exit).await;
        }));
        Ok(outputs)
    }

    /// Starts a command, as the container's user unless another is named.
    pub(super) async fn start_exec(
        &self,
        runtime_id: &str,
        command: &[String],
        streams: Streams,
        user: Option<&str>,
    ) -> Result<(String, Attached), BollardError> {
        let client = self.engine.client.clone();
        let options = CreateExecOptions {
            attach_stdin: Some(streams.stdin),
            // The end of the streams is the end of the command.
            attach_stdout: Some(true),
            attach_stderr: Some(!streams.tty),
            tty: Some(streams.tty),
            cmd: Some(command.to_vec()),
            user: user.map(ToOwned::to_owned),
            ..CreateExecOptions::default()
        };
        let exec = client.create_exec(runtime_id, options).await?.id;
        let start = StartExecOptions {
            detach: false,
            tty: streams.tty,
            output_capacity: Some(CHUNK),
        };
        let StartExecResults::Attached { output, input } =
            client.start_exec(&exec, Some(start)).await?
        else {
            let message = "the engine did not attach to the command".to_owned();
            return Err(BollardError::IOError {
                err: std::io::Error::other(message),
            });
        };
        let named = exec.clone();
        let resize = move |columns: u16, rows: u16| {
            let options = ResizeExecOptionsBuilder::default()
                .w(columns.into())
                .h(rows.into())
                .build();
            let (client, exec) = (client.clone(), named.clone());
            async move { client.resize_exec(&exec, options).await }.boxed()
        };
        let resize = Box::new(resize);
        Ok((
            exec,
            Attached {
                output,
                input,
                resize,
            },
        ))
    }

    /// Returns the exit code of a command whose streams have ended.
    async fn exec_code(&self, exec: &str) -> Result<i32, BollardError> {
        for _ in 0..ATTEMPTS {
            let inspected = self.engine.client.inspect_exec(exec).await?;
            if let (Some(code), false) = (inspected.exit_code, inspected.running == Some(true)) {
                return Ok(i32::try_from(code).unwrap_or(KILLED));
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
        Ok(KILLED)
    }

    /// Returns the process of a command; `None` if it has ended.
    async fn exec_process(&self, exec: &str) -> Result<Option<i32>, BollardError> {
        for _ in 0..ATTEMPTS {
            let inspected = self.engine.client.inspect_exec(exec).await?;
            let pid = inspected.pid.and_then(|pid| i32::try_from(pid).ok());
            match pid.filter(|pid| *pid > 0) {
                _ if inspected.running != Some(true) => return Ok(None),
                Some(pid) => return Ok(Some(pid)),
                None => tokio::time::sleep(RETRY_INTERVAL).await,
            }
        }
        Ok(None)
    }

    /// Kills a command whose client has left, with all processes that it has started.
    ///
    /// The engine has no call for it. Its processes can only be killed where the agent sees them: not if the agent runs
    /// in a container, where a command that ignores the end of its stdin goes on until its container ends.
    async fn kill_exec(&self, exec: &str, runtime_id: &str) {
        let pid = match self.exec_process(exec).await {
            Ok(Some(pid)) => pid,
            Ok(None) => return,
            Err(error) => return debug!(%error, "cannot find a command whose client has left"),
        };
        if !is_in_container(pid, runtime_id) {
            return debug!(
                container = runtime_id,
                "cannot kill a command whose client has left"
            );
        }
        let runtime_id = runtime_id.to_owned();
        let is_concerned = move |pid: Pid| is_in_container(pid.as_raw(), &runtime_id);
        let killing = spawn_blocking(move || kill_tree(Pid::from_raw(pid), is_concerned));
        if let Err(error) = killing.await {
            warn!(%error, "a command whose client has left may go on");
        }
    }

    /// Connects to the streams of a container's own process.
    pub(super) async fn attach(
        &self,
        id: &ContainerId,
        streams: Streams,
        input: Inputs,
    ) -> Result<Outputs, Error> {
        let runtime_id = self.table.lock().running(id)?.runtime_id.clone();
        let what = format!("attach to container {}", id.name);
        let options = AttachContainerOptionsBuilder::default()
            .stream(true)
            .stdin(streams.stdin)
            .stdout(streams.stdout)
            .stderr(streams.stderr)
            .build();
        let client = self.engine.client.clone();
        let attached = client.attach_container(&runtime_id, Some(options)).await;
        let attached = attached.map_err(|error| engine_error(what.clone(), error))?;
        let resize = move |columns: u16, rows: u16| {
            let options = ResizeContainerTTYOptionsBuilder::default()
                .w(columns.into())
                .h(rows.into());
            let (client, container) = (client.clone(), runtime_id.clone());
            async move {
                client
                    .resize_container_tty(&container, options.build())
                    .await
            }
            .boxed()
        };
        let attached = Attached {
            output: attached.output,
            input: attached.input,
            resize: Box::new(resize),
        };
        let (output, outputs) = output_channel();
        tokio::spawn(catch_panic("attach", async move {
            let relayed = tokio::select! {
                () = output.closed() => return,
                relayed = relay(attached, streams, input, &output) => relayed,
            };
            if let Err(error) = relayed {
                let _ = output.send(Err(engine_error(what, error))).await;
            }
        }));
        Ok(outputs)
    }
}

/// Relays the streams until the output ends.
async fn relay(
    attached: Attached,
    streams: Streams,
    input: Inputs,
    output: &OutputSender,
) -> Result<(), BollardError> {
    let Attached {
        output: mut source,
        input: stdin,
        resize,
    } = attached;
    let copied = async {
        while let Some(piece) = source.next().await {
            let item = match piece? {
                LogOutput::StdErr { message } if streams.stderr => Output::Stderr(message),
                LogOutput::StdOut { message } | LogOutput::Console { message }
                    if streams.stdout =>
                {
                    Output::Stdout(message)
                }
                _ => continue,
            };
            if output.send(Ok(item)).await.is_err() {
                break;
            }
        }
        Ok(())
    };
    let fed = async {
        // Kept until the output ends, for engines that take the end of the input for that of the client.
        let mut stdin = stdin;
        // A command may close its stdin and go on.
        let _ = feed(&mut stdin, streams, input, &resize).await;
        std::future::pending().await
    };
    tokio::select! {
        copied = copied => copied,
        never = fed => never,
    }
}

async fn feed(
    stdin: &mut Pin<Box<dyn AsyncWrite + Send>>,
    streams: Streams,
    mut input: Inputs,
    resize: &Resize,
) -> std::io::Result<()> {
    while let Some(item) = input.next().await {
        match item {
            Input::Stdin(bytes) if streams.stdin => {
                stdin.write_all(&bytes).await?;
                stdin.flush().await?;
            }
            Input::Resize(columns, rows) if streams.tty => set_size(resize, columns, rows).await,
            Input::StdinEnd if streams.stdin => stdin.shutdown().await?,
            _ => {}
        }
    }
    match streams.stdin {
        true => stdin.shutdown().await,
        false => Ok(()),
    }
}

async fn set_size(resize: &Resize, columns: u16, rows: u16) {
    for _ in 0..ATTEMPTS {
        match resize(columns, rows).await {
            Ok(()) => return,
            Err(error) => debug!(%error, "cannot set the size of a terminal"),
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Returns whether the process of this id, as this agent sees it, is one of a container. An agent in another PID
/// namespace than the engine sees other processes under the same ids.
fn is_in_container(pid: i32, runtime_id: &str) -> bool {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    groups.contains(runtime_id)
}
