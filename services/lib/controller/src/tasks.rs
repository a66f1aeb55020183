//! The background tasks of one process: a panic restarts a task, and readiness fails while one keeps panicking.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// The background tasks that share a gateway client. Clones are the same.
#[derive(Clone, Debug)]
pub struct Tasks {
    failing: Arc<Mutex<BTreeMap<String, String>>>,
    health: watch::Sender<Result<(), String>>,
    /// The number of starts of tasks that are to panic at their first.
    #[cfg(test)]
    sabotaged: Arc<Mutex<BTreeMap<&'static str, usize>>>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self {
            failing: Arc::default(),
            health: watch::Sender::new(Ok(())),
            #[cfg(test)]
            sabotaged: Arc::default(),
        }
    }
}

impl Tasks {
    /// Runs the future of `start` until it returns, and again after each panic; see [`setpoint_task::supervise`].
    /// `subject` distinguishes tasks of the same name.
    pub async fn supervise<T, F: Future<Output = T>>(
        &self,
        task: &'static str,
        subject: &str,
        start: impl FnMut() -> F,
    ) -> T {
        let report = |state| self.report(task, subject, state);
        #[cfg(test)]
        let mut start = start;
        #[cfg(test)]
        let start = || {
            let (sabotaged, run) = (self.is_sabotaged(task), start());
            async move {
                assert!(!sabotaged, "sabotaged");
                run.await
            }
        };
        setpoint_task::supervise(task, report, start).await
    }

    /// Sets the health of a task.
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
        let reasons: Vec<_> = failing
            .iter()
            .map(|(name, reason)| format!("{name}: {reason}"))
            .collect();
        let health = match reasons.is_empty() {
            true => Ok(()),
            false => Err(reasons.join("; ")),
        };
        self.health.send_if_modified(|known| {
            let changed = *known != health;
            *known = health;
            changed
        });
    }

    /// Returns the health of all tasks: `Err` with the reasons of those that fail.
    pub fn health(&self) -> watch::Receiver<Result<(), String>> {
        self.health.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{sleep, timeout};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{Client, Membership, Recorder, Whole, client};

    impl Tasks {
        fn sabotage(&self, tasks: [&'static str; 4]) {
            let starts = tasks.into_iter().map(|task| (task, 0));
            *self.sabotaged.lock() = starts.collect();
        }

        pub(super) fn is_sabotaged(&self, task: &'static str) -> bool {
            let mut sabotaged = self.sabotaged.lock();
            let starts = sabotaged.get_mut(task);
            starts.is_some_and(|starts| {
                *starts += 1;
                *starts == 1
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_background_task_begins_anew_after_a_panic() {
        let settings = client::Settings {
            address: "http://127.0.0.1:1".to_owned(),
            ..Default::default()
        };
        let gateway = Client::connect(&settings, "test").unwrap();
        let tasks = gateway.tasks().clone();
        // None of them has been polled yet.
        tasks.sabotage(["channel", "events", "informer", "membership"]);
        let events = Recorder::new(gateway.clone(), "test", "test-0");
        let membership = Membership::announce(gateway.clone(), "test", "test-0", "127.0.0.1:1");
        let informer = gateway.informer::<Whole<setpoint_proto::core::Node>>();
        tokio::spawn(informer.run(CancellationToken::new()));
        let all_twice = async {
            while !tasks.sabotaged.lock().values().all(|&starts| starts == 2) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = timeout(Duration::from_secs(60), all_twice).await;
        waited.expect("each is started twice");
        assert_eq!(*tasks.health().borrow(), Ok(()), "one panic is no failure");
        events.finish().await;
        membership.leave().await;
    }

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
