//! The credentials of registries in the Secrets that a Pod names. Those of its ServiceAccount are among them: the
//! gateway adds them to Pods that name none.

use setpoint_model::Key;
use setpoint_proto::Reason;
use setpoint_proto::core::{Container, Secret};
use setpoint_runtime::{self as runtime, Keyring, Runtime, SecretRef};

use super::{Error, Executor};
use crate::pod::world::AssignedPod;

/// The types of Secrets with credentials, and the keys that have them.
const CONFIG: (&str, &str) = ("kubernetes.io/dockerconfigjson", ".dockerconfigjson");
const REGISTRIES: (&str, &str) = ("kubernetes.io/dockercfg", ".dockercfg");

impl<R: Runtime> Executor<R> {
    /// Returns the credentials for the images of a container. Secrets that do not exist are named in an Event: the
    /// images may be there, or need no credentials.
    ///
    /// # Errors
    /// If a Secret cannot be read or parsed.
    pub(super) async fn keyring(
        &self,
        pod: &AssignedPod,
        container: &Container,
    ) -> Result<Keyring, Error> {
        let mut keyring = Keyring::default();
        if !R::RUNS_IMAGES {
            return Ok(keyring);
        }
        let (object, gateway) = (&pod.object, self.client_of(&pod.object));
        let mut missing = Vec::new();
        let references = object.spec.image_pull_secrets.iter();
        for reference in references.filter(|reference| !reference.name.is_empty()) {
            let key = Key::new(&object.metadata.namespace, &reference.name);
            match gateway.get::<Secret>(&key).await {
                Ok(secret) => {
                    let added = add(&mut keyring, &secret);
                    added.map_err(|why| self.malformed(pod, container, why))?;
                }
                Err(error) if is_absent(error.reason) => missing.push(reference.name.as_str()),
                Err(error) => return Err(error.into()),
            }
        }
        self.events.missing_pull_secrets(object, &missing);
        Ok(keyring)
    }

    fn malformed(&self, pod: &AssignedPod, container: &Container, message: String) -> Error {
        let refused = runtime::Error::Image {
            image: container.image.clone(),
            reason: "ErrImagePull",
            message,
            pulling: false,
        };
        self.not_started(pod, container, refused)
    }
}

/// Returns whether an error means that there is no such Secret for this node.
fn is_absent(reason: Reason) -> bool {
    matches!(reason, Reason::NotFound | Reason::Forbidden)
}

/// Adds the credentials of a Secret, which has none if it is of another type.
fn add(keyring: &mut Keyring, secret: &Secret) -> Result<(), String> {
    let content = |key: &str| secret.data.get(key).filter(|content| !content.is_empty());
    let meta = &secret.metadata;
    let own = SecretRef {
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
    };
    let added = match secret.r#type.as_str() {
        kind if kind == CONFIG.0 => content(CONFIG.1).map(|found| keyring.add_config(found, &own)),
        kind if kind == REGISTRIES.0 => {
            content(REGISTRIES.1).map(|found| keyring.add_registries(found, &own))
        }
        _ => None,
    };
    let name = &secret.metadata.name;
    added
        .unwrap_or(Ok(()))
        .map_err(|why| format!("image pull secret {name:?}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_types_of_secrets_have_credentials_and_others_none() {
        let registries = r#"{"here:5000": {"username": "me", "password": "hush"}}"#;
        let config = format!(r#"{{"auths": {registries}}}"#);
        for (kind, key, content, expected) in [
            (CONFIG.0, CONFIG.1, config.as_str(), Ok(1)),
            (REGISTRIES.0, REGISTRIES.1, registries, Ok(1)),
            (CONFIG.0, REGISTRIES.1, registries, Ok(0)),
            (CONFIG.0, CONFIG.1, "", Ok(0)),
            ("Opaque", CONFIG.1, &config, Ok(0)),
            (
                CONFIG.0,
                CONFIG.1,
                "{",
                Err("image pull secret \"pull\": malformed JSON at line 1 column 1".to_owned()),
            ),
        ] {
            let mut secret = Secret {
                r#type: kind.to_owned(),
                ..Secret::default()
            };
            secret.metadata.name = "pull".to_owned();
            let content = content.as_bytes().to_vec();
            secret.data.insert(key.to_owned(), content.into());
            let mut keyring = Keyring::default();
            let added = add(&mut keyring, &secret);
            let found = keyring.lookup("here:5000/app");
            assert!(found.iter().all(|found| found.secret.name == "pull"));
            let found = added.map(|()| found.len());
            assert_eq!(found, expected, "{kind} {key}");
        }
    }
}
