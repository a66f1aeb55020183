//! What to break, how often and for how long.

use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use jiff::SignedDuration;

/// As many rounds as there are without `--rounds` and `--for`.
const FEW: u32 = 3;

/// What to do to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// End it without warning, and start it again once another has taken over
    Kill,
    /// Freeze it for longer than its lease lasts, then let it go on
    Pause,
    /// Cut it off the gateways for longer than its lease lasts (a local cluster needs `setpoint up --relays` for it)
    Partition,
    /// Hold back what it sends, freeze it, and let that arrive when another leads (only with `setpoint up --relays`)
    Delay,
    /// Stop it in good order and start it again
    Restart,
}

/// How to break it.
#[derive(Args, Clone, Debug)]
#[command(group(ArgGroup::new("whom").required(true).args(["leader", "random"])))]
pub struct Options {
    /// What to do
    #[arg(value_enum)]
    pub fault: Fault,
    /// To whom: a service, such as replicaset-controller
    #[arg(long, value_name = "NAME")]
    pub service: String,
    /// To the replica that leads
    #[arg(long)]
    pub leader: bool,
    /// To any replica, as the seed has it
    #[arg(long)]
    pub random: bool,
    /// How often [default: 3, or as often as --for allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Begin no round after so long, such as 10m
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub time: Option<Duration>,
    /// How long a pause, a partition or a delay lasts, such as 5s [default: 2s longer than the lease]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub pause: Option<Duration>,
    /// The same seed makes the same choices [default: any, and printed]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Break containers of this compose project, instead of a cluster that `setpoint up` started
    #[arg(long, value_name = "PROJECT")]
    pub compose: Option<String>,
}

impl Options {
    /// The most rounds.
    pub fn rounds(&self) -> u32 {
        let unlimited = self.time.map_or(FEW, |_| u32::MAX);
        self.rounds.unwrap_or(unlimited)
    }

    /// What is done to whom, in words.
    pub fn described(&self) -> String {
        let whom = if self.leader {
            "the leader"
        } else {
            "a random replica"
        };
        format!("{} {whom} of {}", self.fault.verb(), self.service)
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

    /// Is the process to stay broken for a while, whoever takes over meanwhile?
    pub fn lasts(self) -> bool {
        matches!(self, Self::Pause | Self::Partition | Self::Delay)
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text.parse().map_err(|error| format!("{error}"))?;
    let duration = Duration::try_from(parsed).map_err(|_| "it lies in the past".to_owned())?;
    match duration.is_zero() {
        true => Err("it must be longer than zero".to_owned()),
        false => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_people_write_them() {
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("300ms"), Ok(Duration::from_millis(300)));
        for wrong in ["0s", "-1s", "5", "soon"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
