//! A connection to the engine whose answers are lost, late or doubled.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bollard::query_parameters::{ListContainersOptionsBuilder, ListVolumesOptionsBuilder};
use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_proto::core::ResourceRequirements;
use setpoint_runtime::contract::{Fixture, POLL_INTERVAL, id, programs, uid};
use setpoint_runtime::docker::{Docker, Engine, Settings};
use setpoint_runtime::{
    Connection, ContainerConfig, ContainerId, Error, ImageOrigin, Inputs, Log, LogOptions, Outputs,
    Reading, Runtime, Sandbox, SandboxConfig, State as ContainerState, Streams, Volume,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::fixture::{SOCKET, client, cluster, fixture_of, settings};

/// The time by which an answer is late.
const DELAY: Duration = Duration::from_millis(50);
/// The length of an id of the engine.
const ID: usize = 64;
/// The call that creates a container, before its name.
const CREATE: &str = "/containers/create?name=";
/// Calls that stream, and the first ones of a client.
const UNTOUCHED: [&str; 8] = [
    "/attach",
    "/events",
    "/exec",
    "/images/create",
    "/logs",
    "/stats",
    "/wait",
    "/_ping",
];

#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The connection is closed before the first answer to each call.
    Lost,
    /// The first answer to each call arrives later.
    Late,
    /// Each request is sent again once it was carried out. Only the second answer arrives.
    Doubled,
}

struct Calls {
    fault: Fault,
    begun: AtomicBool,
    seen: Mutex<HashSet<String>>,
    /// Names of containers by id.
    names: Mutex<HashMap<String, String>>,
}

impl Calls {
    /// Returns the fault of a call. A container that replaces another is called by the same name.
    fn fault(&self, line: &str) -> Option<Fault> {
        let untouched = UNTOUCHED.iter().any(|call| line.contains(call));
        if untouched || !self.begun.load(Ordering::SeqCst) {
            return None;
        }
        let names = self.names.lock();
        let named = names
            .iter()
            .fold(line.to_owned(), |line, (id, name)| line.replace(id, name));
        let first = self.seen.lock().insert(named);
        (first || matches!(self.fault, Fault::Doubled)).then_some(self.fault)
    }

    /// Remembers the id of a container that was created.
    fn remember(&self, line: &str, answer: &[u8]) {
        let answer = String::from_utf8_lossy(answer);
        let name = line.split_once(CREATE);
        let id = answer
            .split_once(r#"{"Id":""#)
            .and_then(|(_, rest)| rest.get(..ID));
        if let (Some((_, name)), Some(id)) = (name, id) {
            let name = name.split([' ', '&']).next().unwrap();
            self.names.lock().insert(id.to_owned(), name.to_owned());
        }
    }

    /// Relays one call. The client opens a connection for each.
    async fn relay(&self, mut caller: UnixStream) -> io::Result<()> {
        let mut request = Vec::new();
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            if caller.read_buf(&mut request).await? == 0 {
                return Ok(());
            }
        }
        let head = String::from_utf8_lossy(&request);
        let line = head.lines().next().unwrap_or_default().to_owned();
        let mut engine = UnixStream::connect(SOCKET).await?;
        engine.write_all(&request).await?;
        let fault = self.fault(&line);
        let mut answer = Vec::new();
        let awaited = fault.is_some() || line.contains(CREATE);
        while awaited && answer.is_empty() {
            let sent = request.len();
            tokio::select! {
                read = caller.read_buf(&mut request) => match read? {
                    0 => return Ok(()),
                    _ => engine.write_all(&request[sent..]).await?,
                },
                read = engine.read_buf(&mut answer) => if read? == 0 { return Ok(()) },
            }
        }
        self.remember(&line, &answer);
        match fault {
            Some(Fault::Lost) => return Ok(()),
            Some(Fault::Late) => sleep(DELAY).await,
            Some(Fault::Doubled) => {
                answer.clear();
                engine = UnixStream::connect(SOCKET).await?;
                engine.write_all(&request).await?;
            }
            None => {}
        }
        caller.write_all(&answer).await?;
        copy_bidirectional(&mut caller, &mut engine)
            .await
            .map(|_| ())
    }
}

/// A socket that leads to the engine.
pub struct Answers {
    folder: TempDir,
    calls: Arc<Calls>,
    _accept: AbortOnDropHandle<()>,
}

impl Answers {
    fn with(fault: Fault) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("engine.sock")).unwrap();
        let calls = Arc::new(Calls {
            fault,
            begun: AtomicBool::new(false),
            seen: Mutex::default(),
            names: Mutex::default(),
        });
        let relayed = Arc::clone(&calls);
        let accept = tokio::spawn(async move {
            let mut relays = JoinSet::new();
            while let Ok((caller, _)) = listener.accept().await {
                let calls = Arc::clone(&relayed);
                relays.spawn(async move { calls.relay(caller).await });
            }
        });
        Self {
            folder,
            calls,
            _accept: AbortOnDropHandle::new(accept),
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }
}

/// Returns a runtime whose connection has this fault.
pub async fn fixture_with(fault: Fault) -> Option<Fixture<Unsure>> {
    client().await?;
    let answers = Arc::new(Answers::with(fault));
    let settings = Settings {
        socket: answers.socket(),
        ..settings()
    };
    let engine = Engine::connect(&settings).await.unwrap();
    let fixture = fixture_of(engine, settings).await;
    answers.calls.begun.store(true, Ordering::SeqCst);
    Some(fixture.map(|docker| Unsure {
        docker,
        _answers: answers,
    }))
}

