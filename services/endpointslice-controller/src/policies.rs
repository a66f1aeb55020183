//! NetworkPolicies that restrict Pods on nodes where no policy has an effect: an Event of each says so, once for each
//! generation.
//!
//! Stands here because this is the controller of what Services forward to, which knows Pods and nodes. The name of an
//! Event is made of the policy and its generation, so that a new leader, which looks at all policies, repeats none that
//! is still there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::{Backoff, Client, Informer, QueueHandle, Reader, View, events};
use setpoint_model::{Meta, Selector};
use setpoint_proto::core::{Event, EventSource};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::networking::NetworkPolicy;
use setpoint_proto::{ApiError, Reason};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::{NodeView, PodView};

const REASON: &str = "NotEnforced";
/// The advice at the end of an Event.
const ADVICE: &str =
    "Pods are restricted on process nodes with networks of their own, where a proxy uses nftables";
/// The number of nodes that an Event names.
const NAMED: usize = 5;
/// The period after which policies are looked at again: Pods may have come to other nodes.
const PERIOD: Duration = Duration::from_secs(30);
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// The longest name of a policy that the name of an Event has; the rest of 253 is for uid and generation.
const NAME_MAX: usize = 180;

/// A NetworkPolicy: what its Event names, and the Pods that it restricts.
pub struct PolicyView {
    meta: Meta,
    pods: Selector,
}

impl View for PolicyView {
    type Object = NetworkPolicy;

    fn of(policy: NetworkPolicy) -> Self {
        let mut meta = Meta::of(&policy.metadata);
        meta.labels.clear();
        meta.annotations.clear();
        let pods = Selector::from_label_selector(&policy.spec.pod_selector);
        Self {
            meta,
            pods: pods.unwrap_or_else(|_| Selector::nothing()),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// Records the Events of all policies while this process leads. Never returns.
pub async fn report_forever(
    policies: Informer<PolicyView>,
    (pods, nodes): (Reader<PodView>, Reader<NodeView>),
    leading: &QueueHandle,
    client: &Client,
    component: &str,
    instance: &str,
) {
    let changed = Arc::new(Notify::new());
    let notify = changed.clone();
    let informer = policies.on_event(move |_| notify.notify_one());
    let reporter = Reporter {
        policies: informer.reader(),
        pods,
        nodes,
        client,
        component,
        instance,
    };
    tokio::select! {
        () = informer.run(CancellationToken::new()) => std::future::pending().await,
        () = leading.in_each_term(|| reporter.report(&changed)) => {}
    }
}

/// Writes the Events of policies.
struct Reporter<'a> {
    policies: Reader<PolicyView>,
    pods: Reader<PodView>,
    nodes: Reader<NodeView>,
    client: &'a Client,
    component: &'a str,
    instance: &'a str,
}

impl Reporter<'_> {
    /// Writes an Event about each policy without an effect, and again about each of those that changes.
    async fn report(&self, changed: &Notify) {
        let mut told = HashMap::new();
        let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
        tokio::join!(
            self.policies.synced(),
            self.pods.synced(),
            self.nodes.synced()
        );
        loop {
            match self.report_new(&mut told).await {
                Ok(()) => {
                    backoff.reset();
                    let all = told.len() == self.policies.len();
                    tokio::select! {
                        () = changed.notified() => {}
                        () = sleep(PERIOD), if !all => {}
                    }
                }
                Err(error) => {
                    debug!(%error, "an Event about a NetworkPolicy was not written");
                    sleep(backoff.next_delay()).await;
                }
            }
        }
    }

    /// Writes the Events of the policies without an effect whose generation has none yet. One that fails does not hold
    /// back the others.
    ///
    /// # Errors
    /// The last one.
    async fn report_new(&self, told: &mut HashMap<String, i64>) -> Result<(), ApiError> {
        let policies = self.policies.list();
        if told.len() > 2 * policies.len() {
            let kept = |uid: &String| policies.iter().any(|policy| policy.meta.uid == *uid);
            told.retain(|uid, _| kept(uid));
        }
        let mut outcome = Ok(());
        for policy in policies {
            let meta = &policy.meta;
            if told.get(&meta.uid) == Some(&meta.generation) {
                continue;
            }
            let Some(message) = self.message(&policy) else {
                continue;
            };
            match self.client.create(&self.event(meta, message)).await {
                Err(error) if is_failure(&error) => outcome = Err(error),
                _ => _ = told.insert(meta.uid.clone(), meta.generation),
            }
        }
        outcome
    }

    /// Returns what to say about a policy; `None` if it has its effect.
    fn message(&self, policy: &PolicyView) -> Option<String> {
        let nodes: BTreeMap<_, _> = self
            .nodes
            .list()
            .into_iter()
            .map(|node| (node.meta.key.name.clone(), node))
            .collect();
        if !nodes.values().any(|node| node.enforces_policies) {
            return Some(format!(
                "no node enforces NetworkPolicies: spec has no effect on any Pod. {ADVICE}"
            ));
        }
        let mut pods = self.pods.in_namespace(&policy.meta.key.namespace);
        pods.retain(|pod| policy.pods.matches(&pod.labels));
        let places = pods
            .iter()
            .filter_map(|pod| nodes.get(pod.node.as_deref()?));
        let without: BTreeSet<_> = places
            .filter(|node| !node.enforces_policies)
            .map(|node| &*node.meta.key.name)
            .collect();
        let names: Vec<_> = without.iter().take(NAMED).copied().collect();
        let more = match without.len().checked_sub(NAMED + 1) {
            Some(more) => format!(" and {} more", more + 1),
            None => String::new(),
        };
        (!names.is_empty()).then(|| {
            let names = names.join(", ");
            format!(
                "these nodes enforce no NetworkPolicies, and spec has no effect on their Pods: {names}{more}. {ADVICE}"
            )
        })
    }

    fn event(&self, policy: &Meta, message: String) -> Event {
        let now = Timestamp::now();
        Event {
            metadata: ObjectMeta {
                namespace: policy.key.namespace.clone(),
                name: event_name(policy),
                ..ObjectMeta::default()
            },
            involved_object: events::reference::<NetworkPolicy>(policy),
            reason: REASON.to_owned(),
            message,
            source: EventSource {
                component: self.component.to_owned(),
                ..EventSource::default()
            },
            first_timestamp: now.into(),
            last_timestamp: now.into(),
            count: 1,
            r#type: "Warning".to_owned(),
            reporting_component: self.component.to_owned(),
            reporting_instance: self.instance.to_owned(),
            ..Event::default()
        }
    }
}

/// Returns whether a write has to be tried again: the Event may be there, and nothing is written in a namespace that is
/// being deleted.
fn is_failure(error: &ApiError) -> bool {
    error.reason != Reason::AlreadyExists && !error.is_namespace_terminating()
}

fn event_name(policy: &Meta) -> String {
    let name: String = policy.key.name.chars().take(NAME_MAX).collect();
    let name = name.trim_end_matches(['.', '-']);
    format!("{name}.{}.{}", policy.uid, policy.generation)
}
