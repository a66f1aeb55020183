//! The background tasks of one process: a panic restarts a task, and readiness says when one keeps failing.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// The background tasks that share a gateway client. Clones are the same.
#[derive(Clone, Debug)]
pub struct Tasks {
    failing: Arc<Mutex<BTreeMap<String, String>>>,
    health: watch::Sender<Result<(), String>>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self {
            failing: Arc::default(),
            health: watch::Sender::new(Ok(())),
        }
    }
}

impl Tasks {
    /// Runs what `start` makes until it returns, anew after each panic; see [`setpoint_task::supervise`]. `subject` tells
    /// tasks of the same name apart.
    pub async fn supervise<T, F: Future<Output = T>>(
        &self,
        task: &'static str,
        subject: &str,
        start: impl FnMut() -> F,
    ) -> T {
        let report = |state| self.report(task, subject, state);
        setpoint_task::supervise(task, report, start).await
    }

    /// Sets whether a task is well.
    pub fn report(&self, task: &'static str, subject: &str, state: Result<(), String>) {
        let name = match subject {
            "" => task.to_owned(),
            subject => format!("{task} of {subject}"),
        };
        let mut failing = self.failing.lock();
        match state {
            Ok(()) => _ = failing.remove(&name),
            Err(reason) => _ = failing.insert(name, reason),
        }
        let told: Vec<_> = failing
            .iter()
            .map(|(name, reason)| format!("{name}: {reason}"))
            .collect();
        let health = match told.is_empty() {
            true => Ok(()),
            false => Err(told.join("; ")),
        };
        self.health.send_if_modified(|known| {
            let changed = *known != health;
            *known = health;
            changed
        });
    }

    /// Follows whether all tasks are well: the reasons of those that are not.
    pub fn health(&self) -> watch::Receiver<Result<(), String>> {
        self.health.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_that_fails_is_named_until_it_is_well() {
        let tasks = Tasks::default();
        let health = tasks.health();
        let failed = || Err("it panicked".to_owned());
        tasks.report("informer", "pods", failed());
        tasks.report("informer", "nodes", failed());
        tasks.report("events", "", failed());
        let expected =
            "events: it panicked; informer of nodes: it panicked; informer of pods: it panicked";
        assert_eq!(*health.borrow(), Err(expected.to_owned()));
        tasks.report("events", "", Ok(()));
        tasks.report("informer", "pods", Ok(()));
        assert_eq!(
            *health.borrow(),
            Err("informer of nodes: it panicked".to_owned())
        );
        tasks.report("informer", "nodes", Ok(()));
        assert_eq!(*health.borrow(), Ok(()));
    }
}
