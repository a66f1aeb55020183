//! Resolves a container's environment and the variables in its command line.

use std::collections::HashMap;

use setpoint_controller::Client;
use setpoint_controller::client::ListOptions;
use setpoint_model::Key;
use setpoint_proto::core::{
    ConfigMap, ConfigMapKeySelector, Container, EnvFromSource, EnvVar, EnvVarSource, Pod, Secret,
    SecretKeySelector, Service,
};
use setpoint_proto::{ApiError, Reason};

use crate::pod::downward::{self, Placement};
use crate::pod::env_file::{self, EnvFiles};
use crate::pod::expand::expand;
use crate::pod::service_links;
use crate::pod::world::WaitingReason;

/// Default `PATH` where no image sets one.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The error of resolving an environment or a volume.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Pod refers to something that does not exist or is not supported.
    #[error("{}", .0.message)]
    Config(WaitingReason),
    /// The gateway returned an error or did not answer.
    #[error("cannot read a referenced object")]
    Gateway(#[from] ApiError),
}

/// Returns the environment of a container; later entries replace earlier ones of the same name. `own` are variables
/// of the node, and those of Services. `files` are those that its variables refer to. `path` adds a default `PATH`,
/// for runtimes without images.
///
/// # Errors
/// If a reference that is not optional cannot be resolved, or the gateway returns an error.
pub async fn environment(
    gateway: &Client,
    pod: &Pod,
    container: &Container,
    placement: &Placement,
    own: Vec<(String, String)>,
    files: &EnvFiles,
    path: bool,
) -> Result<Vec<(String, String)>, Error> {
    let mut env = Env::default();
    if path {
        env.set("PATH", PATH.to_owned());
    }
    env.set("HOSTNAME", hostname(pod).to_owned());
    for (name, value) in own {
        env.set(&name, value);
    }
    for source in &container.env_from {
        for (name, value) in env_from_source(gateway, &pod.metadata.namespace, source).await? {
            env.set(&format!("{}{name}", source.prefix), value);
        }
    }
    for var in &container.env {
        let value = match &var.value_from {
            None => Some(expand(&var.value, &env.values)),
            Some(source) => match &source.file_key_ref {
                Some(selector) => env_file::value(files, selector).map_err(config)?,
                None => value_from(gateway, pod, container, placement, var, source).await?,
            },
        };
        if let Some(value) = value {
            env.set(&var.name, value);
        }
    }
    Ok(env.into_pairs())
}

/// Returns the variables of the Services that a Pod is told of: those of its namespace unless it asks for none, but for
/// that of the API, whose variables the node sets.
///
/// # Errors
/// If the gateway returns an error.
pub async fn service_variables(
    gateway: &Client,
    pod: &Pod,
) -> Result<Vec<(String, String)>, ApiError> {
    if pod.spec.enable_service_links == Some(false) {
        return Ok(Vec::new());
    }
    let own = ListOptions {
        namespace: pod.metadata.namespace.clone(),
        ..ListOptions::default()
    };
    let mut services = gateway.list::<Service>(&own).await?.items;
    services.retain(|service| Key::of(&service.metadata) != Key::new("default", "kubernetes"));
    Ok(service_links::variables(&services))
}

/// Expands `$(NAME)` in the words of a command line.
pub fn expand_words(words: &[String], env: &[(String, String)]) -> Vec<String> {
    let values: HashMap<_, _> = env.iter().cloned().collect();
    words.iter().map(|word| expand(word, &values)).collect()
}

pub fn hostname(pod: &Pod) -> &str {
    match pod.spec.hostname.as_str() {
        "" => &pod.metadata.name,
        named => named,
    }
}

#[derive(Default)]
struct Env {
    order: Vec<String>,
    values: HashMap<String, String>,
}

impl Env {
    fn set(&mut self, name: &str, value: String) {
        if self.values.insert(name.to_owned(), value).is_none() {
            self.order.push(name.to_owned());
        }
    }

    fn into_pairs(mut self) -> Vec<(String, String)> {
        let take = |name: String| self.values.remove_entry(&name);
        self.order.into_iter().filter_map(take).collect()
    }
}

