//! The index is a function of the current objects.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use setpoint_dns::{Index, NamespaceView, PodView, ServiceView, SliceView};
use setpoint_proto::core::{Namespace, Pod, Service};
use setpoint_proto::discovery::EndpointSlice;

use crate::cluster::{change, external, namespace, pod, service, slice};

/// The current objects, by kind and name.
#[derive(Clone, Debug, Default)]
struct Objects {
    namespaces: BTreeMap<usize, Namespace>,
    services: BTreeMap<usize, Service>,
    slices: BTreeMap<usize, EndpointSlice>,
    pods: BTreeMap<usize, Pod>,
}

/// A change: the kind, the name, and the content, of which 0 is a deletion.
type Step = (usize, usize, usize);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec((0..4usize, 0..3usize, 0..5usize), 0..40)
}

fn some_service(name: usize, content: usize) -> Service {
    let name = format!("s{name}");
    match content {
        1 => service(&name, "10.96.0.1", &["http/TCP/80"]),
        2 => service(&name, "10.96.0.2", &[]),
        3 => service(&name, "None", &[]),
        _ => external(&name, "example.com"),
    }
}

fn some_slice(name: usize, content: usize) -> EndpointSlice {
    let of = format!("s{}", content % 3);
    let endpoints: &[&str] = match content {
        1 => &["a/10.0.0.1", "/10.0.0.2"],
        2 => &["a/10.0.0.1", "b/10.0.0.1"],
        3 => &["!a/10.0.0.1"],
        _ => &["/10.0.0.2"],
    };
    slice(&format!("x{name}"), &of, endpoints, &["http/TCP/80"])
}

impl Objects {
    /// Makes a change, and tells it to the index.
    fn step(&mut self, index: &mut Index, (kind, name, content): Step) {
        let there = content > 0;
        match kind {
            0 => {
                let new = there.then(|| namespace(["default", "a", "b"][name]));
                let old = put(&mut self.namespaces, name, new.clone());
                index.namespace_changed(&change::<NamespaceView>(old, new));
            }
            1 => {
                let new = there.then(|| some_service(name, content));
                let old = put(&mut self.services, name, new.clone());
                index.service_changed(&change::<ServiceView>(old, new));
            }
            2 => {
                let new = there.then(|| some_slice(name, content));
                let old = put(&mut self.slices, name, new.clone());
                index.slice_changed(&change::<SliceView>(old, new));
            }
            _ => {
                let new = there.then(|| pod(&format!("p{name}"), &format!("10.0.0.{content}")));
                let old = put(&mut self.pods, name, new.clone());
                index.pod_changed(&change::<PodView>(old, new));
            }
        }
    }

    /// Builds an index anew, with the kinds in this order.
    fn index(&self, order: [usize; 4]) -> Index {
        let mut index = Index::default();
        for kind in order {
            match kind {
                0 => self.namespaces.values().cloned().for_each(|one| {
                    index.namespace_changed(&change::<NamespaceView>(None, Some(one)));
                }),
                1 => self.services.values().rev().cloned().for_each(|one| {
                    index.service_changed(&change::<ServiceView>(None, Some(one)));
                }),
                2 => self.slices.values().rev().cloned().for_each(|one| {
                    index.slice_changed(&change::<SliceView>(None, Some(one)));
                }),
                _ => self.pods.values().rev().cloned().for_each(|one| {
                    index.pod_changed(&change::<PodView>(None, Some(one)));
                }),
            }
        }
        index
    }
}

fn put<T>(objects: &mut BTreeMap<usize, T>, name: usize, new: Option<T>) -> Option<T> {
    match new {
        Some(new) => objects.insert(name, new),
        None => objects.remove(&name),
    }
}

proptest! {
    #[test]
    fn an_index_that_followed_changes_is_as_one_built_anew(
        steps in steps(),
        order in Just([0, 1, 2, 3]).prop_shuffle(),
    ) {
        let (mut objects, mut index) = (Objects::default(), Index::default());
        for step in steps {
            objects.step(&mut index, step);
        }
        prop_assert_eq!(index, objects.index(order));
    }
}

#[test]
fn an_index_without_objects_is_empty_again() {
    let (mut objects, mut index) = (Objects::default(), Index::default());
    for kind in 0..4 {
        for content in [1, 0] {
            objects.step(&mut index, (kind, 1, content));
        }
    }
    assert_eq!(index, Index::default());
}
