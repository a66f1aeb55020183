//! The thresholds of eviction, written as the kubelet's flags write them.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;
use setpoint_model::quantity::Amount;
use setpoint_proto::meta;

use crate::node::Pressure;

/// Settings of eviction.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Thresholds that evict Pods at once, as the kubelet's `--eviction-hard`; empty for none.
    ///
    /// For example `memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%`.
    pub hard: String,
    /// Thresholds that evict Pods once they are met for a grace period, as the kubelet's `--eviction-soft`.
    pub soft: String,
    /// Grace periods of the soft thresholds, for example `memory.available=1m30s`.
    pub soft_grace_period: String,
    /// Amounts to be available beyond a threshold once it was met, for example `nodefs.available=500Mi`.
    pub minimum_reclaim: String,
    /// Maximum time that a Pod evicted by a soft threshold has to stop.
    #[serde(with = "DurationText")]
    pub max_pod_grace_period: Duration,
    /// Time for which the node keeps a condition of pressure.
    #[serde(with = "DurationText")]
    pub pressure_transition_period: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            // Without the kubelet's thresholds of disks (10 % and 15 %): on a developer's machine, a full disk is not
            // the node's.
            hard: "memory.available<100Mi".to_owned(),
            soft: String::new(),
            soft_grace_period: String::new(),
            minimum_reclaim: String::new(),
            max_pod_grace_period: Duration::ZERO,
            pressure_transition_period: Duration::from_secs(300),
        }
    }
}

/// A quantity that the node observes, in the order in which shortages are reclaimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// Memory that is free or can be freed at once.
    Memory,
    /// Space of the file system with the state of the agent.
    Nodefs,
    /// Inodes of that file system.
    NodefsInodes,
    /// Space of the file system with the images and the writable layers of containers.
    Imagefs,
    /// Inodes of that file system.
    ImagefsInodes,
}

impl Signal {
    const ALL: [Self; 5] = [
        Self::Memory,
        Self::Nodefs,
        Self::NodefsInodes,
        Self::Imagefs,
        Self::ImagefsInodes,
    ];

    /// Returns the name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory.available",
            Self::Nodefs => "nodefs.available",
            Self::NodefsInodes => "nodefs.inodesFree",
            Self::Imagefs => "imagefs.available",
            Self::ImagefsInodes => "imagefs.inodesFree",
        }
    }

    /// Returns the name of the resource in messages.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Nodefs | Self::Imagefs => "ephemeral-storage",
            Self::NodefsInodes | Self::ImagefsInodes => "inodes",
        }
    }

    /// Returns whether its unit is a file and not a byte.
    pub const fn counts_files(self) -> bool {
        matches!(self, Self::NodefsInodes | Self::ImagefsInodes)
    }

    /// Returns the pressure that a shortage is.
    pub const fn pressure(self) -> Pressure {
        match self {
            Self::Memory => Pressure::Memory,
            Self::Nodefs | Self::NodefsInodes | Self::Imagefs | Self::ImagefsInodes => {
                Pressure::Disk
            }
        }
    }

    fn parse(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|signal| signal.name() == name);
        named.ok_or_else(|| format!("unsupported eviction signal {name}"))
    }
}

/// An amount, or a part of the capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// Bytes or files.
    Absolute(i64),
    /// Percent of the capacity.
    Percent(f64),
}

impl Size {
    /// Returns the amount.
    pub fn of(self, capacity: i64) -> i64 {
        match self {
            Self::Absolute(amount) => amount,
            // Casts of floats saturate.
            Self::Percent(percent) => (capacity as f64 * percent / 100.0) as i64,
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let size = match text.strip_suffix('%') {
            Some(percent) => percent.parse().map(Self::Percent).map_err(drop),
            None => Amount::parse(text)
                .map(|amount| Self::Absolute(amount.value()))
                .map_err(drop),
        };
        match size {
            Ok(Self::Percent(percent)) if !(0.0..=100.0).contains(&percent) => {
                Err(format!("{text:?} must be between 0% and 100%"))
            }
            Ok(Self::Absolute(..0)) => Err(format!("{text:?} must be positive")),
            size => size.map_err(|()| format!("{text:?} is no quantity and no percentage")),
        }
    }

    /// Returns whether a threshold of this size is disabled, as in the kubelet.
    fn is_disabled(self) -> bool {
        matches!(self, Self::Percent(percent) if percent == 0.0 || percent == 100.0)
    }
}

/// A threshold below which Pods are evicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// The signal.
    pub signal: Signal,
    /// The threshold is met if less is available.
    pub size: Size,
    /// Time for which it must be met; `None` for a hard threshold.
    pub grace: Option<Duration>,
    /// The amount to be available beyond `size` once the threshold was met.
    pub reclaim: Option<Size>,
}

