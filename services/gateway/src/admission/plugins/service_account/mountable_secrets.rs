//! The Secrets that Pods of a ServiceAccount may use, if it has the annotation
//! `kubernetes.io/enforce-mountable-secrets`: those that it names (upstream: `limitSecretReferences`).

use std::collections::HashSet;

use setpoint_proto::core::{EnvFromSource, EnvVar, Pod, ServiceAccount};

/// The annotation.
pub(super) const ANNOTATION: &str = "kubernetes.io/enforce-mountable-secrets";

/// Returns whether an account limits the Secrets of its Pods.
pub(super) fn are_enforced(account: &ServiceAccount) -> bool {
    let value = account.metadata.annotations.get(ANNOTATION);
    // As Go parses booleans.
    value.is_some_and(|value| ["1", "t", "T", "TRUE", "true", "True"].contains(&value.as_str()))
}

/// Checks the Secrets of a new Pod.
///
/// # Errors
/// Why the Pod may not use one of them.
pub(super) fn check(account: &ServiceAccount, pod: &Pod) -> Result<(), String> {
    let named = Named::by(account);
    named.check_volumes(pod)?;
    for container in &pod.spec.init_containers {
        let of = ("init container", container.name.as_str());
        named.check_variables(of, &container.env, &container.env_from)?;
    }
    for container in &pod.spec.containers {
        let of = ("container", container.name.as_str());
        named.check_variables(of, &container.env, &container.env_from)?;
    }
    check_images(account, pod)
}

/// Checks the Secrets of the ephemeral containers of a Pod.
///
/// # Errors
/// As [`check`].
pub(super) fn check_ephemeral(account: &ServiceAccount, pod: &Pod) -> Result<(), String> {
    let named = Named::by(account);
    let containers = pod.spec.ephemeral_containers.iter();
    let mut containers = containers.map(|container| &container.ephemeral_container_common);
    containers.try_for_each(|container| {
        let of = ("ephemeral container", container.name.as_str());
        named.check_variables(of, &container.env, &container.env_from)
    })
}

/// The Secrets that an account names.
struct Named<'a> {
    secrets: HashSet<&'a str>,
    account: &'a str,
}

impl<'a> Named<'a> {
    fn by(account: &'a ServiceAccount) -> Self {
        let secrets = account.secrets.iter();
        Self {
            secrets: secrets.map(|secret| secret.name.as_str()).collect(),
            account: &account.metadata.name,
        }
    }

    fn has(&self, secret: &str) -> bool {
        self.secrets.contains(secret)
    }

    fn check_volumes(&self, pod: &Pod) -> Result<(), String> {
        let volumes = pod.spec.volumes.iter();
        let secrets = volumes.filter_map(|volume| volume.volume_source.secret.as_ref());
        let mut names = secrets.map(|secret| secret.secret_name.as_str());
        names.find(|name| !self.has(name)).map_or(Ok(()), |name| {
            Err(format!(
                "volume with secret.secretName=\"{name}\" is not allowed because service account {} does not reference \
                that secret",
                self.account
            ))
        })
    }

    /// Checks the variables of a container, which is called by its list and its name.
    fn check_variables(
        &self,
        (list, container): (&str, &str),
        variables: &[EnvVar],
        sources: &[EnvFromSource],
    ) -> Result<(), String> {
        let refused = |variable: &str, name: &str| {
            Err(format!(
                "{list} {container} with {variable} referencing secret.secretName=\"{name}\" is not allowed because \
                service account {} does not reference that secret",
                self.account
            ))
        };
        for variable in variables {
            let source = variable.value_from.as_ref();
            if let Some(key) = source.and_then(|source| source.secret_key_ref.as_ref())
                && !self.has(&key.local_object_reference.name)
            {
                let name = &key.local_object_reference.name;
                return refused(&format!("envVar {}", variable.name), name);
            }
        }
        let secrets = sources
            .iter()
            .filter_map(|source| source.secret_ref.as_ref());
        let mut names = secrets.map(|secret| secret.local_object_reference.name.as_str());
        match names.find(|name| !self.has(name)) {
            None => Ok(()),
            Some(name) => refused("envFrom", name),
        }
    }
}