/// Returns the names of all containers and volumes of a cluster.
pub async fn all_of(cluster: &str) -> Vec<String> {
    let client = client().await.unwrap();
    let filters = HashMap::from([("label", vec![format!("setpoint.dev/cluster={cluster}")])]);
    let containers = ListContainersOptionsBuilder::default()
        .all(true)
        .filters(&filters)
        .build();
    let containers = client.list_containers(Some(containers)).await.unwrap();
    let volumes = ListVolumesOptionsBuilder::default()
        .filters(&filters)
        .build();
    let volumes = client.list_volumes(Some(volumes)).await.unwrap().volumes;
    let names = containers
        .into_iter()
        .flat_map(|found| found.names.unwrap());
    let volumes = volumes
        .unwrap_or_default()
        .into_iter()
        .map(|volume| volume.name);
    let mut all: Vec<_> = names.chain(volumes).collect();
    all.sort();
    all
}

/// The docker runtime, with each call repeated until the engine answers, as the agent repeats them.
#[derive(Clone)]
pub struct Unsure {
    docker: Docker,
    _answers: Arc<Answers>,
}

async fn repeat<T, F>(call: impl Fn() -> F + Send) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>> + Send,
{
    for _ in 0..100 {
        match call().await {
            Err(Error::Engine { .. }) => sleep(POLL_INTERVAL).await,
            answered => return answered,
        }
    }
    call().await
}

impl Runtime for Unsure {
    const NAME: &'static str = Docker::NAME;
    const RUNS_COMMANDS: bool = Docker::RUNS_COMMANDS;
    const RUNS_IMAGES: bool = Docker::RUNS_IMAGES;

    fn mounts_volumes(&self) -> bool {
        self.docker.mounts_volumes()
    }

    fn sandboxes(&self, pod: &Key) -> Vec<Sandbox> {
        self.docker.sandboxes(pod)
    }

    fn state(&self, id: &ContainerId) -> Option<ContainerState> {
        self.docker.state(id)
    }

    fn pods(&self) -> Vec<Key> {
        self.docker.pods()
    }

    async fn run_sandbox(&self, config: SandboxConfig) -> Result<(), Error> {
        repeat(|| self.docker.run_sandbox(config.clone())).await
    }

    async fn update_volumes(&self, uid: &str, volumes: Vec<Volume>) -> Result<(), Error> {
        repeat(|| self.docker.update_volumes(uid, volumes.clone())).await
    }

    async fn start(&self, config: ContainerConfig) -> Result<ImageOrigin, Error> {
        repeat(|| self.docker.start(config.clone())).await
    }

    async fn resize(&self, id: &ContainerId, to: &ResourceRequirements) -> Result<(), Error> {
        repeat(|| self.docker.resize(id, to)).await
    }

    async fn stop(&self, id: &ContainerId, grace: Duration) -> Result<(), Error> {
        repeat(|| self.docker.stop(id, grace)).await
    }

    async fn log(&self, id: &ContainerId, options: &LogOptions) -> Result<Log, Error> {
        self.docker.log(id, options).await
    }

    async fn exec(
        &self,
        id: &ContainerId,
        command: &[String],
        streams: Streams,
        input: Inputs,
    ) -> Result<Outputs, Error> {
        self.docker.exec(id, command, streams, input).await
    }

    async fn attach(
        &self,
        id: &ContainerId,
        streams: Streams,
        input: Inputs,
    ) -> Result<Outputs, Error> {
        self.docker.attach(id, streams, input).await
    }

    async fn connect(&self, uid: &str, port: u16) -> Result<Connection, Error> {
        self.docker.connect(uid, port).await
    }

    async fn readings(&self) -> HashMap<ContainerId, Reading> {
        self.docker.readings().await
    }

    async fn remove(&self, id: &ContainerId) -> Result<(), Error> {
        repeat(|| self.docker.remove(id)).await
    }

    async fn remove_sandbox(&self, uid: &str) -> Result<(), Error> {
        repeat(|| self.docker.remove_sandbox(uid)).await
    }
}

/// Checks DG1.
pub async fn a_pod_exists_once_and_leaves_nothing<R: Runtime>(fixture: Fixture<R>) {
    let (uid, runtime) = (uid(), &fixture.runtime);
    fixture.start(0, &["sh", "-c", "echo ran; sleep 1"]).await;
    fixture.start(1, &[]).await;
    fixture.running(1).await;
    fixture.exited(0).await;
    assert_eq!(fixture.log(0, LogOptions::default()).await, "ran\n");
    let engine = ["POD", "main"].map(|name| format!("/k8s_{name}_web_default_{uid}"));
    let [pause, main] = &engine;
    let left = [
        format!("{pause}_0"),
        format!("/k8s_files_{uid}"),
        format!("{main}_0"),
        format!("{main}_1"),
        format!("k8s_{uid}_setpoint.termination"),
    ];
    assert_eq!(all_of(&cluster()).await, left);
    runtime.remove(&id(0)).await.unwrap();
    assert_eq!(all_of(&cluster()).await.len(), left.len() - 1);
    runtime.stop(&id(1), Duration::ZERO).await.unwrap();
    fixture.exited(1).await;
    for _ in 0..2 {
        runtime.remove_sandbox(&uid).await.unwrap();
        assert_eq!(all_of(&cluster()).await, Vec::<String>::new());
    }
}

/// Checks DG1: a message is read once. The engine runs a container that has ended again if it is asked to, so that this cannot
/// hold if requests are doubled.
#[tokio::test]
async fn a_message_is_read_although_an_answer_is_lost() {
    if let Some(fixture) = fixture_with(Fault::Lost).await {
        programs::a_container_that_has_failed_leaves_the_end_of_its_log_as_its_message(fixture)
            .await;
    }
}
