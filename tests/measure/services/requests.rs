//! Latency of requests, on connections that stand and on new ones, and the CPU time of a connection.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::Ways;
use super::plane::Plane;
use super::server::MESSAGE;
use crate::report::Report;

/// The clients, each with a connection of its own and a request each millisecond.
const CLIENTS: u32 = 2;
const PERIOD: Duration = Duration::from_millis(1);
/// The time of a turn of each way.
const TURN: Duration = Duration::from_millis(500);
/// The new connections of a turn, and the number of turns.
const CONNECTIONS: usize = 500;
const TURNS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(5);

/// Sorted times.
struct Times(Vec<Duration>);

impl Times {
    fn percentile(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let found = self.0.get((last as f64 * share) as usize);
        found.copied().unwrap_or_default().as_secs_f64() * 1e6
    }
}

/// Reports latencies of 2 000 requests a second, and of new connections one after another, of both ways in turn.
pub fn measure(
    report: &mut Report,
    plane: &mut Plane,
    ways: Ways,
    seconds: f64,
) -> anyhow::Result<()> {
    let backend = plane.backend;
    let turns = (seconds / TURN.as_secs_f64()).ceil() as usize;
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..turns {
        for ((_, at), times) in ways.named().into_iter().zip(&mut times) {
            times.extend(steady(at)?);
        }
    }
    added(
        report,
        &format!("{backend}: latency at 2 000 requests/s"),
        times,
    );
    let mut times = [Vec::new(), Vec::new()];
    let mut spent = [[Duration::ZERO; 2]; 2];
    for _ in 0..TURNS {
        for (way, (_, at)) in ways.named().into_iter().enumerate() {
            let before = plane.spent();
            for _ in 0..CONNECTIONS {
                times[way].push(connection(at)?);
            }
            let after = plane.spent();
            for (sum, (after, before)) in spent[way].iter_mut().zip(after.into_iter().zip(before)) {
                *sum += after - before;
            }
        }
    }
    added(
        report,
        &format!("{backend}: a request with its connection"),
        times,
    );
    let each = |time: Duration| time.as_secs_f64() * 1e6 / (TURNS * CONNECTIONS) as f64;
    let [direct, service] = spent;
    let ends = each(service[0]) - each(direct[0]);
    report.add(
        format!("{backend}: CPU of a connection, both ends, added"),
        ends,
        "µs",
    );
    report.add(
        format!("{backend}: CPU of a connection, the proxy"),
        each(service[1]),
        "µs",
    );
    Ok(())
}

/// Reports percentiles of both ways and their differences.
fn added(report: &mut Report, what: &str, times: [Vec<Duration>; 2]) {
    let [direct, service] = times.map(|mut times| {
        times.sort_unstable();
        Times(times)
    });
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let [direct, service] = [&direct, &service].map(|times| times.percentile(share));
        report.add(format!("{what}, direct, {name}"), direct, "µs");
        report.add(format!("{what}, added, {name}"), service - direct, "µs");
    }
}

/// Sends a request each millisecond from each client, and returns the latencies.
fn steady(at: SocketAddr) -> anyhow::Result<Vec<Duration>> {
    let client = |number| move || one(at, PERIOD / CLIENTS * number);
    let ended: Vec<_> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| scope.spawn(client(number)))
            .collect();
        let ended = clients
            .into_iter()
            .map(|one| one.join().expect("it does not panic"));
        ended.collect()
    });
    let times: Result<Vec<_>, _> = ended.into_iter().collect();
    Ok(times?.concat())
}

fn one(at: SocketAddr, offset: Duration) -> anyhow::Result<Vec<Duration>> {
    let mut stream = open(at)?;
    exchange(&mut stream)?;
    let (start, mut times) = (Instant::now() + offset, Vec::new());
    for number in 0.. {
        let begin = PERIOD * number;
        if begin > TURN {
            break;
        }
        thread::sleep((start + begin).saturating_duration_since(Instant::now()));
        let begun = Instant::now();
        exchange(&mut stream)?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

/// Connects, sends one request, and returns the time until its answer.
fn connection(at: SocketAddr) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    exchange(&mut open(at)?)?;
    Ok(begun.elapsed())
}

/// Connects to a server.
pub fn open(at: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&at, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends a request and reads its answer.
pub fn exchange(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut message = [1; MESSAGE];
    stream.write_all(&message)?;
    stream.read_exact(&mut message)
}
