//! Measures what probes cost. Not run with the other tests.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_proto::core::{Container, HttpGetAction, Pod, Probe, ProbeHandler};
use setpoint_proto::meta::IntOrString;
use setpoint_runtime::Wake;

use super::{Begin, Probes};
use crate::pod::events::Events;
use crate::pod::fake::Fake;
use crate::pod::health::{Health, ProbeResults};

const CONTAINERS: usize = 1000;
const PERIOD: Duration = Duration::from_secs(10);
const PERIODS: u32 = 3;

/// Prints the part of a core that an HTTP probe of each of a thousand containers takes, in a period of ten seconds. The
/// README has the command for an optimised build.
#[test]
#[ignore = "takes half a minute"]
fn the_part_of_a_core_that_a_thousand_probes_take_is_printed() {
    let port = serve();
    let machine = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    machine.block_on(async {
        let all: Vec<_> = (0..CONTAINERS).map(|index| begin(index, port)).collect();
        // Each is probed once before the measurement.
        tokio::time::sleep(PERIOD).await;
        let before = cpu_time();
        tokio::time::sleep(PERIOD * PERIODS).await;
        let used = cpu_time() - before;
        let is_passing = |probes: &&Arc<Probes>| {
            let results = probes.results("uid-1");
            let mut results = results.values();
            results.any(|results| results.readiness == Health::Passing)
        };
        let passing = all.iter().filter(is_passing).count();
        let part = used.as_secs_f64() / (PERIOD * PERIODS).as_secs_f64();
        println!(
            "{CONTAINERS} probes each {PERIOD:?}, {passing} of which pass: {:.2} % of a core",
            part * 100.0
        );
    });
}

/// Begins the probe of a container that has run for a while, so that the first ones are spread over a period.
fn begin(index: usize, port: u16) -> Arc<Probes> {
    let runtime = Fake::new();
    let probe = Probe {
        handler: ProbeHandler {
            http_get: Some(HttpGetAction {
                port: IntOrString {
                    int_val: port.into(),
                    ..IntOrString::default()
                },
                ..HttpGetAction::default()
            }),
            ..ProbeHandler::default()
        },
        period_seconds: 10,
        timeout_seconds: 5,
        success_threshold: 1,
        failure_threshold: 3,
        ..Probe::default()
    };
    let container = Container {
        readiness_probe: Some(probe),
        ..Container::default()
    };
    let target = runtime.target(container);
    let delay = PERIOD.mul_f64(index as f64 / CONTAINERS as f64);
    let probes = Arc::new(Probes::default());
    let (started, wake) = (Arc::clone(&probes), Arc::new(|_: &_| {}) as Wake);
    tokio::spawn(async move {
        tokio::time::sleep(delay).await;
        let begin = Begin {
            target,
            pod: Arc::new(Pod::default()),
            since: Timestamp::now(),
            results: ProbeResults::default(),
        };
        started.begin(begin, &Events::new(None), &wake);
    });
    probes
}

/// Answers requests in a thread of its own, which is not measured; returns the port.
fn serve() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        }
    });
    port
}

/// Returns the CPU time of this thread.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanos = stat.split_whitespace().next().unwrap();
    Duration::from_nanos(nanos.parse().unwrap())
}
