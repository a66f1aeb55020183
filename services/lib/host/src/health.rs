//! Liveness and readiness of the process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

/// The readiness of the process: it is ready if all of its named checks pass. Cheap to clone.
///
/// A process without checks is not ready: it is still starting.
#[derive(Clone, Default)]
pub struct Health {
    state: Arc<watch::Sender<State>>,
}

#[derive(Default)]
struct State {
    checks: BTreeMap<String, Result<(), String>>,
    closed: bool,
}

impl State {
    fn is_ready(&self) -> bool {
        !self.closed && !self.checks.is_empty() && self.checks.values().all(Result::is_ok)
    }
}

impl Health {
    /// Adds a check, which fails with `starting`. An existing check of that name is replaced.
    pub fn check(&self, name: impl Into<String>) -> Check {
        let check = Check {
            name: name.into(),
            health: self.clone(),
        };
        check.fail("starting");
        check
    }

    /// Returns whether all checks pass and the process is not shutting down.
    pub fn is_ready(&self) -> bool {
        self.state.borrow().is_ready()
    }

    /// Returns the readiness and its changes, until the process shuts down.
    pub(crate) fn changes(&self) -> Changes {
        Changes {
            state: self.state.subscribe(),
            last: None,
        }
    }

    /// Makes the process not ready for good, as it shuts down.
    pub(crate) fn close(&self) {
        self.state.send_modify(|state| state.closed = true);
    }

    pub(crate) fn report(&self) -> Report {
        let state = self.state.borrow();
        let mut checks: Vec<_> = state
            .checks
            .iter()
            .map(|(name, result)| (name.clone(), result.clone()))
            .collect();
        if checks.is_empty() {
            checks.push(("start".to_owned(), Err("not started".to_owned())));
        }
        if state.closed {
            checks.push((
                "shutdown".to_owned(),
                Err("process is shutting down".to_owned()),
            ));
        }
        let checks = checks.into_iter();
        Report {
            checks: checks.map(|(name, result)| (name, result.into())).collect(),
        }
    }
}

/// A condition of readiness.
#[derive(Clone)]
pub struct Check {
    name: String,
    health: Health,
}

impl Check {
    /// Makes the check pass.
    pub fn pass(&self) {
        self.set(Ok(()));
    }

    /// Makes the check fail, for this reason.
    pub fn fail(&self, reason: impl Into<String>) {
        self.set(Err(reason.into()));
    }

    /// Makes the check pass once `healthy` is true.
    pub fn pass_when(self, mut healthy: watch::Receiver<bool>) {
        tokio::spawn(async move {
            if healthy.wait_for(|healthy| *healthy).await.is_ok() {
                self.pass();
            }
        });
    }

    /// Keeps the check at the latest value of `health`.
    pub fn follow(self, mut health: watch::Receiver<Result<(), String>>) {
        self.set(health.borrow_and_update().clone());
        tokio::spawn(async move {
            while health.changed().await.is_ok() {
                let now = health.borrow_and_update().clone();
                self.set(now);
            }
        });
    }

    fn set(&self, result: Result<(), String>) {
        self.health.state.send_if_modified(|state| {
            let present = state.checks.get(&self.name);
            let changed = present != Some(&result);
            if changed {
                state.checks.insert(self.name.clone(), result);
            }
            changed
        });
    }
}

/// The changes of the readiness; see [`Health::changes`].
pub struct Changes {
    state: watch::Receiver<State>,
    last: Option<bool>,
}

impl Changes {
    /// Returns the readiness at the first call, and the next different value at each later one; `None` after shutdown.
    pub async fn next(&mut self) -> Option<bool> {
        let last = self.last;
        let state = self
            .state
            .wait_for(|state| state.closed || last != Some(state.is_ready()))
            .await
            .ok()?;
        let ready = state.is_ready();
        drop(state);
        (self.last != Some(ready)).then(|| *self.last.insert(ready))
    }
}

/// A snapshot of the checks, displayed in the format of Kubernetes.
pub struct Report {
    checks: Vec<(String, Outcome)>,
}

enum Outcome {
    Passed,
    Failed(String),
    /// The check is shown, but does not count.
    Excluded,
}

impl From<Result<(), String>> for Outcome {
    fn from(result: Result<(), String>) -> Self {
        match result {
            Ok(()) => Self::Passed,
            Err(reason) => Self::Failed(reason),
        }
    }
}

impl Report {
    /// Returns the checks that pass in every process that answers.
    pub fn alive() -> Self {
        let names = ["ping", "log"].map(str::to_owned).into_iter();
        Self {
            checks: names.map(|name| (name, Outcome::Passed)).collect(),
        }
    }

    /// Appends the checks of `other`.
    pub fn and(mut self, other: Self) -> Self {
        self.checks.extend(other.checks);
        self
    }

    /// Excludes the checks of these names.
    pub fn without(mut self, excluded: &[String]) -> Self {
        for (name, outcome) in &mut self.checks {
            if excluded.contains(name) {
                *outcome = Outcome::Excluded;
            }
        }
        self
    }

    /// Excludes the checks that fail.
    pub fn without_failures(mut self) -> Self {
        for (_, outcome) in &mut self.checks {
            if matches!(outcome, Outcome::Failed(_)) {
                *outcome = Outcome::Excluded;
            }
        }
        self
    }

    /// Reduces the report to one check; `None` if there is no such check.
    pub fn only(mut self, name: &str) -> Option<Self> {
        self.checks.retain(|(check, _)| check == name);
        (!self.checks.is_empty()).then_some(self)
    }

    pub fn is_ok(&self) -> bool {
        let mut outcomes = self.checks.iter().map(|(_, outcome)| outcome);
        outcomes.all(|outcome| !matches!(outcome, Outcome::Failed(_)))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, outcome) in &self.checks {
            match outcome {
                Outcome::Passed => writeln!(f, "[+]{name} ok")?,
                Outcome::Failed(reason) => writeln!(f, "[-]{name} failed: {reason}")?,
                Outcome::Excluded => writeln!(f, "[+]{name} excluded: ok")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_checks_is_not_ready() {
        let health = Health::default();
        assert!(!health.is_ready());
        assert!(!health.report().is_ok());
    }

    #[test]
    fn a_process_is_ready_while_every_check_passes_until_shutdown() {
        let health = Health::default();
        let (etcd, cache) = (health.check("etcd"), health.check("cache"));
        etcd.pass();
        assert!(!health.is_ready());
        assert_eq!(
            health.report().to_string(),
            "[-]cache failed: starting\n[+]etcd ok\n"
        );
        cache.pass();
        assert!(health.is_ready());
        etcd.fail("no answer");
        assert!(!health.is_ready());
        health.close();
        etcd.pass();
        assert!(!health.is_ready());
    }

    #[tokio::test]
    async fn changes_start_with_the_present_readiness_and_end_at_shutdown() {
        let health = Health::default();
        let mut changes = health.changes();
        assert_eq!(changes.next().await, Some(false));
        let check = health.check("etcd");
        check.pass();
        assert_eq!(changes.next().await, Some(true));
        health.close();
        assert_eq!(changes.next().await, Some(false));
        assert_eq!(changes.next().await, None);
    }
}
