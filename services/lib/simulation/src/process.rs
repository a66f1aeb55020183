//! A process of the simulation: its connections, its tasks, its faults.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use setpoint_controller::{Client, client};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Log;
use crate::endpoint::Endpoint;
use crate::faults::Faults;
use crate::turns::Turns;

/// The bytes that a connection buffers in each direction.
const BUFFER: usize = 64 << 10;
const TIMEOUT: Duration = Duration::from_secs(10);

/// A process: dropping it is a crash.
pub(crate) struct Process {
    pub(crate) faults: watch::Sender<Faults>,
    endpoint: Endpoint,
    /// Its own tasks, and those of its connections. They are shared with the connector, which adds some.
    tasks: Arc<Mutex<JoinSet<()>>>,
}

impl Process {
    pub(crate) fn new(name: &str, gateway: Router, turns: Turns, log: Log) -> Self {
        let faults = watch::Sender::default();
        let endpoint = Endpoint {
            process: name.into(),
            gateway,
            faults: faults.clone(),
            turns,
            log,
        };
        Self {
            faults,
            endpoint,
            tasks: Arc::default(),
        }
    }

    /// Returns a client with a connection of its own.
    pub(crate) fn client(&self, writer: &str) -> Client {
        let settings = client::Settings {
            address: "http://simulation".into(),
            timeout: TIMEOUT,
            ..client::Settings::default()
        };
        let endpoint = Client::endpoint(&settings).unwrap();
        let (gateway, tasks) = (self.endpoint.clone(), Arc::downgrade(&self.tasks));
        let connector = tower::service_fn(move |_| {
            let connected = match tasks.upgrade() {
                Some(tasks) => Ok(connect(gateway.clone(), &mut tasks.lock())),
                None => Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
            };
            std::future::ready(connected)
        });
        let channel = endpoint.connect_with_connector_lazy(connector);
        Client::over(channel, &settings, writer)
    }

    /// Runs a task of the process.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().spawn(task);
    }
}

/// Opens a connection.
fn connect(gateway: Endpoint, tasks: &mut JoinSet<()>) -> TokioIo<DuplexStream> {
    let (near, far) = duplex(BUFFER);
    let answer = service_fn(move |request| gateway.clone().answer(request));
    let served =
        http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(far), answer);
    tasks.spawn(async move {
        // It ends with an error when the process has crashed.
        let _ = served.await;
    });
    TokioIo::new(near)
}
