//! Measures a replica of the cluster's DNS: questions by UDP about Services, and memory.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::json;
use setpoint_proto::core::Service;
use setpoint_tests::{Address, Cluster, client, free_port};
use tokio::task::{JoinSet, spawn_blocking};

use crate::process::{cpu, memory};
use crate::report::Report;

const SERVICES: u32 = 10_000;
const CALLERS: usize = 8;
/// The clients, each with one question at a time.
const CLIENTS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(2);
const REPLICA: &str = "dns-0";

/// Reports questions a second, their latency and CPU time, and memory without and with Services.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let mut cluster = Cluster::bare();
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let flags = [
        format!("--dns-listen={at}"),
        "--forward-upstreams=none".to_owned(),
    ];
    cluster.service("dns", 0, &flags);
    let replica = cluster.process(REPLICA).pid();
    spawn_blocking(move || until_answered(at, "kubernetes", PATIENCE * 30)).await??;
    let before = memory(replica);
    report.add("DNS: memory of a replica", mib(before), "MiB");
    fill(&cluster.gateway_url()).await?;
    let last = format!("service-{}", SERVICES - 1);
    spawn_blocking(move || until_answered(at, &last, PATIENCE * 30)).await??;
    let with = memory(replica);
    report.add(
        "DNS: memory of a replica with 10 000 Services",
        mib(with),
        "MiB",
    );
    let each = with.saturating_sub(before) as f64 / f64::from(SERVICES) / 1024.0;
    report.add("DNS: memory for a Service", each, "KiB");
    let begun = cpu(replica);
    let times = spawn_blocking(move || load(at, Duration::from_secs_f64(seconds))).await??;
    let spent = (cpu(replica) - begun).as_secs_f64() * 1e6 / times.len() as f64;
    report.add("DNS: CPU for a question", spent, "µs");
    report.add(
        "DNS: questions with 16 clients",
        times.len() as f64 / seconds,
        "/s",
    );
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let at = ((times.len() - 1) as f64 * share) as usize;
        report.add(
            format!("DNS: answer with 16 clients, {name}"),
            times[at].as_secs_f64() * 1e6,
            "µs",
        );
    }
    let what = "published of CoreDNS on two cores (Scaling_CoreDNS.md)";
    report.add(format!("{what}: questions"), 33_700.0, "/s");
    report.add(format!("{what}: mean answer"), 2_600.0, "µs");
    report.add(format!("{what}: memory"), 49.1, "MB");
    report.add(format!("{what}: memory for a Pod or Service"), 0.86, "KB");
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Creates the Services, each with one port.
async fn fill(gateway: &Address) -> anyhow::Result<()> {
    let (client, next) = (client(gateway), Arc::new(AtomicU32::new(0)));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (client, next) = (client.clone(), Arc::clone(&next));
        callers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= SERVICES {
                    return anyhow::Ok(());
                }
                let metadata = json!({"namespace": "default", "name": format!("service-{number}")});
                let spec = json!({"ports": [{"name": "http", "port": 80}]});
                let service = json!({"metadata": metadata, "spec": spec});
                client
                    .create(&serde_json::from_value::<Service>(service)?)
                    .await?;
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    Ok(())
}

/// Asks from all clients for a time, and returns the sorted times of the answers.
fn load(at: SocketAddr, time: Duration) -> anyhow::Result<Vec<Duration>> {
    let end = Instant::now() + time;
    let ended: Vec<_> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || ask(at, client, end)))
            .collect();
        let ended = clients
            .into_iter()
            .map(|one| one.join().expect("it does not panic"));
        ended.collect()
    });
    let all: Result<Vec<_>, _> = ended.into_iter().collect();
    let mut times = all?.concat();
    times.sort_unstable();
    Ok(times)
}

/// Asks for one Service after another. Each must exist.
fn ask(at: SocketAddr, client: usize, end: Instant) -> anyhow::Result<Vec<Duration>> {
    let (socket, mut times) = (socket(at)?, Vec::new());
    for number in (client..).step_by(CLIENTS) {
        if Instant::now() > end {
            break;
        }
        let name = format!("service-{}", number % SERVICES as usize);
        let begun = Instant::now();
        ensure!(is_answered(&socket, &name)?, "{name} has no address");
        times.push(begun.elapsed());
    }
    Ok(times)
}

/// Asks until a Service has an address.
fn until_answered(at: SocketAddr, service: &str, patience: Duration) -> anyhow::Result<()> {
    let end = Instant::now() + patience;
    while !is_answered(&socket(at)?, service).unwrap_or_default() {
        ensure!(Instant::now() < end, "{service} has no address");
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn socket(at: SocketAddr) -> anyhow::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(at)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Asks for the address of a Service, and returns whether there is one.
fn is_answered(socket: &UdpSocket, service: &str) -> anyhow::Result<bool> {
    let mut answer = [0; 512];
    socket.send(&question(service))?;
    let length = socket.recv(&mut answer)?;
    // The number of answers, in the header.
    Ok(length > 12 && answer[6..8] == [0, 1])
}

/// Returns the question for the address of a Service of the namespace `default`, in the format of RFC 1035.
fn question(service: &str) -> Vec<u8> {
    let header = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let mut message = Vec::from(header);
    for label in [service, "default", "svc", "cluster", "local", ""] {
        message.push(u8::try_from(label.len()).expect("labels are short"));
        message.extend(label.as_bytes());
    }
    // A, IN
    message.extend([0, 1, 0, 1]);
    message
}
