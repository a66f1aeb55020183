//! Bytes of one and of many connections, and the CPU time for them.

use std::io::Write as _;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::Ways;
use super::plane::Plane;
use super::requests::open;
use crate::pairs::median;
use crate::report::Report;

const CONNECTIONS: [usize; 2] = [1, 64];
const TURNS: u32 = 5;
/// The number of bytes that are written at once.
const BLOCK: usize = 128 << 10;
const GB: f64 = 1e9;

/// Reports the throughput of both ways in turn, and their ratio.
pub fn measure(
    report: &mut Report,
    plane: &mut Plane,
    ways: Ways,
    seconds: f64,
) -> anyhow::Result<()> {
    let backend = plane.backend;
    let turn = Duration::from_secs_f64(seconds) / TURNS;
    for connections in CONNECTIONS {
        let mut rates = [Vec::new(), Vec::new()];
        let (mut spent, mut sent) = ([[0.0; 2]; 2], [0.0; 2]);
        for _ in 0..TURNS {
            for (way, (_, at)) in ways.named().into_iter().enumerate() {
                let (before, begun) = (plane.spent(), Instant::now());
                let bytes = send(at, connections, turn)? as f64;
                rates[way].push(bytes / begun.elapsed().as_secs_f64());
                let after = plane.spent();
                sent[way] += bytes;
                for process in 0..2 {
                    spent[way][process] += (after[process] - before[process]).as_secs_f64();
                }
            }
        }
        let ratios = rates[1]
            .iter()
            .zip(&rates[0])
            .map(|(service, direct)| service / direct);
        let what = format!("{backend}: throughput of {connections} connections");
        report.add(
            format!("{what}, through a Service ÷ direct"),
            median(ratios.collect()),
            "",
        );
        report.add(
            format!("{what}, direct"),
            median(rates[0].clone()) / GB,
            "GB/s",
        );
        let per_gb = |way: usize, process: usize| spent[way][process] / sent[way] * GB * 1e3;
        let what = format!("{backend}: CPU of a GB, {connections} connections");
        report.add(format!("{what}, both ends, direct"), per_gb(0, 0), "ms");
        report.add(
            format!("{what}, both ends, added"),
            per_gb(1, 0) - per_gb(0, 0),
            "ms",
        );
        report.add(format!("{what}, the proxy"), per_gb(1, 1), "ms");
    }
    Ok(())
}

/// Writes to so many connections for a time, and returns the number of bytes.
fn send(at: SocketAddr, connections: usize, time: Duration) -> anyhow::Result<u64> {
    let streams: Result<Vec<_>, _> = (0..connections).map(|_| open(at)).collect();
    let end = Instant::now() + time;
    let write = |mut stream: std::net::TcpStream| {
        move || {
            let (block, mut sent) = (vec![0; BLOCK], 0);
            while Instant::now() < end {
                stream.write_all(&block)?;
                sent += BLOCK as u64;
            }
            Ok::<_, std::io::Error>(sent)
        }
    };
    let sent: Result<Vec<u64>, _> = thread::scope(|scope| {
        let all: Vec<_> = streams?
            .into_iter()
            .map(|stream| scope.spawn(write(stream)))
            .collect();
        all.into_iter()
            .map(|one| one.join().expect("it does not panic"))
            .collect()
    });
    Ok(sent?.into_iter().sum())
}