impl Settings {
    /// Returns the thresholds.
    ///
    /// # Errors
    /// If a setting is invalid, with its name.
    pub fn thresholds(&self) -> Result<Vec<Threshold>, String> {
        let pairs = |name: &str, text: &str, separator| {
            pairs(text, separator).map_err(|error| format!("eviction.{name}: {error}"))
        };
        let grace = pairs("soft-grace-period", &self.soft_grace_period, '=')?;
        let reclaim = sizes(
            "minimum-reclaim",
            pairs("minimum-reclaim", &self.minimum_reclaim, '=')?,
        )?;
        let hard = sizes("hard", pairs("hard", &self.hard, '<')?)?;
        let soft = sizes("soft", pairs("soft", &self.soft, '<')?)?;
        let hard = hard
            .into_iter()
            .map(|(signal, size)| (signal, size, Ok(None)));
        let soft = soft
            .into_iter()
            .map(|(signal, size)| (signal, size, soft_grace(signal, &grace).map(Some)));
        let all = hard.chain(soft).filter(|(_, size, _)| !size.is_disabled());
        all.map(|(signal, size, grace)| {
            Ok(Threshold {
                signal,
                size,
                grace: grace?,
                reclaim: reclaim.get(&signal).copied(),
            })
        })
        .collect()
    }
}

impl Settings {
    /// Returns what the hard threshold of a resource keeps free of its capacity. As in the kubelet, those of inodes and
    /// of the images' disk keep nothing.
    pub fn reserved(&self, resource: &str, capacity: Amount) -> Amount {
        let signal = match resource {
            "memory" => Signal::Memory,
            "ephemeral-storage" => Signal::Nodefs,
            _ => return Amount::ZERO,
        };
        let thresholds = self.thresholds().unwrap_or_default();
        let mut hard = thresholds.iter().filter(|one| one.grace.is_none());
        let size = hard.find(|one| one.signal == signal).map(|one| one.size);
        size.map_or(Amount::ZERO, |size| {
            Amount::from_value(size.of(capacity.value())).in_binary()
        })
    }
}

fn soft_grace(signal: Signal, periods: &BTreeMap<Signal, String>) -> Result<Duration, String> {
    let name = signal.name();
    let period = periods.get(&signal).ok_or_else(|| {
        format!("grace period must be specified for the soft eviction threshold {name}")
    })?;
    let parsed = period.parse::<meta::Duration>();
    let parsed =
        parsed.map_err(|_| format!("eviction.soft-grace-period: {period:?} is no duration"))?;
    Ok(parsed.length())
}

fn sizes(setting: &str, pairs: BTreeMap<Signal, String>) -> Result<BTreeMap<Signal, Size>, String> {
    let sizes = pairs.into_iter().map(|(signal, text)| {
        let size = Size::parse(&text).map_err(|error| format!("eviction.{setting}: {error}"))?;
        Ok((signal, size))
    });
    sizes.collect()
}

/// Parses `<signal><separator><text>,…`.
fn pairs(text: &str, separator: char) -> Result<BTreeMap<Signal, String>, String> {
    let mut pairs = BTreeMap::new();
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (signal, value) = part
            .split_once(separator)
            .ok_or_else(|| format!("{part:?} is not of the form <signal>{separator}<value>"))?;
        if pairs
            .insert(Signal::parse(signal)?, value.to_owned())
            .is_some()
        {
            return Err(format!(
                "found duplicate eviction threshold for signal {signal}"
            ));
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(
        hard: &str,
        soft: &str,
        grace: &str,
        reclaim: &str,
    ) -> Result<Vec<Threshold>, String> {
        let settings = Settings {
            hard: hard.into(),
            soft: soft.into(),
            soft_grace_period: grace.into(),
            minimum_reclaim: reclaim.into(),
            ..Settings::default()
        };
        settings.thresholds()
    }

    #[test]
    fn memory_has_the_threshold_of_the_kubelet_by_default() {
        let all = Settings::default().thresholds().unwrap();
        let all: Vec<_> = all
            .iter()
            .map(|one| (one.signal, one.size, one.grace))
            .collect();
        assert_eq!(all, [(Signal::Memory, Size::Absolute(100 << 20), None)]);
    }

    #[test]
    fn a_soft_threshold_has_a_grace_period_and_any_may_have_a_minimum_reclaim() {
        let all = settings(
            "",
            "memory.available<1Gi",
            "memory.available=1m30s",
            "memory.available=5%",
        );
        let expected = Threshold {
            signal: Signal::Memory,
            size: Size::Absolute(1 << 30),
            grace: Some(Duration::from_secs(90)),
            reclaim: Some(Size::Percent(5.0)),
        };
        assert_eq!(all, Ok(vec![expected]));
        assert!(settings("", "memory.available<1Gi", "", "").is_err());
    }

    #[test]
    fn zero_and_a_hundred_percent_disable_a_threshold() {
        assert_eq!(
            settings("nodefs.available<0%,imagefs.available<100%", "", "", ""),
            Ok(vec![])
        );
    }

    #[test]
    fn inodes_have_thresholds_as_bytes_have() {
        let all = settings("nodefs.inodesFree<5%,imagefs.inodesFree<1k", "", "", "").unwrap();
        let all: Vec<_> = all.iter().map(|one| (one.signal, one.size)).collect();
        let expected = [
            (Signal::NodefsInodes, Size::Percent(5.0)),
            (Signal::ImagefsInodes, Size::Absolute(1000)),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn invalid_thresholds_are_refused() {
        for hard in [
            "memory.available",
            "memory.available<",
            "memory.available<x",
            "memory.available<-1",
            "memory.available<101%",
            "memory.available<1,memory.available<2",
            "inodes<1",
        ] {
            let error = settings(hard, "", "", "").unwrap_err();
            assert!(error.starts_with("eviction.hard: "), "{error}");
        }
    }
}
