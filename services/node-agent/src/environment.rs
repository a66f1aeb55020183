//! The command and the environment of a container, with everything filled in that the Pod leaves to be filled in.

use std::collections::HashMap;

use setpoint_controller::Client;
use setpoint_model::Key;
use setpoint_proto::core::{
    ConfigMap, ConfigMapKeySelector, Container, EnvFromSource, EnvVar, EnvVarSource, Pod, Secret,
    SecretKeySelector,
};
use setpoint_proto::{ApiError, Reason};

use crate::downward::{self, Place};
use crate::expand::expand;
use crate::world::Trouble;

/// Where programs are found unless the container says otherwise.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Why an environment cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Pod asks for something that is not there.
    #[error("{}", .0.message)]
    Config(Trouble),
    /// The gateway could not be asked.
    #[error("cannot read what the environment refers to")]
    Gateway(#[from] ApiError),
}

/// The environment of a container: a program's basics, then what the Pod says, later entries over earlier ones.
/// `path` where no image says where programs are found.
///
/// # Errors
/// When something it refers to, and does not call optional, is missing.
pub async fn environment(
    gateway: &Client,
    pod: &Pod,
    container: &Container,
    place: &Place,
    path: bool,
) -> Result<Vec<(String, String)>, Error> {
    let mut env = Env::default();
    if path {
        env.set("PATH", PATH.to_owned());
    }
    env.set("HOSTNAME", hostname(pod).to_owned());
    for source in &container.env_from {
        for (name, value) in all_of(gateway, &pod.metadata.namespace, source).await? {
            env.set(&format!("{}{name}", source.prefix), value);
        }
    }
    for var in &container.env {
        let value = match &var.value_from {
            None => Some(expand(&var.value, &env.values)),
            Some(source) => value_from(gateway, pod, container, place, var, source).await?,
        };
        if let Some(value) = value {
            env.set(&var.name, value);
        }
    }
    Ok(env.into_pairs())
}

/// Words of a command line, with their references to the environment filled in.
pub fn words(words: &[String], env: &[(String, String)]) -> Vec<String> {
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
    place: &Place,
    var: &EnvVar,
    source: &EnvVarSource,
) -> Result<Option<String>, Error> {
    if let Some(field) = &source.field_ref {
        let value = downward::field(pod, place, &field.field_path);
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
        let value = downward::resource(container, selector, place);
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
    let value = found(map, optional, "configmap", name)?.and_then(|mut map| map.data.remove(key));
    present(value, optional, || {
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
    let value =
        found(secret, optional, "secret", name)?.and_then(|mut secret| secret.data.remove(key));
    let value = value.map(|value| String::from_utf8_lossy(&value).into_owned());
    present(value, optional, || {
        format!("couldn't find key {key} in Secret {namespace}/{name}")
    })
}

async fn all_of(
    gateway: &Client,
    namespace: &str,
    source: &EnvFromSource,
) -> Result<Vec<(String, String)>, Error> {
    let mut all = Vec::new();
    if let Some(reference) = &source.config_map_ref {
        let key = Key::new(namespace, &reference.local_object_reference.name);
        let map = gateway.get::<ConfigMap>(&key).await;
        let map = found(
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
        let secret = found(
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

pub fn found<T>(
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

fn present(
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
    Error::Config(Trouble::config(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_refer_to_the_environment() {
        let env = [("A".to_owned(), "1".to_owned())];
        let line = ["echo".to_owned(), "$(A)".to_owned()];
        assert_eq!(words(&line, &env), ["echo", "1"]);
    }
}