async fn value_from(
    gateway: &Client,
    pod: &Pod,
    container: &Container,
    placement: &Placement,
    var: &EnvVar,
    source: &EnvVarSource,
) -> Result<Option<String>, Error> {
    if let Some(field) = &source.field_ref {
        let value = downward::field(pod, placement, &field.field_path);
        let message = || {
            format!(
                "env {}: unsupported fieldPath: {}",
                var.name, field.field_path
            )
        };
        return value.map(Some).ok_or_else(|| config(message()));
    }
    if let Some(selector) = &source.config_map_key_ref {
        return from_config_map(gateway, &pod.metadata.namespace, selector).await;
    }
    if let Some(selector) = &source.secret_key_ref {
        return from_secret(gateway, &pod.metadata.namespace, selector).await;
    }
    if let Some(selector) = &source.resource_field_ref {
        let named = downward::container(&pod.spec, &selector.container_name);
        let container = named.unwrap_or(container);
        let value = downward::resource(&pod.spec, container, selector, placement);
        let message = || {
            format!(
                "env {}: unsupported resource: {}",
                var.name, selector.resource
            )
        };
        return value.map(Some).ok_or_else(|| config(message()));
    }
    Err(config(format!("env {}: unsupported source", var.name)))
}

async fn from_config_map(
    gateway: &Client,
    namespace: &str,
    selector: &ConfigMapKeySelector,
) -> Result<Option<String>, Error> {
    let (name, key) = (&selector.local_object_reference.name, &selector.key);
    let optional = selector.optional.unwrap_or_default();
    let map = gateway.get::<ConfigMap>(&Key::new(namespace, name)).await;
    let value =
        optional_object(map, optional, "configmap", name)?.and_then(|mut map| map.data.remove(key));
    required(value, optional, || {
        format!("couldn't find key {key} in ConfigMap {namespace}/{name}")
    })
}

async fn from_secret(
    gateway: &Client,
    namespace: &str,
    selector: &SecretKeySelector,
) -> Result<Option<String>, Error> {
    let (name, key) = (&selector.local_object_reference.name, &selector.key);
    let optional = selector.optional.unwrap_or_default();
    let secret = gateway.get::<Secret>(&Key::new(namespace, name)).await;
    let value = optional_object(secret, optional, "secret", name)?
        .and_then(|mut secret| secret.data.remove(key));
    let value = value.map(|value| String::from_utf8_lossy(&value).into_owned());
    required(value, optional, || {
        format!("couldn't find key {key} in Secret {namespace}/{name}")
    })
}

async fn env_from_source(
    gateway: &Client,
    namespace: &str,
    source: &EnvFromSource,
) -> Result<Vec<(String, String)>, Error> {
    let mut all = Vec::new();
    if let Some(reference) = &source.config_map_ref {
        let key = Key::new(namespace, &reference.local_object_reference.name);
        let map = gateway.get::<ConfigMap>(&key).await;
        let map = optional_object(
            map,
            reference.optional.unwrap_or_default(),
            "configmap",
            &key.name,
        )?
        .unwrap_or_default();
        all.extend(map.data);
    }
    if let Some(reference) = &source.secret_ref {
        let key = Key::new(namespace, &reference.local_object_reference.name);
        let secret = gateway.get::<Secret>(&key).await;
        let secret = optional_object(
            secret,
            reference.optional.unwrap_or_default(),
            "secret",
            &key.name,
        )?
        .unwrap_or_default();
        let text = |bytes: bytes::Bytes| String::from_utf8_lossy(&bytes).into_owned();
        all.extend(
            secret
                .data
                .into_iter()
                .map(|(name, value)| (name, text(value))),
        );
    }
    Ok(all)
}

pub fn optional_object<T>(
    answer: Result<T, ApiError>,
    optional: bool,
    kind: &str,
    name: &str,
) -> Result<Option<T>, Error> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.reason != Reason::NotFound => Err(error.into()),
        Err(_) if optional => Ok(None),
        Err(_) => Err(config(format!("{kind} {name:?} not found"))),
    }
}

fn required(
    value: Option<String>,
    optional: bool,
    missing: impl FnOnce() -> String,
) -> Result<Option<String>, Error> {
    match value {
        None if !optional => Err(config(missing())),
        value => Ok(value),
    }
}

fn config(message: String) -> Error {
    Error::Config(WaitingReason::config(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_words_are_expanded_from_the_environment() {
        let env = [("A".to_owned(), "1".to_owned())];
        let line = ["echo".to_owned(), "$(A)".to_owned()];
        assert_eq!(expand_words(&line, &env), ["echo", "1"]);
    }
}
