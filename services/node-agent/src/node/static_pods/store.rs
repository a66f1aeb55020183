//! The static Pods of a node, and what the node has made of them.
//!
//! ```text
//! manifest appears ─▶ runs ─▶ manifest changes or goes ─▶ ends with its grace period ─▶ finished ─▶ the next one runs
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::View as _;
use setpoint_model::Key;
use setpoint_model::time::seconds_after;
use setpoint_proto::core::{Pod, PodStatus};
use setpoint_runtime::Wake;
use tokio::sync::watch;

use crate::pod::view::PodView;

/// The grace period of a Pod that names none, in seconds, as in the API.
const DEFAULT_GRACE: i64 = 30;

/// The static Pods of a node, with their status.
pub struct StaticPods {
    pods: Mutex<BTreeMap<Key, Entry>>,
    /// Whether it is known which manifests there are.
    complete: watch::Sender<bool>,
    /// Enqueues a Pod for the reconciler of Pods.
    wake: Wake,
    /// Enqueues a Pod for the reconciler of mirror Pods.
    report: Wake,
}

/// The static Pods of one name.
struct Entry {
    /// The one that runs, or ends.
    current: Arc<PodView>,
    /// The one that follows when `current` has ended.
    next: Option<Pod>,
}

impl StaticPods {
    /// Returns no static Pods. `is_complete` says that there will be none.
    pub fn new(is_complete: bool, wake: Wake, report: Wake) -> Self {
        Self {
            pods: Mutex::default(),
            complete: watch::Sender::new(is_complete),
            wake,
            report,
        }
    }

    /// Returns whether it is known which manifests there are. Before, a Pod that is not here may nonetheless be one.
    pub fn is_complete(&self) -> bool {
        *self.complete.borrow()
    }

    /// Waits until it is known which manifests there are.
    pub async fn completed(&self) {
        // The sender is this one, so that waiting cannot fail.
        let _ = self
            .complete
            .subscribe()
            .wait_for(|complete| *complete)
            .await;
    }

    /// Returns the static Pod of this name.
    pub fn get(&self, pod: &Key) -> Option<Arc<PodView>> {
        let pods = self.pods.lock();
        pods.get(pod).map(|entry| Arc::clone(&entry.current))
    }

    /// Returns all of them.
    pub fn list(&self) -> Vec<Arc<PodView>> {
        let pods = self.pods.lock();
        let all = pods.values();
        all.map(|entry| Arc::clone(&entry.current)).collect()
    }

    /// Returns the names of all of them.
    pub fn keys(&self) -> Vec<Key> {
        self.pods.lock().keys().cloned().collect()
    }

    /// Replaces the manifests: those that are new run, and those that are gone or differ end with their grace periods.
    pub fn replace(&self, mut manifests: BTreeMap<Key, Pod>, now: Timestamp) {
        let mut changed = Vec::new();
        let mut pods = self.pods.lock();
        for (key, entry) in &mut *pods {
            if entry.follow(manifests.remove(key), now) {
                changed.push(key.clone());
            }
        }
        for (key, pod) in manifests {
            let entry = Entry {
                current: Arc::new(PodView::of_manifest(pod)),
                next: None,
            };
            pods.insert(key.clone(), entry);
            changed.push(key);
        }
        drop(pods);
        self.complete.send_replace(true);
        changed.iter().for_each(|key| self.changed(key));
    }

    /// Sets the status of the Pod with this uid. Returns whether it is that of a Pod that has ended.
    pub fn set_status(&self, pod: &Key, uid: &str, status: PodStatus) -> bool {
        let ended = {
            let mut pods = self.pods.lock();
            let entry = pods.get_mut(pod);
            let Some(entry) = entry.filter(|entry| entry.current.meta().uid == uid) else {
                return false;
            };
            entry.change(|pod| pod.status = status);
            entry.current.ended
        };
        self.changed(pod);
        ended
    }

    /// Forgets the Pod with this uid, which has stopped. The one that follows takes its place.
    pub fn finish(&self, pod: &Key, uid: &str) {
        let mut pods = self.pods.lock();
        let Some(entry) = pods.get_mut(pod) else {
            return;
        };
        if entry.current.meta().uid != uid || !entry.current.is_deleting {
            return;
        }
        match entry.next.take() {
            Some(next) => entry.current = Arc::new(PodView::of_manifest(next)),
            None => _ = pods.remove(pod),
        }
        drop(pods);
        self.changed(pod);
    }

    /// Enqueues a Pod and its mirror Pod.
    pub fn changed(&self, pod: &Key) {
        (self.wake)(pod);
        (self.report)(pod);
    }
}

impl Entry {
    /// Follows the manifest of the name. Returns whether the Pod that runs has begun to end.
    fn follow(&mut self, manifest: Option<Pod>, now: Timestamp) -> bool {
        let (current, ends) = (self.current.meta(), self.current.is_deleting);
        let same = manifest.as_ref().map(|pod| &pod.metadata.uid) == Some(&current.uid);
        if same && !ends {
            return false;
        }
        self.next = manifest;
        if !ends {
            self.change(|pod| end(pod, now));
        }
        !ends
    }

    fn change(&mut self, change: impl FnOnce(&mut Pod)) {
        let mut pod = self.current.pod();
        change(&mut pod);
        self.current = Arc::new(PodView::of_manifest(pod));
    }
}

