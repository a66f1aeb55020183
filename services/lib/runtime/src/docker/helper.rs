//! The agent's own binary in pause containers, for an agent whose container does not reach the network and the volumes
//! of Pods: as in compose.yaml, where it is in another network, so that Pods do not reach its port.
//!
//! A volume of the node holds the binary, which pause containers can only read. It must be linked statically, as those
//! of the images are.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error as BollardError;
use bollard::models::{Mount, MountType, MountVolumeOptions};
use bollard::query_parameters::AttachContainerOptionsBuilder;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;
use tokio_util::io::StreamReader;

use super::exec::Attached;
use super::identity::{CLUSTER, Labels, NODE};
use super::{Shared, create, engine_error};
use crate::streams::{CHUNK, Unconnected};
use crate::{Connection, Error, File, MAX_FILE, Streams, Volume, hosts, layout};

/// Directory of the binary in pause containers.
const FOLDER: &str = "/.setpoint";
const BINARY: &str = "/.setpoint/node-agent";
/// The first byte that the binary writes once it is connected.
const CONNECTED: u8 = b'+';
/// Timeout of a connection, and of the engine to begin it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time to write to a volume.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a file that is overwritten.
const MAX_CONTENT: u64 = MAX_FILE as u64;
/// The time for which a connection is kept without data after its client has ended its half, or is gone.
const LINGER: Duration = Duration::from_secs(60);

impl Shared {
    /// Returns the mount of the binary in pause containers, if it is needed.
    pub(super) fn helper_mount(&self) -> Option<Mount> {
        self.engine.helper.as_ref().map(|_| self.mount_helper(true))
    }

    fn mount_helper(&self, read_only: bool) -> Mount {
        Mount {
            typ: Some(MountType::VOLUME),
            source: Some(format!("k8s_agent_{}_{}", self.engine.cluster, self.node)),
            target: Some(FOLDER.to_owned()),
            read_only: Some(read_only),
            volume_options: Some(MountVolumeOptions {
                labels: Some(self.node_labels()),
                ..MountVolumeOptions::default()
            }),
            ..Mount::default()
        }
    }

    fn node_labels(&self) -> Labels {
        let labels = [(CLUSTER, &self.engine.cluster), (NODE, &self.node)];
        let labels = labels.map(|(label, value)| (label.to_owned(), value.clone()));
        labels.into()
    }

    /// Copies the binary to its volume, unless this agent has done so.
    async fn ensure_helper(&self, program: &Path) -> Result<(), Error> {
        let upload = || async {
            let binary = tokio::fs::read(program).await;
            let content = binary.map_err(|source| Error::State {
                what: "the binary of the agent".to_owned(),
                source,
            })?;
            let file = File {
                path: BINARY.to_owned(),
                content,
                mode: 0o755,
                user: None,
            };
            let mount = self.mount_helper(false);
            self.copy_to(mount, self.node_labels(), &[file]).await
        };
        self.helper.get_or_try_init(upload).await?;
        Ok(())
    }

    /// Runs the binary in a Pod's pause container.
    async fn run_helper(
        &self,
        program: &Path,
        uid: &str,
        arguments: &[&str],
    ) -> Result<Attached, Error> {
        let pause = self.pauses.lock().get(uid).cloned();
        let pause = pause
            .ok_or_else(|| Error::Unknown(uid.to_owned()))?
            .runtime_id;
        let what = "run the agent in a pause container";
        let failed = |error| engine_error(what, error);
        self.ensure_helper(program).await?;
        let command = [&[BINARY], arguments].concat();
        let command: Vec<_> = command.into_iter().map(ToOwned::to_owned).collect();
        let streams = Streams {
            stdin: true,
            stdout: true,
            stderr: true,
            tty: false,
        };
        let started = self
            .start_exec(&pause, &command, streams, Some("0:0"))
            .await;
        started.map(|(_, attached)| attached).map_err(failed)
    }

    /// Connects to a port of a Pod from within.
    pub(super) async fn dial_within(
        &self,
        program: &Path,
        uid: &str,
        ip: Ipv4Addr,
        port: u16,
    ) -> Result<Connection, Error> {
        let refused = |source| {
            Error::Connect(Unconnected {
                address: (ip, port).into(),
                source,
            })
        };
        let arguments = ["dial", &ip.to_string(), &port.to_string()];
        let Attached {
            mut output, input, ..
        } = self.run_helper(program, uid, &arguments).await?;
        let first = timeout(CONNECT_TIMEOUT, output.next()).await;
        let first = match first {
            Err(_) => return Err(refused(io::ErrorKind::TimedOut.into())),
            Ok(Some(Ok(LogOutput::StdOut { message }))) if message.first() == Some(&CONNECTED) => {
                message.slice(1..)
            }
            Ok(Some(Ok(other))) => {
                let message = String::from_utf8_lossy(&other.into_bytes())
                    .trim()
                    .to_owned();
                return Err(refused(match message.contains("refused") {
                    true => io::ErrorKind::ConnectionRefused.into(),
                    false => io::Error::other(message),
                }));
            }
            Ok(_) => return Err(refused(io::ErrorKind::ConnectionReset.into())),
        };
        let rest = output
            .map_err(io::Error::other)
            .try_filter_map(|piece| async {
                Ok(match piece {
                    LogOutput::StdOut { message } => Some(message),
                    _ => None,
                })
            });
        let first =
            futures::stream::iter((!first.is_empty()).then_some(Ok::<Bytes, io::Error>(first)));
        let reader = StreamReader::new(Box::pin(first.chain(rest)));
        Ok(Box::pin(tokio::io::join(reader, input)))
    }

