//! The policy of a namespace, from its labels.

use std::collections::BTreeMap;

use crate::{Level, LevelVersion, Version};

const PREFIX: &str = "pod-security.kubernetes.io/";

/// The effect of a level on what violates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Pods that violate it are refused.
    Enforce,
    /// An audit log says so.
    Audit,
    /// The user is warned.
    Warn,
}

impl Mode {
    /// The modes, in the order in which their labels are read.
    pub const ALL: [Self; 3] = [Self::Enforce, Self::Audit, Self::Warn];

    /// Returns its name in labels, files and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Audit => "audit",
            Self::Warn => "warn",
        }
    }

    /// Returns the label with the level.
    pub fn level_label(self) -> String {
        format!("{PREFIX}{}", self.name())
    }

    /// Returns the label with the version.
    pub fn version_label(self) -> String {
        format!("{PREFIX}{}-version", self.name())
    }

    /// Returns whether one of its labels is there.
    pub fn is_set_in(self, labels: &BTreeMap<String, String>) -> bool {
        labels.contains_key(&self.level_label()) || labels.contains_key(&self.version_label())
    }
}

/// A label whose value is none of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidLabel {
    /// The key of the label.
    pub label: String,
    /// Its value.
    pub value: String,
    /// The requirement that it does not meet, in upstream's words.
    pub requirement: &'static str,
}

/// The level of each mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Pods must keep to this level.
    pub enforce: LevelVersion,
    /// Pods and templates that violate this level are recorded.
    pub audit: LevelVersion,
    /// Users are warned of Pods and templates that violate this level.
    pub warn: LevelVersion,
}

impl Policy {
    /// The policy that allows everything: upstream's default.
    pub const PRIVILEGED: Self = Self {
        enforce: LevelVersion::PRIVILEGED,
        audit: LevelVersion::PRIVILEGED,
        warn: LevelVersion::PRIVILEGED,
    };

    /// Returns the level of a mode.
    pub const fn of(&self, mode: Mode) -> LevelVersion {
        match mode {
            Mode::Enforce => self.enforce,
            Mode::Audit => self.audit,
            Mode::Warn => self.warn,
        }
    }

    /// Returns the level of a mode, to set it.
    pub(crate) const fn of_mut(&mut self, mode: Mode) -> &mut LevelVersion {
        match mode {
            Mode::Enforce => &mut self.enforce,
            Mode::Audit => &mut self.audit,
            Mode::Warn => &mut self.warn,
        }
    }

    /// Returns the policy of the labels of a namespace, and the labels that are not valid.
    ///
    /// With an invalid level, `restricted` is enforced, and nothing is recorded or warned about; an invalid version is
    /// as the latest one. Users are warned of what is enforced if no label says how they are to be.
    pub fn of_labels(
        labels: &BTreeMap<String, String>,
        defaults: Self,
    ) -> (Self, Vec<InvalidLabel>) {
        let (mut policy, mut invalid) = (defaults, Vec::new());
        if labels.is_empty() {
            return (policy, invalid);
        }
        for mode in Mode::ALL {
            let of_mode = policy.of_mut(mode);
            if let Some(level) = read(labels, mode.level_label(), Level::parse, &mut invalid) {
                of_mode.level = level.unwrap_or(match mode {
                    Mode::Enforce => Level::Restricted,
                    Mode::Audit | Mode::Warn => Level::Privileged,
                });
            }
            let label = mode.version_label();
            if let Some(version) = read(labels, label, Version::parse, &mut invalid) {
                of_mode.version = version.unwrap_or(Version::Latest);
            }
        }
        policy.warn_of_enforced(labels);
        (policy, invalid)
    }

    /// Warns of the level that a valid label enforces, if that is stricter and no label says otherwise.
    fn warn_of_enforced(&mut self, labels: &BTreeMap<String, String>) {
        let enforced = labels.get(&Mode::Enforce.level_label());
        let is_enforced = enforced.is_some_and(|level| Level::parse(level).is_ok());
        let is_warned = labels.contains_key(&Mode::Warn.level_label());
        if !is_enforced || is_warned || self.enforce.level <= self.warn.level {
            return;
        }
        self.warn.level = self.enforce.level;
        if !labels.contains_key(&Mode::Warn.version_label()) {
            self.warn.version = self.enforce.version;
        }
    }

    /// Returns whether nothing is refused, recorded or warned about.
    pub fn is_privileged(&self) -> bool {
        Mode::ALL.map(|mode| self.of(mode).level) == [Level::Privileged; 3]
    }

    /// Returns whether both say the same; `privileged` is the same in all versions.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        let is_equivalent = |mode: &Mode| self.of(*mode).is_equivalent(other.of(*mode));
        Mode::ALL.iter().all(is_equivalent)
    }
}

/// Returns the value of a label; `None` within if it is not valid, `None` if it is not there.
fn read<T>(
    labels: &BTreeMap<String, String>,
    label: String,
    parse: impl FnOnce(&str) -> Result<T, &'static str>,
    invalid: &mut Vec<InvalidLabel>,
) -> Option<Option<T>> {
    let value = labels.get(&label)?;
    Some(match parse(value) {
        Ok(value) => Some(value),
        Err(requirement) => {
            invalid.push(InvalidLabel {
                label,
                value: value.clone(),
                requirement,
            });
            None
        }
    })
}
