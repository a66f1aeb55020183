//! The legacy-service-account-token-cleaner: removes [tokens in Secrets](setpoint_model::legacy_token) that an account
//! lists and nobody uses.
//!
//! ```text
//!        unused for the period                   not even tried for another
//! token ─── and in no Pod ───▶ marked invalid ─────── and in no Pod ───────▶ deleted
//! ```
//! The period begins with the record of uses at the earliest, and with the Secret. Tokens that were made by hand stay.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use setpoint_controller::client::{ListOptions, Preconditions};
use setpoint_controller::{
    Client, Controller, Hosted, Informer, Inputs, Plan, Reader, Receipt, Reconciler, View, Whole,
};
use setpoint_host::DurationText;
use setpoint_host::settings::first_broken;
use setpoint_model::legacy_token::{
    ACCOUNT_NAME, ACCOUNT_UID, INVALID_SINCE, LAST_USED, TRACKING, TRACKING_NAMESPACE, TYPE, day,
    day_of, tracked_since,
};
use setpoint_model::time::after;
use setpoint_model::{Key, Meta, pod_references};
use setpoint_proto::core::{ConfigMap, Pod, Secret, ServiceAccount};
use setpoint_proto::{ApiError, Resource as _};

/// The longest time after which a token is looked at again, as upstream's interval.
const INTERVAL: Duration = Duration::from_hours(24);
/// The time after which Pods are read again that could not be.
const RETRY: Duration = Duration::from_mins(1);

/// The removal of tokens in Secrets that nobody uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cleaning {
    /// Time without use after which a token that its account lists is marked invalid, and after which it is deleted
    /// then. As --legacy-service-account-token-clean-up-period of kube-controller-manager.
    #[serde(with = "DurationText")]
    pub clean_up_period: Duration,
}

impl Default for Cleaning {
    fn default() -> Self {
        Self {
            clean_up_period: Duration::from_hours(365 * 24),
        }
    }
}

impl setpoint_host::Settings for Cleaning {
    fn validate(&self) -> Result<(), String> {
        let is_positive = !self.clean_up_period.is_zero();
        first_broken(&[(is_positive, "clean_up_period must be greater than 0s")])
    }
}

/// A Secret with a token, without the token.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenView(pub Meta);

impl View for TokenView {
    type Object = Secret;

    fn of(secret: Secret) -> Self {
        Self(Meta::of(&secret.metadata))
    }

    fn meta(&self) -> &Meta {
        &self.0
    }
}

/// A ServiceAccount, and the names of the Secrets that it lists.
#[derive(Clone, Debug, PartialEq)]
pub struct AccountView {
    /// The metadata.
    pub meta: Meta,
    /// The names.
    pub secrets: Vec<String>,
}

impl View for AccountView {
    type Object = ServiceAccount;

    fn of(account: ServiceAccount) -> Self {
        let secrets = account.secrets.into_iter().map(|secret| secret.name);
        Self {
            meta: Meta::of(&account.metadata),
            secrets: secrets.collect(),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// The reconciler of tokens.
pub struct Cleaner {
    tokens: Reader<TokenView>,
    accounts: Reader<AccountView>,
    tracking: Reader<Whole<ConfigMap>>,
    period: Duration,
    /// The tokens that would be marked or deleted, and whether a Pod has them.
    in_pods: Mutex<BTreeMap<Key, bool>>,
}

/// Everything that the decision about one token depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The Secret.
    pub token: Meta,
    /// Whether its account exists and lists it.
    pub is_listed: bool,
    /// The day since which uses are recorded, if they are.
    pub tracked_since: Option<Date>,
    /// Whether a Pod has it; `None` if that is not known yet.
    pub is_in_pod: Option<bool>,
    /// The period without use.
    pub period: Duration,
    /// The time.
    pub now: Timestamp,
}

/// A write of the Secret of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Mark it invalid since this day.
    Invalidate(Date),
    /// Delete it, if it is as it was observed.
    Delete,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted<Cleaning> = Hosted {
    name: "legacy-service-account-token-cleaner-controller",
    resource: Secret::RESOURCE,
    run: |replica, settings, cleaning| {
        Box::pin(async move {
            let client = &replica.client;
            let controller = controller(client, &cleaning, |it| replica.controller(it));
            replica.run(controller, settings).await
        })
    },
};

/// Returns the controller; `new` makes it of the reconciler.
pub fn controller(
    client: &Client,
    cleaning: &Cleaning,
    new: impl FnOnce(Cleaner) -> Controller<Cleaner>,
) -> Controller<Cleaner> {
    let tokens: Informer<TokenView> = client.informer().only(selection());
    let tracking: Informer<Whole<ConfigMap>> = client.informer().only(recorded());
    let accounts = client.informer();
    let all = tokens.reader();
    let of_account = tokens.reader();
    let cleaner = Cleaner {
        tokens: tokens.reader(),
        accounts: accounts.reader(),
        tracking: tracking.reader(),
        period: cleaning.clean_up_period,
        in_pods: Mutex::default(),
    };
    let every = move || all.list().iter().map(|token| token.0.key.clone()).collect();
    new(cleaner)
        .for_(tokens)
        .depends_on(accounts, move |delta| {
            let account = delta.new.as_ref().or(delta.old.as_ref());
            account.map_or_else(Vec::new, |account| keys_of(&of_account, account))
        })
        .depends_on(tracking, move |_| every())
}

/// Selects the Secrets with tokens.
pub fn selection() -> ListOptions {
    ListOptions {
        fields: format!("type={TYPE}"),
        ..ListOptions::default()
    }
}

/// Selects the ConfigMap with the day since which uses are recorded.
fn recorded() -> ListOptions {
    ListOptions {
        namespace: TRACKING_NAMESPACE.to_owned(),
        fields: format!("metadata.name={TRACKING}"),
        ..ListOptions::default()
    }
}

/// Returns the keys of the tokens of an account.
fn keys_of(tokens: &Reader<TokenView>, account: &AccountView) -> Vec<Key> {
    let key = &account.meta.key;
    let tokens = tokens.in_namespace(&key.namespace).into_iter();
    let of_account =
        tokens.filter(|token| token.0.annotations.get(ACCOUNT_NAME) == Some(&key.name));
    of_account.map(|token| token.0.key.clone()).collect()
}

/// Plans for one token.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    match due(world) {
        Due::Never => {}
        Due::At(time) => {
            let left = Duration::try_from(time.duration_since(world.now));
            plan.look_again(left.unwrap_or_default().min(INTERVAL));
        }
        Due::Now(_) if world.is_in_pod.is_none() => plan.look_again(RETRY),
        Due::Now(_) if world.is_in_pod == Some(true) => plan.look_again(INTERVAL),
        Due::Now(Action::Delete) => {
            let because = "its account lists it, and it was not used after it was marked invalid";
            plan.step(Action::Delete, because);
        }
        Due::Now(action) => plan.step(action, "its account lists it, and nobody uses it"),
    }
    plan
}

