//! The audit policy: rules in order, of which the first that matches a request decides about it.

use std::path::Path;

use setpoint_document as document;

use crate::matching::{self, Subject};
use crate::validation::{self, Error};

/// The parts of a request that are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    #[default]
    None,
    /// User, verb, object and outcome, without bodies.
    Metadata,
    /// The body of the request, too.
    Request,
    /// The bodies of the request and of the response.
    RequestResponse,
}

impl Level {
    pub(crate) const ALL: [Self; 4] = [
        Self::None,
        Self::Metadata,
        Self::Request,
        Self::RequestResponse,
    ];

    /// Returns the name in policies and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// The point of a request at which an event is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The user is known, and nothing was done yet.
    RequestReceived,
    /// The head of the response of a long-running request was sent.
    ResponseStarted,
    /// The response was sent, or the client has left.
    ResponseComplete,
    /// The handler panicked.
    Panic,
}

impl Stage {
    pub(crate) const ALL: [Self; 4] = [
        Self::RequestReceived,
        Self::ResponseStarted,
        Self::ResponseComplete,
        Self::Panic,
    ];

    /// Returns the name in policies and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

/// A set of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages([bool; Stage::ALL.len()]);

impl Stages {
    /// Returns whether a stage is in the set.
    pub const fn contains(self, stage: Stage) -> bool {
        self.0[stage as usize]
    }

    pub(crate) const fn insert(&mut self, stage: Stage) {
        self.0[stage as usize] = true;
    }

    fn union(self, other: Self) -> Self {
        let mut all = self;
        let others = Stage::ALL.iter().filter(|stage| other.contains(**stage));
        others.for_each(|stage| all.insert(*stage));
        all
    }
}

/// Resources of an API group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupResources {
    /// Empty for the core group, `*` for all.
    pub group: String,
    /// `pods`, `pods/log`, `*`, `pods/*` or `*/scale`; empty for all.
    pub resources: Vec<String>,
    /// Empty for all names.
    pub resource_names: Vec<String>,
}

/// A rule. A request matches if it matches every field that is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The level of requests that match.
    pub level: Level,
    /// The names of users.
    pub users: Vec<String>,
    /// Groups, of which the user is in at least one.
    pub user_groups: Vec<String>,
    /// Verbs; for paths of no resource, methods in lower case.
    pub verbs: Vec<String>,
    /// Resources.
    pub resources: Vec<GroupResources>,
    /// Namespaces; an empty one for objects that are in none.
    pub namespaces: Vec<String>,
    /// Paths of no resource, of which the last character may be `*`.
    pub non_resource_urls: Vec<String>,
    /// Stages without an event, beside those of the policy.
    pub omit_stages: Stages,
    /// Whether bodies are without managed fields; by default as the policy says.
    pub omit_managed_fields: Option<bool>,
}

/// The decision about a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The parts that are recorded.
    pub level: Level,
    /// The stages without an event.
    pub omit_stages: Stages,
    /// Whether bodies are without managed fields.
    pub omit_managed_fields: bool,
}

/// An audit policy (`audit.k8s.io/v1`, `Policy`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub(crate) rules: Vec<Rule>,
    pub(crate) omit_stages: Stages,
    pub(crate) omit_managed_fields: bool,
}

impl Policy {
    /// Reads a policy in YAML or JSON. Fields that are not known are errors: a restriction that is misspelt would not
    /// restrict (upstream warns, and goes on without them).
    ///
    /// # Errors
    /// If it is malformed or not valid: the path of each wrong field, and upstream's text.
    pub fn read(text: &[u8]) -> Result<Self, Error> {
        let value = document::yaml(text).map_err(Error::Malformed)?;
        validation::policy(&value)
    }

    /// Reads the policy in a file.
    ///
    /// # Errors
    /// If it cannot be read, is larger than a mebibyte, or as [`Self::read`].
    pub fn read_file(path: &Path) -> Result<Self, Error> {
        let text = document::read(path).map_err(|error| Error::File {
            path: path.to_owned(),
            error: error.to_string(),
        })?;
        Self::read(&text).map_err(|error| error.in_file(path))
    }

    /// Decides about a request by the first rule that matches it; without any, nothing is recorded.
    ///
    /// Bodies of Secrets, of reviews of tokens and of tokens of ServiceAccounts are recorded only by a rule whose
    /// resources name them; by other rules, such as one for all resources, the level is at most `Metadata`. Upstream
    /// records them by any rule.
    pub fn decide(&self, subject: &Subject<'_>) -> Decision {
        let rule = self.rules.iter().find(|rule| rule.matches(subject));
        let Some(rule) = rule else {
            return Decision {
                level: Level::None,
                omit_stages: self.omit_stages,
                omit_managed_fields: self.omit_managed_fields,
            };
        };
        let omits = rule.omit_managed_fields;
        let level = match matching::is_confidential(subject) && !rule.names_resource_of(subject) {
            true => rule.level.min(Level::Metadata),
            false => rule.level,
        };
        Decision {
            level,
            omit_stages: self.omit_stages.union(rule.omit_stages),
            omit_managed_fields: omits.unwrap_or(self.omit_managed_fields),
        }
    }
}
