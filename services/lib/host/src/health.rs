//! Is this process alive, and is it ready?

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

/// The process's readiness: every part of it that matters has a named check. Cheap to clone.
///
/// A process without checks is not ready: it has not come far enough to know what it needs.
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
    /// Adds a check that fails until told otherwise. A name that exists already starts anew.
    pub fn check(&self, name: impl Into<String>) -> Check {
        let check = Check {
            name: name.into(),
            health: self.clone(),
        };
        check.fail("starting");
        check
    }

    /// Do all checks pass?
    pub fn is_ready(&self) -> bool {
        self.state.borrow().is_ready()
    }

    /// The readiness now and, on every call after that, at its next change. `None` once the process drains.
    pub(crate) fn changes(&self) -> Changes {
        Changes {
            state: self.state.subscribe(),
            last: None,
        }
    }

    /// The process stops: it is not ready, whatever the checks say.
    pub(crate) fn close(&self) {
        self.state.send_modify(|state| state.closed = true);
    }

    pub(crate) fn report(&self, excluded: &[String]) -> Report {
        let state = self.state.borrow();
        let mut checks: Vec<_> = state
            .checks
            .iter()
            .map(|(name, result)| (name.clone(), result.clone()))
            .collect();
        if checks.is_empty() {
            checks.push(("start".to_owned(), Err("not yet".to_owned())));
        }
        if state.closed {
            checks.push((
                "shutdown".to_owned(),
                Err("process is shutting down".to_owned()),
            ));
        }
        checks.retain(|(name, _)| !excluded.contains(name));
        Report { checks }
    }
}

/// One thing that must be well for the process to be ready.
#[derive(Clone)]
pub struct Check {
    name: String,
    health: Health,
}

impl Check {
    /// It is well.
    pub fn pass(&self) {
        self.set(Ok(()));
    }

    /// It is not, and this is why.
    pub fn fail(&self, why: impl Into<String>) {
        self.set(Err(why.into()));
    }

    /// It is well as soon as this says so; `starting` until then.
    pub fn pass_when(self, mut well: watch::Receiver<bool>) {
        tokio::spawn(async move {
            if well.wait_for(|well| *well).await.is_ok() {
                self.pass();
            }
        });
    }

    /// It is as this says, at any time.
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
            let known = state.checks.get(&self.name);
            let changed = known != Some(&result);
            if changed {
                state.checks.insert(self.name.clone(), result);
            }
            changed
        });
    }
}

/// Follows the readiness; see [`Health::changes`].
pub struct Changes {
    state: watch::Receiver<State>,
    last: Option<bool>,
}

impl Changes {
    /// The next value that differs from the last one.
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

/// The checks at one moment, printed as Kubernetes prints them.
pub struct Report {
    checks: Vec<(String, Result<(), String>)>,
}

impl Report {
    /// The checks that pass in every process that answers.
    pub fn alive(excluded: &[String]) -> Self {
        let names = ["ping", "log"].map(str::to_owned).into_iter();
        let names = names.filter(|name| !excluded.contains(name));
        Self {
            checks: names.map(|name| (name, Ok(()))).collect(),
        }
    }

    /// The checks of both.
    pub fn and(mut self, other: Self) -> Self {
        self.checks.extend(other.checks);
        self
    }

    /// The check of that name alone, if there is one.
    pub fn only(mut self, name: &str) -> Option<Self> {
        self.checks.retain(|(check, _)| check == name);
        (!self.checks.is_empty()).then_some(self)
    }

    pub fn is_ok(&self) -> bool {
        self.checks.iter().all(|(_, result)| result.is_ok())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, result) in &self.checks {
            match result {
                Ok(()) => writeln!(f, "[+]{name} ok")?,
                Err(why) => writeln!(f, "[-]{name} failed: {why}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_not_said_what_it_needs_is_not_ready() {
        let health = Health::default();
        assert!(!health.is_ready());
        assert!(!health.report(&[]).is_ok());
    }

    #[test]
    fn ready_means_that_every_check_passes() {
        let health = Health::default();
        let (etcd, cache) = (health.check("etcd"), health.check("cache"));
        etcd.pass();
        assert!(!health.is_ready());
        assert_eq!(
            health.report(&[]).to_string(),
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
    async fn changes_begin_with_what_is_and_end_when_the_process_drains() {
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
