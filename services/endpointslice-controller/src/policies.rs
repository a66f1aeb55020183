//! NetworkPolicies have no effect yet: an Event of each says so, once for each generation.
//!
//! Stands here because this is the controller of what Services forward to; it goes when policies are enforced. The name
//! of an Event is made of the policy and its generation, so that a new leader, which looks at all policies, repeats
//! none that is still there.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::{Backoff, Client, Informer, QueueHandle, Reader, View, events};
use setpoint_model::Meta;
use setpoint_proto::core::{Event, EventSource};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::networking::NetworkPolicy;
use setpoint_proto::{ApiError, Reason};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::debug;

const REASON: &str = "NotEnforced";
const MESSAGE: &str =
    "NetworkPolicies are not enforced in this cluster yet: this one restricts no connections";
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// The longest name of a policy that the name of an Event has; the rest of 253 is for uid and generation.
const NAME_MAX: usize = 180;

/// A NetworkPolicy: what its Event names.
pub struct PolicyView(Meta);

impl View for PolicyView {
    type Object = NetworkPolicy;

    fn of(policy: NetworkPolicy) -> Self {
        let mut meta = Meta::of(&policy.metadata);
        meta.labels.clear();
        meta.annotations.clear();
        Self(meta)
    }

    fn meta(&self) -> &Meta {
        &self.0
    }
}

/// Records the Events of all policies while this process leads. Never returns.
pub async fn report_forever(
    policies: Informer<PolicyView>,
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
    client: &'a Client,
    component: &'a str,
    instance: &'a str,
}

impl Reporter<'_> {
    /// Writes an Event about each policy, and again about each that changes.
    async fn report(&self, changed: &Notify) {
        let mut told = HashMap::new();
        let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
        self.policies.synced().await;
        loop {
            match self.report_new(&mut told).await {
                Ok(()) => {
                    backoff.reset();
                    changed.notified().await;
                }
                Err(error) => {
                    debug!(%error, "an Event about a NetworkPolicy was not written");
                    sleep(backoff.next_delay()).await;
                }
            }
        }
    }

    /// Writes the Events of the policies whose generation has none yet. One that fails does not hold back the others.
    ///
    /// # Errors
    /// The last one.
    async fn report_new(&self, told: &mut HashMap<String, i64>) -> Result<(), ApiError> {
        let policies = self.policies.list();
        if told.len() > 2 * policies.len() {
            let kept = |uid: &String| policies.iter().any(|policy| policy.0.uid == *uid);
            told.retain(|uid, _| kept(uid));
        }
        let mut outcome = Ok(());
        for policy in policies {
            let meta = &policy.0;
            if told.get(&meta.uid) == Some(&meta.generation) {
                continue;
            }
            match self.client.create(&self.event(meta)).await {
                Err(error) if is_failure(&error) => outcome = Err(error),
                _ => _ = told.insert(meta.uid.clone(), meta.generation),
            }
        }
        outcome
    }

    fn event(&self, policy: &Meta) -> Event {
        let now = Timestamp::now();
        Event {
            metadata: ObjectMeta {
                namespace: policy.key.namespace.clone(),
                name: event_name(policy),
                ..ObjectMeta::default()
            },
            involved_object: events::reference::<NetworkPolicy>(policy),
            reason: REASON.to_owned(),
            message: MESSAGE.to_owned(),
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
