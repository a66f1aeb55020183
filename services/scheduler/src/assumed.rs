//! Assumed Pods: those with a binding whose outcome is unknown.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_proto::{ApiError, Reason};

use crate::pod::PodView;

/// The bindings without a response. They may still be committed, so each counts until a later binding of the Pod
/// succeeds, or the Pod is bound or deleted in the cache.
#[derive(Debug, Default)]
pub struct Assumed {
    bindings: Mutex<HashMap<Key, Binding>>,
}

/// A Pod, and the node in its binding.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The Pod as it was observed.
    pub pod: Arc<PodView>,
    /// The node's name.
    pub node: String,
}

/// Returns whether a binding that failed with this error may still be committed.
pub const fn is_in_doubt(error: &ApiError) -> bool {
    match error.reason {
        Reason::BadRequest
        | Reason::Unauthorized
        | Reason::Forbidden
        | Reason::NotFound
        | Reason::MethodNotAllowed
        | Reason::NotAcceptable
        | Reason::AlreadyExists
        | Reason::Conflict
        | Reason::Expired
        | Reason::RequestEntityTooLarge
        | Reason::UnsupportedMediaType
        | Reason::Invalid
        | Reason::TooManyRequests => false,
        Reason::InternalError | Reason::ServiceUnavailable | Reason::Timeout => true,
    }
}

impl Assumed {
    /// Adds a binding whose outcome is unknown.
    pub fn add(&self, pod: &Arc<PodView>, node: &str) {
        let binding = Binding {
            pod: pod.clone(),
            node: node.to_owned(),
        };
        let key = pod.meta.key.clone();
        self.bindings.lock().insert(key, binding);
    }

    /// Removes and returns the binding of a Pod that is bound or deleted.
    pub fn resolve(&self, pod: &Key) -> Option<Binding> {
        self.bindings.lock().remove(pod)
    }

    /// Removes all bindings.
    pub fn clear(&self) {
        self.bindings.lock().clear();
    }

    /// Returns the bindings whose Pods exist in the cache without a node.
    pub fn unresolved(&self, cached: impl Fn(&Key) -> Option<Arc<PodView>>) -> Vec<Binding> {
        let undecided = |binding: &&Binding| {
            let pod = cached(&binding.pod.meta.key);
            pod.is_some_and(|pod| pod.meta.uid == binding.pod.meta.uid && pod.node.is_none())
        };
        let bindings = self.bindings.lock();
        bindings.values().filter(undecided).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use setpoint_model::Meta;

    use super::*;

    fn pod(uid: &str, node: Option<&str>) -> Arc<PodView> {
        let meta = Meta {
            key: Key::new("default", "web"),
            uid: uid.to_owned(),
            ..Meta::default()
        };
        Arc::new(PodView {
            meta,
            node: node.map(str::to_owned),
            ..PodView::default()
        })
    }

    /// Checks C2: a binding counts until the cache has the node of the Pod.
    #[test]
    fn a_doubtful_binding_counts_while_the_cache_shows_its_pod_unbound() {
        let assumed = Assumed::default();
        assumed.add(&pod("1", None), "a");
        let left = |cached: Option<Arc<PodView>>| {
            let left = assumed.unresolved(|_| cached.clone()).into_iter();
            left.map(|binding| binding.node).collect::<Vec<_>>()
        };
        assert_eq!(left(Some(pod("1", None))), ["a"]);
        assert!(left(Some(pod("1", Some("b")))).is_empty(), "bound");
        assert!(left(Some(pod("2", None))).is_empty(), "another Pod");
        assert!(left(None).is_empty(), "gone");
        let key = Key::new("default", "web");
        assert!(assumed.resolve(&key).is_some());
        assert!(assumed.resolve(&key).is_none());
        assert!(left(Some(pod("1", None))).is_empty());
    }

    /// Checks F36.
    #[test]
    fn every_failure_without_a_definite_answer_leaves_a_doubt() {
        let in_doubt = |reason: &&Reason| is_in_doubt(&ApiError::new(**reason, "so"));
        let doubtful: Vec<_> = Reason::ALL.iter().filter(in_doubt).collect();
        let expected = [
            Reason::InternalError,
            Reason::ServiceUnavailable,
            Reason::Timeout,
        ];
        assert_eq!(doubtful, expected.iter().collect::<Vec<_>>());
    }
}
