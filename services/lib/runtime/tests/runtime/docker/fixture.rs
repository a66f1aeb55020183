//! Fixtures for the docker runtime. Tests are skipped with a message if no engine answers.

use std::process::Command;

use bollard::query_parameters::CreateImageOptionsBuilder;
use bollard::{API_DEFAULT_VERSION, body_full};
use futures::TryStreamExt as _;
use setpoint_runtime::contract::{Fixture, IMAGE, Woken, uid};
use setpoint_runtime::docker::{Docker, Engine, Settings, sweep};
use setpoint_testkit::busybox_files;
use tokio::sync::OnceCell;

/// Path of the engine's socket.
pub const SOCKET: &str = "/var/run/docker.sock";
const SLEEP: &str = r#"CMD ["sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait"]"#;

/// Removes everything of a cluster when dropped.
pub struct Cleanup(String);

impl Drop for Cleanup {
    fn drop(&mut self) {
        let cluster = self.0.clone();
        let swept = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let _ = runtime.block_on(sweep(&Settings::default(), &cluster));
        });
        let _ = swept.join();
    }
}

pub fn cluster() -> String {
    format!("test-{}", uid())
}

pub fn settings() -> Settings {
    Settings {
        cluster: cluster(),
        network: "setpoint-test".into(),
        pause_image: IMAGE.into(),
        ..Settings::default()
    }
}

/// Returns a client of the engine, with the test image imported; `None` if no engine answers.
pub async fn client() -> Option<bollard::Docker> {
    let client = bollard::Docker::connect_with_unix(SOCKET, 60, API_DEFAULT_VERSION).ok();
    let answered = match &client {
        Some(client) => client.ping().await.is_ok(),
        None => false,
    };
    if !answered {
        eprintln!("SKIPPED: no Docker engine answers at {SOCKET}");
        return None;
    }
    static IMPORTED: OnceCell<()> = OnceCell::const_new();
    let client = client?;
    let known = async {
        let (name, tag) = IMAGE.split_once(':').unwrap();
        if client.inspect_image(IMAGE).await.is_err() {
            import(&client, name, tag, "").await;
        }
    };
    IMPORTED.get_or_init(|| known).await;
    Some(client)
}

/// Imports the test image under this name. An image with a `mark` of its own shares no layer with others.
pub async fn import(client: &bollard::Docker, name: &str, tag: &str, mark: &str) {
    let files = busybox_files(mark).into_inner().unwrap();
    import_files(client, name, tag, files).await;
}

/// Imports an image that can run the agent's binary, which is linked dynamically here; returns its name.
pub async fn import_with_libraries(client: &bollard::Docker) -> String {
    let linked = Command::new("ldd")
        .arg(env!("CARGO_BIN_EXE_runtime-program"))
        .output();
    let linked = String::from_utf8(linked.unwrap().stdout).unwrap();
    let mut archive = busybox_files("libraries");
    for path in linked
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
    {
        let library = std::fs::read(path).unwrap();
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_size(library.len().try_into().unwrap());
        let path = path.trim_start_matches('/');
        archive
            .append_data(&mut header, path, library.as_slice())
            .unwrap();
    }
    let (name, tag) = ("setpoint-test/libraries", "1");
    import_files(client, name, tag, archive.into_inner().unwrap()).await;
    format!("{name}:{tag}")
}

async fn import_files(client: &bollard::Docker, name: &str, tag: &str, files: Vec<u8>) {
    let options = CreateImageOptionsBuilder::default()
        .from_src("-")
        .repo(name)
        .tag(tag)
        .changes(vec![SLEEP.to_owned()])
        .build();
    let files = body_full(files.into());
    let import = client.create_image(Some(options), Some(files), None);
    import.try_collect::<Vec<_>>().await.unwrap();
}

pub async fn fixture() -> Option<Fixture<Docker>> {
    client().await?;
    Some(fixture_with(settings()).await)
}

pub async fn fixture_with(settings: Settings) -> Fixture<Docker> {
    let engine = Engine::connect(&settings).await.unwrap();
    fixture_of(engine, settings).await
}

pub async fn fixture_of(engine: Engine, settings: Settings) -> Fixture<Docker> {
    let woken = Woken::default();
    let swept = Cleanup(engine.cluster.clone());
    let runtime = Docker::open(engine, &settings, "node", woken.wake(), |_| {}).await;
    Fixture::new(runtime.unwrap(), crate::MACHINE, woken, swept)
}