/// The time of an action, unless a Pod has the token.
enum Due {
    Never,
    At(Timestamp),
    Now(Action),
}

fn due(world: &World) -> Due {
    let (token, now) = (&world.token, world.now);
    let (Some(since), Some(created)) = (world.tracked_since, token.created) else {
        return Due::Never;
    };
    if token.deleting || !world.is_listed {
        return Due::Never;
    }
    let label = |name: &str| token.labels.get(name).map(String::as_str);
    let used = label(LAST_USED).map(day);
    if used == Some(None) {
        // When it was used is not known.
        return Due::Never;
    }
    let invalid = label(INVALID_SINCE).and_then(day);
    let unused_since = [Some(since), used.flatten(), invalid].into_iter().flatten();
    // The days themselves count as used.
    let unused_since = unused_since.filter_map(|day| start_of(day.tomorrow().ok()?));
    let unused_since = unused_since.fold(created, Timestamp::max);
    match after(unused_since, world.period) {
        end if end > now => Due::At(end),
        _ if invalid.is_some() => Due::Now(Action::Delete),
        _ => Due::Now(Action::Invalidate(day_of(now))),
    }
}

fn start_of(day: Date) -> Option<Timestamp> {
    Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

impl Cleaner {
    fn world(&self, key: &Key, now: Timestamp) -> Option<World> {
        let token = self.tokens.get(key)?.0.clone();
        let tracking = Key::new(TRACKING_NAMESPACE, TRACKING);
        let tracking = self.tracking.get(&tracking);
        Some(World {
            is_listed: self.is_listed(&token),
            tracked_since: tracking.and_then(|map| tracked_since(&map.object)),
            is_in_pod: self.in_pods.lock().get(key).copied(),
            period: self.period,
            token,
            now,
        })
    }

    fn is_listed(&self, token: &Meta) -> bool {
        let annotation = |name: &str| token.annotations.get(name).map_or("", String::as_str);
        let (name, uid) = (annotation(ACCOUNT_NAME), annotation(ACCOUNT_UID));
        let account = self.accounts.get(&Key::new(&token.key.namespace, name));
        account.is_some_and(|account| {
            let is_its = uid.is_empty() || uid == account.meta.uid;
            is_its && account.secrets.contains(&token.key.name)
        })
    }
}

/// Reads whether a Pod names the Secret of a token. Pods are not watched for tokens that are due once in a year.
async fn is_in_pod(client: &Client, token: &Key) -> Result<bool, ApiError> {
    let options = ListOptions {
        namespace: token.namespace.clone(),
        ..ListOptions::default()
    };
    let mut found = false;
    let look = |pod: Pod| found |= pod_references::secrets(&pod).any(|name| *name == *token.name);
    client.for_each(&options, look).await?;
    Ok(found)
}

impl Reconciler for Cleaner {
    type Object = Secret;
    type World = World;
    type Action = Action;

    async fn fetch(&self, client: &Client, key: &Key, now: Timestamp) {
        self.in_pods.lock().remove(key);
        let world = self.world(key, now);
        if !world.is_some_and(|world| matches!(due(&world), Due::Now(_))) {
            return;
        }
        match is_in_pod(client, key).await {
            Ok(is_in_pod) => {
                self.in_pods.lock().insert(key.clone(), is_in_pod);
            }
            Err(error) => {
                tracing::warn!(secret = %key, %error, "reading the Pods of a token failed")
            }
        }
    }

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        self.world(key, inputs.now)
    }

    fn meta(world: &World) -> &Meta {
        &world.token
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        let seen = &world.token;
        self.in_pods.lock().remove(&seen.key);
        match action {
            Action::Invalidate(today) => {
                let labels = json!({ INVALID_SINCE: today.to_string() });
                let meta = json!({
                    "uid": seen.uid, "resourceVersion": seen.revision.to_string(), "labels": labels,
                });
                let patch = json!({ "metadata": meta });
                let patched = client.patch::<Secret>(&seen.key, "", patch).await;
                Receipt::unless_gone(patched.map(|patched| patched.receipt()))
            }
            Action::Delete => {
                let same = Preconditions::unchanged(seen);
                let deleted = client.delete::<Secret>(&seen.key, same, None).await;
                Receipt::unless_gone(deleted.map(|deleted| deleted.receipt()))
            }
        }
    }
}
