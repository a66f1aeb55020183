//! The agent's own binary in pause containers, for an agent whose container does not reach the network and the volumes of
//! Pods: as in compose.yaml, where it is in another network, so that Pods do not reach its port.
//!
//! A volume of the node holds the binary. It must be linked statically, as those of the images are.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error as BollardError;
use bollard::models::{Mount, MountType, MountVolumeOptions};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;
use tokio_util::io::StreamReader;

use super::exec::Attached;
use super::identity::{CLUSTER, NODE};
use super::{Shared, engine_error, volume};
use crate::runtime::streams::{CHUNK, Unconnected};
use crate::runtime::{Connection, Error, File, Streams, layout};

/// Directory of the binary in pause containers.
const FOLDER: &str = "/.setpoint";
const BINARY: &str = "/.setpoint/node-agent";
/// The first byte that the binary writes once it is connected.
const CONNECTED: u8 = b'+';
/// Timeout of a connection, and of the engine to begin it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time for which a connection is kept without data after its client has ended its half, or is gone.
const LINGER: Duration = Duration::from_secs(60);

impl Shared {
    /// Returns the mount of the binary in pause containers, if it is needed.
    pub(super) fn helper_mount(&self) -> Option<Mount> {
        let labels = [(CLUSTER, &self.engine.cluster), (NODE, &self.node)];
        let labels = labels.map(|(label, value)| (label.to_owned(), value.clone()));
        self.engine.helper.as_ref().map(|_| Mount {
            typ: Some(MountType::VOLUME),
            source: Some(format!("k8s_agent_{}_{}", self.engine.cluster, self.node)),
            target: Some(FOLDER.to_owned()),
            volume_options: Some(MountVolumeOptions {
                labels: Some(labels.into()),
                ..MountVolumeOptions::default()
            }),
            ..Mount::default()
        })
    }

    /// Runs the binary in a Pod's pause container.
    async fn run_helper(
        &self,
        program: &Path,
        uid: &str,
        arguments: &[&str],
    ) -> Result<(String, Attached), Error> {
        let pause = self.pauses.lock().get(uid).cloned();
        let pause = pause
            .ok_or_else(|| Error::Unknown(uid.to_owned()))?
            .runtime_id;
        let what = "run the agent in a pause container";
        let failed = |error| engine_error(what, error);
        let upload = || async {
            let binary = tokio::fs::read(program).await;
            let file = File {
                path: BINARY.to_owned(),
                content: binary.map_err(|err| BollardError::IOError { err })?,
                mode: 0o755,
                user: None,
            };
            volume::copy(&self.engine, &pause, &[file]).await
        };
        self.helper.get_or_try_init(upload).await.map_err(failed)?;
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
        started.map_err(failed)
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
        let (
            _,
            Attached {
                mut output, input, ..
            },
        ) = self.run_helper(program, uid, &arguments).await?;
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
        let (_, attached) = self.run_helper(program, uid, arguments).await?;
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

    /// Publishes a new version of a volume's files from within.
    pub(super) async fn publish_within(
        &self,
        program: &Path,
        uid: &str,
        arguments: &[&str],
        archive: &[u8],
    ) -> Result<(), Error> {
        let (exec, attached) = self.run_helper(program, uid, arguments).await?;
        let Attached {
            output, mut input, ..
        } = attached;
        let failed = |source| Error::State {
            what: format!("a volume of Pod {uid}"),
            source,
        };
        let written = async {
            input.write_all(archive).await?;
            input.shutdown().await
        };
        // If it does not read, it has said why.
        let (_, said) = tokio::join!(
            written,
            output.map_ok(LogOutput::into_bytes).try_collect::<Vec<_>>()
        );
        let what = "run the agent in a pause container";
        let said = said.map_err(|error| engine_error(what, error))?.concat();
        let code = self.exec_code(&exec).await;
        match code.map_err(|error| engine_error(what, error))? {
            0 => Ok(()),
            _ => Err(failed(io::Error::other(
                String::from_utf8_lossy(&said).trim().to_owned(),
            ))),
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

fn exit_code(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
