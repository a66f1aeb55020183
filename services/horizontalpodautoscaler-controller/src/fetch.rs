//! Fetch: reads the target and the metrics of an autoscaler, and keeps its history.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::Client;
use setpoint_model::{Key, Selector};
use setpoint_proto::Resource as _;
use setpoint_proto::autoscaling_v2::{CrossVersionObjectReference, MetricIdentifier};
use setpoint_proto::core::Namespace;
use setpoint_proto::custom_metrics::MetricValueList;
use setpoint_proto::metrics::PodMetrics;
use setpoint_proto::setpoint::{CustomMetricRequest, ExternalMetricRequest};
use setpoint_workload::{DefinitionView, resource_of};
use tokio::sync::OnceCell;

use crate::act;
use crate::autoscaler::millis;
use crate::decision::needs_metrics;
use crate::{
    Action, AutoscalerView, Autoscalers, History, Metric, Reading, ResourceMetrics, Samples,
    ScaleView, Source, World, decide, pods_samples, resource_samples,
};

/// What the leader remembers of each autoscaler.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<HashMap<Key, Remembered>>);

#[derive(Debug, Default)]
struct Remembered {
    /// The uid of the autoscaler: another one of its name begins anew.
    uid: String,
    history: History,
    /// The Pods that it scales, once they are known.
    selector: Option<Arc<Selector>>,
    /// The last world.
    world: Option<Arc<World>>,
}

impl Memory {
    /// Forgets everything, as a new leader.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }

    /// Returns the last world of a key.
    pub(crate) fn world(&self, key: &Key) -> Option<Arc<World>> {
        self.0.lock().get(key)?.world.clone()
    }

    /// Adds a change of the replicas to the history.
    pub(crate) fn scaled(&self, world: &World, action: &Action) {
        let (Action::Scale { replicas, .. }, Ok(scale)) = (action, &world.scale) else {
            return;
        };
        let behavior = world.autoscaler.spec.behavior.as_ref();
        self.with(&world.autoscaler, |remembered| {
            let history = &mut remembered.history;
            history.scaled(scale.replicas(), *replicas, world.now, behavior);
        });
    }

    /// Remembers the Pods that an autoscaler scales. Returns the selectors of the other ones of its namespace.
    fn meet(
        &self,
        autoscaler: &AutoscalerView,
        selector: &Arc<Selector>,
    ) -> Vec<(Key, Arc<Selector>)> {
        self.with(autoscaler, |mine| mine.selector = Some(selector.clone()));
        let (all, key) = (self.0.lock(), &autoscaler.meta.key);
        let others = all
            .iter()
            .filter(|(other, _)| *other != key && other.namespace == key.namespace);
        let known = others.filter_map(|(key, one)| Some((key.clone(), one.selector.clone()?)));
        known.collect()
    }

    /// Returns the history, which begins with the current replicas.
    fn history(
        &self,
        autoscaler: &AutoscalerView,
        current: Option<i32>,
        now: Timestamp,
    ) -> History {
        self.with(autoscaler, |remembered| {
            if let Some(current) = current {
                remembered.history.start(current, now);
            }
            remembered.history.clone()
        })
    }

    /// Keeps a world for its observation, and its recommendation for later ones.
    fn keep(&self, world: World, recommendation: Option<i32>) {
        let autoscaler = world.autoscaler.clone();
        let window = world.limits(0).longest_window();
        let now = world.now;
        self.with(&autoscaler, |remembered| {
            if let Some(replicas) = recommendation {
                remembered.history.recommend(replicas, now, window);
            }
            remembered.world = Some(Arc::new(world));
        });
    }

    fn with<T>(&self, autoscaler: &AutoscalerView, change: impl FnOnce(&mut Remembered) -> T) -> T {
        let (mut all, meta) = (self.0.lock(), &autoscaler.meta);
        let remembered = all.entry(meta.key.clone()).or_default();
        if remembered.uid != meta.uid {
            *remembered = Remembered {
                uid: meta.uid.clone(),
                ..Remembered::default()
            };
        }
        change(remembered)
    }
}

impl Autoscalers {
    /// Reads the world of an autoscaler, and records what could not be read or computed.
    pub(crate) async fn read(&self, client: &Client, key: &Key, now: Timestamp) {
        let Some(autoscaler) = self.autoscalers.get(key) else {
            return self.memory.forget(key);
        };
        let scale = self.scale(client, &autoscaler).await;
        let current = scale.as_ref().ok().map(ScaleView::replicas);
        let mut world = World {
            history: self.memory.history(&autoscaler, current, now),
            settings: self.settings.clone(),
            autoscaler,
            scale,
            now,
            pods: Vec::new(),
            rivals: Vec::new(),
            readings: Vec::new(),
        };
        self.look_at_pods(client, &mut world).await;
        let decision = decide(&world);
        act::warn(&self.events, &world.autoscaler, &decision.warnings);
        self.memory.keep(world, decision.recommendation);
    }

    async fn scale(
        &self,
        client: &Client,
        autoscaler: &AutoscalerView,
    ) -> Result<ScaleView, String> {
        let target = &autoscaler.spec.target;
        let resource = resource_of(
            &target.api_version,
            &target.kind,
            self.definitions.list().iter().map(|one| &**one),
        )?;
        let key = Key::new(&autoscaler.meta.key.namespace, &target.name);
        let of = key.in_resource(resource.as_str());
        let scale = client.scale(&of).await.map_err(|error| error.to_string())?;
        Ok(ScaleView { resource, scale })
    }