/// Lets a Pod end, as one that is deleted through the API.
fn end(pod: &mut Pod, now: Timestamp) {
    let grace = pod.spec.termination_grace_period_seconds;
    let grace = grace.unwrap_or(DEFAULT_GRACE).max(1);
    pod.metadata.deletion_timestamp = Some(seconds_after(now, grace).into());
    pod.metadata.deletion_grace_period_seconds = Some(grace);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn pod(name: &str, uid: &str) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.namespace = "default".into();
        pod.metadata.name = name.into();
        pod.metadata.uid = uid.into();
        pod.spec.termination_grace_period_seconds = Some(7);
        pod
    }

    fn manifests(pods: &[(&str, &str)]) -> BTreeMap<Key, Pod> {
        let pods = pods.iter().map(|(name, uid)| pod(name, uid));
        pods.map(|pod| (Key::of(&pod.metadata), pod)).collect()
    }

    fn key(name: &str) -> Key {
        Key::new("default", name)
    }

    /// Returns the static Pods, and the number of times that a Pod was enqueued.
    fn store() -> (StaticPods, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let wake: Wake = Arc::new(move |_: &Key| _ = counted.fetch_add(1, Ordering::Relaxed));
        (StaticPods::new(false, wake, Arc::new(|_: &Key| {})), count)
    }

    /// Returns uid and whether it ends of each.
    fn state(pods: &StaticPods) -> Vec<(String, bool)> {
        let all = pods.list().into_iter();
        all.map(|view| (view.meta().uid.clone(), view.is_deleting))
            .collect()
    }

    #[test]
    fn a_manifest_that_is_read_again_changes_nothing() {
        let (pods, woken) = store();
        assert!(!pods.is_complete());
        pods.replace(manifests(&[("a", "1")]), Timestamp::UNIX_EPOCH);
        assert!(pods.is_complete());
        let status = PodStatus {
            phase: "Running".into(),
            ..PodStatus::default()
        };
        assert!(!pods.set_status(&key("a"), "1", status));
        let before = woken.load(Ordering::Relaxed);
        pods.replace(manifests(&[("a", "1")]), Timestamp::UNIX_EPOCH);
        assert_eq!(woken.load(Ordering::Relaxed), before);
        let known = pods.get(&key("a")).unwrap().pod();
        assert_eq!(known.status.phase, "Running", "the status is kept");
    }

    #[test]
    fn a_pod_whose_manifest_changes_ends_before_the_next_one_begins() {
        let (pods, _) = store();
        pods.replace(manifests(&[("a", "1")]), Timestamp::UNIX_EPOCH);
        pods.replace(manifests(&[("a", "2")]), Timestamp::UNIX_EPOCH);
        assert_eq!(state(&pods), [("1".to_owned(), true)]);
        let ending = pods.get(&key("a")).unwrap().pod().metadata;
        assert_eq!(ending.deletion_grace_period_seconds, Some(7));
        let deadline = ending.deletion_timestamp.unwrap().timestamp().unwrap();
        assert_eq!(deadline.as_second(), 7);
        // The newest manifest counts, and the grace period does not begin again.
        let later = Timestamp::from_second(5).unwrap();
        pods.replace(manifests(&[("a", "3")]), later);
        let still = pods.get(&key("a")).unwrap().pod().metadata;
        assert_eq!(still.deletion_timestamp, ending.deletion_timestamp);
        pods.finish(&key("a"), "3");
        assert_eq!(state(&pods), [("1".to_owned(), true)], "it has not stopped");
        pods.finish(&key("a"), "1");
        assert_eq!(state(&pods), [("3".to_owned(), false)]);
    }

    #[test]
    fn a_pod_whose_manifest_goes_ends_and_a_manifest_that_comes_back_is_a_new_pod() {
        let (pods, _) = store();
        pods.replace(manifests(&[("a", "1"), ("b", "2")]), Timestamp::UNIX_EPOCH);
        pods.replace(BTreeMap::new(), Timestamp::UNIX_EPOCH);
        pods.finish(&key("b"), "2");
        assert_eq!(state(&pods), [("1".to_owned(), true)]);
        pods.replace(manifests(&[("a", "1")]), Timestamp::UNIX_EPOCH);
        assert_eq!(state(&pods), [("1".to_owned(), true)], "it goes on ending");
        pods.finish(&key("a"), "1");
        assert_eq!(state(&pods), [("1".to_owned(), false)]);
        pods.finish(&key("a"), "1");
        assert_eq!(state(&pods), [("1".to_owned(), false)], "it does not end");
        pods.replace(BTreeMap::new(), Timestamp::UNIX_EPOCH);
        pods.replace(manifests(&[("a", "1")]), Timestamp::UNIX_EPOCH);
        pods.replace(BTreeMap::new(), Timestamp::UNIX_EPOCH);
        pods.finish(&key("a"), "1");
        assert_eq!(state(&pods), [], "the manifest is gone again");
    }

    #[test]
    fn the_status_is_that_of_the_pod_that_is_current() {
        let (pods, _) = store();
        pods.replace(manifests(&[("a", "1")]), Timestamp::UNIX_EPOCH);
        let failed = || PodStatus {
            phase: "Failed".into(),
            ..PodStatus::default()
        };
        assert!(!pods.set_status(&key("a"), "2", failed()));
        assert_eq!(pods.get(&key("a")).unwrap().pod().status.phase, "");
        assert!(pods.set_status(&key("a"), "1", failed()), "it has ended");
    }
}
