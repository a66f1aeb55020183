//! The faults of the soak: one process after the other is killed, frozen or stopped for some seconds.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use setpoint_tests::Cluster;

/// The time within which a process must end after SIGTERM, on a busy machine.
const STOP: Duration = Duration::from_secs(30);

/// How a process fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL, and a restart.
    Kill,
    /// SIGSTOP, then SIGCONT.
    Freeze,
    /// SIGTERM, and a restart.
    Stop,
}

/// The source of faults, which depend on nothing but the seed.
pub struct Faults {
    rng: StdRng,
    processes: Vec<String>,
    next: usize,
    interval: Duration,
    due: Instant,
    ongoing: Option<(String, Fault, Instant)>,
    /// The number of faults by process and kind.
    pub count: BTreeMap<String, u64>,
    /// What went wrong with them.
    pub problems: Vec<String>,
}

impl Faults {
    /// Returns faults of these processes, in turn, each an interval after the one before.
    pub fn new(seed: u64, processes: Vec<String>, interval: Duration) -> Self {
        Self {
            rng: StdRng::seed_from_u64(seed),
            processes,
            next: 0,
            interval,
            due: Instant::now() + interval,
            ongoing: None,
            count: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    /// Begins and ends what is due. With `spare`, the first replica of each service is only frozen, so that its memory
    /// shows whether it grows.
    pub fn step(&mut self, cluster: &mut Cluster, spare: bool) {
        let now = Instant::now();
        match &self.ongoing {
            Some((_, _, end)) if now >= *end => self.end(cluster),
            None if now >= self.due => self.begin(cluster, spare),
            _ => {}
        }
    }

    /// Ends the fault that is going on.
    pub fn end(&mut self, cluster: &mut Cluster) {
        if let Some((name, fault, _)) = self.ongoing.take() {
            match fault {
                Fault::Freeze => cluster.process(&name).signal(Signal::SIGCONT),
                Fault::Kill | Fault::Stop => cluster.process(&name).restart(),
            }
            self.due = Instant::now() + self.interval;
        }
    }

    fn begin(&mut self, cluster: &mut Cluster, spare: bool) {
        let (name, fault, length) = self.choose(spare);
        eprintln!("  {fault:?} {name} for {length:?}");
        let process = cluster.process(&name);
        match fault {
            Fault::Kill => process.kill(),
            Fault::Freeze => process.signal(Signal::SIGSTOP),
            Fault::Stop => match process.stop_within(STOP) {
                Some(true) => {}
                // It ends by the signal once it has stopped.
                Some(false) if name == "etcd-0" => {}
                Some(false) => self.problems.push(format!("{name} did not exit with 0")),
                None => self
                    .problems
                    .push(format!("{name} runs {STOP:?} after SIGTERM")),
            },
        }
        *self.count.entry(format!("{fault:?} {name}")).or_default() += 1;
        self.ongoing = Some((name, fault, Instant::now() + length));
    }

    fn choose(&mut self, spare: bool) -> (String, Fault, Duration) {
        let name = self.processes[self.next % self.processes.len()].clone();
        self.next += 1;
        let fault = match self.rng.random_range(0..3) {
            _ if spare && name.ends_with("-0") && name != "etcd-0" => Fault::Freeze,
            0 => Fault::Kill,
            1 => Fault::Freeze,
            _ => Fault::Stop,
        };
        let length = Duration::from_millis(self.rng.random_range(0..8000));
        (name, fault, length)
    }
}