    /// Returns what the binary says in a Pod's pause container.
    pub(super) async fn ask_within(
        &self,
        program: &Path,
        uid: &str,
        arguments: &[&str],
    ) -> Result<String, Error> {
        let attached = self.run_helper(program, uid, arguments).await?;
        let said = attached.output.try_filter_map(|piece| async {
            Ok(match piece {
                LogOutput::StdOut { message } => Some(message),
                _ => None,
            })
        });
        let said: Vec<_> = said
            .try_collect()
            .await
            .map_err(|error| engine_error("run the agent in a pause container", error))?;
        Ok(String::from_utf8_lossy(&said.concat()).into_owned())
    }

    /// Runs the binary with this input in a container that writes to a volume and ends with that, because the pause
    /// container only reads it.
    pub(super) async fn write_within(
        &self,
        program: &Path,
        uid: &str,
        volume: &Volume,
        arguments: &[&str],
        input: &[u8],
    ) -> Result<(), Error> {
        self.ensure_helper(program).await?;
        let failed = |error| {
            engine_error(
                format!("write to volume {:?} of Pod {uid}", volume.name),
                error,
            )
        };
        let mounts = vec![
            self.mount_helper(true),
            create::volume_mount(uid, volume, false),
        ];
        let command = [&[BINARY], arguments].concat();
        let body = create::writer(&self.pause_image, self.labels_of_pod(uid), mounts, &command);
        let name = format!("k8s_write_{uid}_{}", volume.name);
        let made = self.create_named(&name, body, |_| false).await;
        let writer = made.map_err(failed)?.runtime_id;
        let ended = timeout(WRITE_TIMEOUT, self.run_writer(&writer, input)).await;
        self.destroy(&writer).await?;
        let failed_to_write = |message: String| Error::State {
            what: format!("volume {:?} of Pod {uid}", volume.name),
            source: io::Error::other(message),
        };
        match ended {
            Ok(Ok(None)) => Ok(()),
            Ok(Ok(Some(said))) => Err(failed_to_write(said)),
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => Err(failed_to_write("not written in time".to_owned())),
        }
    }

    /// Runs a container of the agent to its end with this input. Returns what it says if it fails.
    async fn run_writer(&self, writer: &str, input: &[u8]) -> Result<Option<String>, BollardError> {
        let client = &self.engine.client;
        let options = AttachContainerOptionsBuilder::default()
            .stream(true)
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .build();
        let mut attached = client.attach_container(writer, Some(options)).await?;
        client.start_container(writer, None).await?;
        let written = async {
            attached.input.write_all(input).await?;
            attached.input.shutdown().await
        };
        // If it does not read, it has said why.
        let (_, said) = tokio::join!(
            written,
            attached
                .output
                .map_ok(LogOutput::into_bytes)
                .try_collect::<Vec<_>>()
        );
        let said = String::from_utf8_lossy(&said?.concat()).trim().to_owned();
        let ended = std::pin::pin!(client.wait_container(writer, None))
            .next()
            .await;
        match ended {
            Some(Err(BollardError::DockerContainerWaitError { .. })) => Ok(Some(said)),
            Some(Err(error)) => Err(error),
            _ => Ok(None),
        }
    }
}

/// Connects to an address and forwards stdin and stdout: the subcommand `dial <ip> <port>`.
pub fn dial(ip: &str, port: &str) -> ExitCode {
    let forwarded = || {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let ip: Ipv4Addr = ip.parse().map_err(invalid)?;
        let port: u16 = port.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
        let stream = TcpStream::connect_timeout(&(ip, port).into(), CONNECT_TIMEOUT)?;
        forward(&stream)
    };
    exit_code(forwarded())
}

fn forward(stream: &TcpStream) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(&[CONNECTED])?;
    stdout.flush()?;
    let upload = stream.try_clone()?;
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut &upload);
        let _ = upload.shutdown(Shutdown::Write);
        // The client may be gone.
        let _ = upload.set_read_timeout(Some(LINGER));
    });
    let mut chunk = vec![0; CHUNK];
    loop {
        match (&*stream).read(&mut chunk)? {
            0 => return Ok(()),
            length => stdout.write_all(&chunk[..length])?,
        }
        stdout.flush()?;
    }
}

/// Replaces the files of a volume by those of the archive on stdin: the subcommand `publish <folder> <version>`.
pub fn publish(folder: &str, version: &str) -> ExitCode {
    let published = layout::publish(Path::new(folder), version, io::stdin().lock());
    exit_code(published.map(|_| ()))
}

/// Gives a file the content of stdin: the subcommand `overwrite <file>`.
pub fn overwrite(file: &Path) -> ExitCode {
    let mut content = Vec::new();
    let read = io::stdin()
        .lock()
        .take(MAX_CONTENT)
        .read_to_end(&mut content);
    exit_code(read.and_then(|_| hosts::overwrite(file, &content)))
}

fn exit_code(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