    /// Reads the Pods and metrics of a target, if they decide.
    async fn look_at_pods(&self, client: &Client, world: &mut World) {
        let Ok(scale) = &world.scale else { return };
        let Ok(selector) = scale.selector().map(Arc::new) else {
            return;
        };
        if !needs_metrics(world, scale) {
            return;
        }
        let autoscaler = world.autoscaler.clone();
        let namespace = &autoscaler.meta.key.namespace;
        world.rivals = self.memory.meet(&autoscaler, &selector);
        let mut pods = self.pods.in_namespace(namespace);
        pods.retain(|pod| selector.matches(&pod.labels));
        world.pods = pods;
        let definitions = self.definitions.list();
        let readings = Readings {
            client,
            namespace,
            selector: &selector,
            resources: &*self.metrics,
            definitions: &definitions,
            pods: OnceCell::new(),
        };
        for metric in &autoscaler.spec.metrics {
            world.readings.push(readings.of(metric).await);
        }
    }
}

/// Reads the metrics of one autoscaler. The usage of its Pods is read once for all resources.
struct Readings<'a> {
    client: &'a Client,
    namespace: &'a str,
    selector: &'a Selector,
    resources: &'a dyn ResourceMetrics,
    definitions: &'a [Arc<DefinitionView>],
    pods: OnceCell<Result<Vec<PodMetrics>, String>>,
}

impl Readings<'_> {
    async fn of(&self, metric: &Metric) -> Reading {
        match &metric.source {
            Source::Resource(resource) => self.usage(resource, None).await,
            Source::Container {
                resource,
                container,
            } => self.usage(resource, Some(container)).await,
            Source::Pods(metric) => Reading::Pods(self.of_pods(metric).await),
            Source::Object { object, metric } => {
                let value = self.of_object(object, metric).await;
                Reading::Values(value.map(|value| vec![value]))
            }
            Source::External(metric) => Reading::Values(self.external(metric).await),
            Source::Unknown(_) => Reading::Values(Err(String::new())),
        }
    }

    async fn of_pods(&self, metric: &MetricIdentifier) -> Result<Samples, String> {
        let read = self.custom(CustomMetricRequest {
            resource: "pods".to_owned(),
            namespace: self.namespace.to_owned(),
            name: "*".to_owned(),
            metric: metric.name.clone(),
            label_selector: self.selector.to_string(),
            metric_label_selector: labels(metric)?,
            trace: None,
        });
        let samples = pods_samples(&read.await?);
        let none = "no metrics returned from custom metrics API";
        ensure(samples.is_empty(), none, samples)
    }

    /// Returns the value of a metric of an object. As upstream, a Namespace is always that of the autoscaler.
    async fn of_object(
        &self,
        object: &CrossVersionObjectReference,
        metric: &MetricIdentifier,
    ) -> Result<i64, String> {
        let resource = resource_of(
            &object.api_version,
            &object.kind,
            self.definitions.iter().map(|one| &**one),
        );
        let resource = resource.map_err(|error| {
            custom(format!(
                "unable to map kind {} to resource: {error}",
                object.kind
            ))
        })?;
        let namespace = self.namespace.to_owned();
        let (namespace, name) = match resource == Namespace::RESOURCE {
            true => (String::new(), namespace),
            false => (namespace, object.name.clone()),
        };
        let read = self.custom(CustomMetricRequest {
            resource,
            namespace,
            name,
            metric: metric.name.clone(),
            label_selector: String::new(),
            metric_label_selector: labels(metric)?,
            trace: None,
        });
        let list = read.await?;
        match list.items.as_slice() {
            [one] => Ok(millis(&one.value)),
            all => Err(custom(format!(
                "the custom metrics API server returned {} results when we asked for exactly one",
                all.len()
            ))),
        }
    }

    async fn custom(&self, request: CustomMetricRequest) -> Result<MetricValueList, String> {
        let read = self.client.custom_metric(request).await;
        read.map_err(custom)
    }

    async fn external(&self, metric: &MetricIdentifier) -> Result<Vec<i64>, String> {
        let read = self.client.external_metric(ExternalMetricRequest {
            namespace: self.namespace.to_owned(),
            metric: metric.name.clone(),
            metric_label_selector: labels(metric)?,
            trace: None,
        });
        let list = read.await.map_err(|error| {
            format!("unable to fetch metrics from external metrics API: {error}")
        })?;
        let values: Vec<_> = list.items.iter().map(|item| millis(&item.value)).collect();
        let none = "no metrics returned from external metrics API";
        ensure(values.is_empty(), none, values)
    }

    async fn usage(&self, resource: &str, container: Option<&str>) -> Reading {
        let list = async || {
            let read = self
                .resources
                .of_pods(self.client, self.namespace, self.selector)
                .await
                .map_err(|error| {
                    format!("unable to fetch metrics from resource metrics API: {error}")
                })?;
            let none = "no metrics returned from resource metrics API";
            ensure(read.is_empty(), none, read)
        };
        let read = self.pods.get_or_init(list).await;
        let samples = |pods: &Vec<_>| resource_samples(pods, resource, container);
        Reading::Pods(read.as_ref().map(samples).map_err(String::clone))
    }
}

fn custom(error: impl Display) -> String {
    format!("unable to fetch metrics from custom metrics API: {error}")
}

/// Returns the selector of a metric's series as text.
fn labels(metric: &MetricIdentifier) -> Result<String, String> {
    let Some(selector) = &metric.selector else {
        return Ok(String::new());
    };
    let selector = Selector::from_label_selector(selector).map_err(|error| error.to_string())?;
    Ok(selector.to_string())
}

/// Returns what was read, or this error if that is nothing.
fn ensure<T>(is_empty: bool, error: &str, read: T) -> Result<T, String> {
    match is_empty {
        true => Err(error.to_owned()),
        false => Ok(read),
    }
}
