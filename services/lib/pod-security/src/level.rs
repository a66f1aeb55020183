//! The levels of the standards.

use std::fmt;

use crate::Version;

/// A level of the standards; a later one allows less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Everything is allowed.
    Privileged,
    /// Known ways to more privileges are not.
    Baseline,
    /// A Pod must also give up what it does not need.
    Restricted,
}

impl Level {
    /// The levels, in their order.
    pub const ALL: [Self; 3] = [Self::Privileged, Self::Baseline, Self::Restricted];

    /// Returns its name in labels and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }

    /// Returns the level of a name.
    ///
    /// # Errors
    /// If there is none, in upstream's words.
    pub fn parse(name: &str) -> Result<Self, &'static str> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|level| level.name() == name);
        found.ok_or("must be one of privileged, baseline, restricted")
    }
}

/// A level of a version; its text is `restricted:v1.36`, for example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelVersion {
    /// The level.
    pub level: Level,
    /// The version of the standards.
    pub version: Version,
}

impl LevelVersion {
    /// The level that allows everything.
    pub const PRIVILEGED: Self = Self {
        level: Level::Privileged,
        version: Version::Latest,
    };

    /// Returns whether both allow the same by their names: `privileged` is the same in all versions.
    pub fn is_equivalent(self, other: Self) -> bool {
        self == other || (self.level == Level::Privileged && other.level == Level::Privileged)
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level.name(), self.version)
    }
}