fn check_images(account: &ServiceAccount, pod: &Pod) -> Result<(), String> {
    let has = |name: &str| {
        account
            .image_pull_secrets
            .iter()
            .any(|one| one.name == name)
    };
    let mut secrets = pod.spec.image_pull_secrets.iter().enumerate();
    match secrets.find(|(_, secret)| !has(&secret.name)) {
        None => Ok(()),
        Some((index, secret)) => Err(format!(
            "imagePullSecrets[{index}].name=\"{}\" is not allowed because service account {} does not reference that \
            imagePullSecret",
            secret.name, account.metadata.name
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn account() -> ServiceAccount {
        serde_json::from_value(json!({
            "metadata": { "name": "web", "annotations": { ANNOTATION: "true" } },
            "secrets": [{ "name": "known" }],
            "imagePullSecrets": [{ "name": "pull" }],
        }))
        .unwrap()
    }

    fn pod(spec: Value) -> Pod {
        serde_json::from_value(json!({ "spec": spec })).unwrap()
    }

    fn variable(secret: &str) -> Value {
        json!([{ "name": "A", "valueFrom": { "secretKeyRef": { "name": secret, "key": "k" } } }])
    }

    fn source(secret: &str) -> Value {
        json!([{ "secretRef": { "name": secret } }])
    }

    #[test]
    fn the_annotation_is_a_boolean() {
        let mut account = account();
        assert!(are_enforced(&account));
        for (value, expected) in [
            ("1", true),
            ("TRUE", true),
            ("yes", false),
            ("false", false),
        ] {
            account
                .metadata
                .annotations
                .insert(ANNOTATION.into(), value.into());
            assert_eq!(are_enforced(&account), expected, "{value}");
        }
        account.metadata.annotations.clear();
        assert!(!are_enforced(&account));
    }

    /// Checks V12.
    #[test]
    fn a_pod_uses_only_the_secrets_that_its_account_names_whatever_refers_to_them() {
        let end = "is not allowed because service account web does not reference that secret";
        let containers = |list: &str, field: &str, value: Value| json!({ list: [{ "name": "c", field: value }] });
        let cases = |secret: &str| {
            [
                (
                    json!({ "volumes": [{ "name": "v", "secret": { "secretName": secret } }] }),
                    format!("volume with secret.secretName=\"other\" {end}"),
                ),
                (
                    containers("initContainers", "env", variable(secret)),
                    format!(
                        "init container c with envVar A referencing secret.secretName=\"other\" {end}"
                    ),
                ),
                (
                    containers("initContainers", "envFrom", source(secret)),
                    format!(
                        "init container c with envFrom referencing secret.secretName=\"other\" {end}"
                    ),
                ),
                (
                    containers("containers", "env", variable(secret)),
                    format!(
                        "container c with envVar A referencing secret.secretName=\"other\" {end}"
                    ),
                ),
                (
                    containers("containers", "envFrom", source(secret)),
                    format!(
                        "container c with envFrom referencing secret.secretName=\"other\" {end}"
                    ),
                ),
            ]
        };
        for (spec, expected) in cases("other") {
            assert_eq!(check(&account(), &pod(spec)), Err(expected));
        }
        for (spec, _) in cases("known") {
            assert_eq!(check(&account(), &pod(spec)), Ok(()));
        }
        let ephemeral = |secret: &str| {
            let of = containers("ephemeralContainers", "envFrom", source(secret));
            check_ephemeral(&account(), &pod(of))
        };
        let refused = ephemeral("other").unwrap_err();
        assert!(
            refused.starts_with("ephemeral container c with envFrom"),
            "{refused}"
        );
        assert_eq!(ephemeral("known"), Ok(()));
    }

    #[test]
    fn a_pod_pulls_images_by_the_secrets_of_its_account() {
        let pulling =
            |name: &str| pod(json!({ "imagePullSecrets": [{ "name": "pull" }, { "name": name }] }));
        assert_eq!(check(&account(), &pulling("pull")), Ok(()));
        assert_eq!(
            check(&account(), &pulling("known")).unwrap_err(),
            "imagePullSecrets[1].name=\"known\" is not allowed because service account web does not reference that \
            imagePullSecret"
        );
    }
}
