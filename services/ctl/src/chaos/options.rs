//! The options of `setpoint chaos`.

use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use jiff::SignedDuration;

/// Number of rounds without `--rounds` and `--for`.
const DEFAULT_ROUNDS: u32 = 3;

/// A fault of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// Kill the process, and restart it when another replica has taken over
    Kill,
    /// Freeze the process for longer than its lease duration
    Pause,
    /// Cut the connection to the gateways for longer than the lease duration (local clusters need
    /// `setpoint up --relays`)
    Partition,
    /// Delay writes until another replica leads, with the process frozen meanwhile (needs `setpoint up --relays`)
    Delay,
    /// Stop the process gracefully and restart it
    Restart,
}

/// The faults to inject.
#[derive(Args, Clone, Debug)]
#[command(group(ArgGroup::new("target").required(true).args(["leader", "random"])))]
pub struct Options {
    /// The fault to inject
    #[arg(value_enum)]
    pub fault: Fault,
    /// The service to break, such as replicaset-controller
    #[arg(long, value_name = "NAME")]
    pub service: String,
    /// Break the leader
    #[arg(long)]
    pub leader: bool,
    /// Break a random replica, chosen by the seed
    #[arg(long)]
    pub random: bool,
    /// Number of rounds [default: 3, or unlimited with --for]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Start no round after this time, such as 10m
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub time: Option<Duration>,
    /// Duration of a pause, a partition or a delay, such as 5s [default: the lease duration + 2s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub pause: Option<Duration>,
    /// Seed of all random choices [default: random; it is printed]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Break containers of this Compose project instead of a cluster started by `setpoint up`
    #[arg(long, value_name = "PROJECT")]
    pub compose: Option<String>,
}

impl Options {
    /// Returns the maximum number of rounds.
    pub fn rounds(&self) -> u32 {
        let unlimited = self.time.map_or(DEFAULT_ROUNDS, |_| u32::MAX);
        self.rounds.unwrap_or(unlimited)
    }

    /// Describes the fault and its target in words.
    pub fn description(&self) -> String {
        let target = if self.leader {
            "the leader"
        } else {
            "a random replica"
        };
        format!("{} {target} of {}", self.fault.verb(), self.service)
    }
}

impl Fault {
    fn verb(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::Partition => "cut off",
            Self::Delay => "delay",
            Self::Restart => "restart",
        }
    }

    /// Whether the fault lasts for a configured time, rather than until another replica has taken over.
    pub fn has_duration(self) -> bool {
        matches!(self, Self::Pause | Self::Partition | Self::Delay)
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text.parse().map_err(|error| format!("{error}"))?;
    let duration = Duration::try_from(parsed).map_err(|_| "it must not be negative".to_owned())?;
    match duration.is_zero() {
        true => Err("it must be longer than zero".to_owned()),
        false => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_are_positive() {
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("300ms"), Ok(Duration::from_millis(300)));
        for wrong in ["0s", "-1s", "5", "soon"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
