//! The ServiceAccount of a new Pod, and the volume with its token (upstream: the admission plugin ServiceAccount).
//!
//! A Pod without an account runs as `default`, which every namespace gets soon after it is created. Where it does not
//! exist yet, upstream refuses Pods and their creators retry; here they are admitted as they will be when it does,
//! since a new account has no settings. Their nodes request tokens until the account exists.

mod mountable_secrets;

use memchr::memmem;
use setpoint_codec::{Object, kind_of};
use setpoint_kinds::pod::references;
use setpoint_kinds::validation::podspec::MIRROR;
use setpoint_kinds::validation::set_default;
use setpoint_kinds::{Subresource, Target};
use setpoint_model::{Key, names};
use setpoint_proto::ApiError;
use setpoint_proto::core::{
    ConfigMapProjection, Container, DownwardApiProjection, DownwardApiVolumeFile, KeyToPath,
    LocalObjectReference, ObjectFieldSelector, Pod, PodSpec, ProjectedVolumeSource, ServiceAccount,
    ServiceAccountTokenProjection, Volume, VolumeMount, VolumeProjection, VolumeSource,
};
use setpoint_store::cache::{AtLeast, Cached};
use setpoint_store::keys;

use super::{Plugin, Step};
use crate::admission::reader::decode;
use crate::admission::{Attributes, Operation, Reader};
use crate::errors;

const DEFAULT_ACCOUNT: &str = "default";
/// The path at which the libraries of clients look for the files.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX: &str = "kube-api-access-";
/// An hour, and seconds by which upstream recognizes tokens that it injected itself.
const TOKEN_SECONDS: i64 = 60 * 60 + 7;
const ROOT_CA: &str = "kube-root-ca.crt";

/// The plugin.
pub(super) struct Accounts;

impl Plugin for Accounts {
    fn admit<'a>(
        &'a self,
        request: Attributes<'a>,
        object: &'a mut dyn Object,
        reader: &'a dyn Reader,
    ) -> Option<Step<'a>> {
        if request.operation != Operation::Create {
            return None;
        }
        let pod = object.downcast_mut::<Pod>()?;
        Some(Box::pin(admit(pod, request.target, reader)))
    }

    fn check<'a>(&'a self, request: Attributes<'a>, reader: &'a dyn Reader) -> Option<Step<'a>> {
        let check = match (request.operation, request.target.subresource) {
            (Operation::Create, Subresource::None) => mountable_secrets::check,
            (Operation::Update, Subresource::EphemeralContainers) => {
                mountable_secrets::check_ephemeral
            }
            _ => return None,
        };
        let pod = request.object?.downcast_ref::<Pod>()?;
        let is_mirror = pod.metadata.annotations.contains_key(MIRROR);
        let step = check_secrets(pod, request.target, reader, check);
        (!is_mirror).then(|| Box::pin(step) as Step<'a>)
    }
}

/// Checks the Secrets of a Pod, if its account limits them.
async fn check_secrets(
    pod: &Pod,
    target: &Target,
    reader: &dyn Reader,
    check: fn(&ServiceAccount, &Pod) -> Result<(), String>,
) -> Result<(), ApiError> {
    let (kind, name) = (kind_of::<ServiceAccount>(), &pod.spec.service_account_name);
    let key = Key::new(&target.namespace, name);
    let account = match reader.get(kind, &key, AtLeast::Any).await? {
        // Few accounts do: the others need not be decoded.
        Some(cached)
            if memmem::find(&cached.raw, mountable_secrets::ANNOTATION.as_bytes()).is_none() =>
        {
            return Ok(());
        }
        Some(cached) => decode(&cached)?,
        // One that was just created limits its first Pod, too.
        None => match find(&key, reader).await? {
            Some(account) => account,
            None => return Ok(()),
        },
    };
    match mountable_secrets::are_enforced(&account) {
        true => check(&account, pod).map_err(|why| errors::forbidden(target, &why, None)),
        false => Ok(()),
    }
}

/// Sets the account of a Pod, its pull secrets if the Pod has none, and mounts its token.
///
/// # Errors
/// `Forbidden` if the Pod names an account that does not exist, or is a mirror Pod with an account.
async fn admit(pod: &mut Pod, target: &Target, reader: &dyn Reader) -> Result<(), ApiError> {
    if pod.metadata.annotations.contains_key(MIRROR) {
        return check_mirror(pod).map_err(|why| errors::forbidden(target, why, None));
    }
    let spec = &mut pod.spec;
    if spec.service_account_name.is_empty() {
        spec.service_account_name.clone_from(&spec.service_account);
    }
    set_default(&mut spec.service_account_name, DEFAULT_ACCOUNT);
    let (namespace, name) = (&target.namespace, &spec.service_account_name);
    let account = match find(&Key::new(namespace, name), reader).await? {
        Some(account) => account,
        None if name == DEFAULT_ACCOUNT => ServiceAccount::default(),
        None => {
            let why = format!(
                "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
            );
            return Err(errors::forbidden(target, &why, None));
        }
    };
    if mounts_token(spec, &account) {
        mount_token(spec, &names::suffix(rand::random()));
    }
    if spec.image_pull_secrets.is_empty() {
        spec.image_pull_secrets = account.image_pull_secrets;
    }
    Ok(())
}

/// Refuses a mirror Pod, which is not run through the API, with an account or a Secret.
fn check_mirror(pod: &Pod) -> Result<(), &'static str> {
    let spec = &pod.spec;
    if !spec.service_account_name.is_empty() || !spec.service_account.is_empty() {
        return Err("a mirror pod may not reference service accounts");
    }
    if references::secrets(pod).next().is_some() {
        return Err("a mirror pod may not reference secrets");
    }
    let projected = spec.volumes.iter();
    let projected = projected.filter_map(|volume| volume.volume_source.projected.as_ref());
    let mut sources = projected.flat_map(|projected| &projected.sources);
    match sources.any(|source| source.service_account_token.is_some()) {
        true => Err("a mirror pod may not use ServiceAccountToken volume projections"),
        false => Ok(()),
    }
}

/// Returns an account of the cache, or of the store if it is not in the cache yet.
async fn find(key: &Key, reader: &dyn Reader) -> Result<Option<ServiceAccount>, ApiError> {
    let kind = kind_of::<ServiceAccount>();
    if let Some(cached) = reader.get(kind, key, AtLeast::Any).await? {
        return decode(&cached).map(Some);
    }
    let Some(entry) = reader.newest(&keys::object(kind, key)).await? else {
        return Ok(None);
    };
    let stored = errors::readable(Cached::read(kind, key.clone(), &entry))?;
    decode(&stored).map(Some)
}

/// Returns whether the token is mounted: the Pod decides, or else its account.
fn mounts_token(spec: &PodSpec, account: &ServiceAccount) -> bool {
    let of_pod = spec.automount_service_account_token;
    of_pod
        .or(account.automount_service_account_token)
        .unwrap_or(true)
}

/// Mounts the token's volume in every container that has nothing at its path. A volume of the Pod with the name of such
/// a volume is taken for it, so that a Pod that was read from the API can be created again.
fn mount_token(spec: &mut PodSpec, suffix: &str) {
    let mut names = spec.volumes.iter().map(|volume| &volume.name);
    let given = names.find(|name| name.starts_with(VOLUME_PREFIX)).cloned();
    let is_given = given.is_some();
    let name = given.unwrap_or_else(|| format!("{VOLUME_PREFIX}{suffix}"));
    let containers = spec.init_containers.iter_mut().chain(&mut spec.containers);
    let without = containers.filter(|container| !has_mount(container));
    let mut is_needed = false;
    for container in without {
        container.volume_mounts.push(VolumeMount {
            name: name.clone(),
            read_only: true,
            mount_path: MOUNT_PATH.into(),
            ..VolumeMount::default()
        });
        is_needed = true;
    }
    if is_needed && !is_given {
        spec.volumes.push(volume(name));
    }
}

fn has_mount(container: &Container) -> bool {
    let mut mounts = container.volume_mounts.iter();
    mounts.any(|mount| mount.mount_path == MOUNT_PATH)
}

/// Returns the volume of the files `token`, `ca.crt` and `namespace`.
fn volume(name: String) -> Volume {
    let token = ServiceAccountTokenProjection {
        path: "token".into(),
        expiration_seconds: Some(TOKEN_SECONDS),
        ..Default::default()
    };
    let ca = ConfigMapProjection {
        local_object_reference: LocalObjectReference {
            name: ROOT_CA.into(),
        },
        items: vec![KeyToPath {
            key: "ca.crt".into(),
            path: "ca.crt".into(),
            ..Default::default()
        }],
        ..Default::default()
    };
    let namespace = DownwardApiVolumeFile {
        path: "namespace".into(),
        field_ref: Some(ObjectFieldSelector {
            api_version: "v1".into(),
            field_path: "metadata.namespace".into(),
        }),
        ..Default::default()
    };
    let sources = vec![
        VolumeProjection {
            service_account_token: Some(token),
            ..Default::default()
        },
        VolumeProjection {
            config_map: Some(ca),
            ..Default::default()
        },
        VolumeProjection {
            downward_api: Some(DownwardApiProjection {
                items: vec![namespace],
            }),
            ..Default::default()
        },
    ];
    let projected = ProjectedVolumeSource {
        sources,
        default_mode: Some(0o644),
        ..Default::default()
    };
    Volume {
        name,
        volume_source: VolumeSource {
            projected: Some(projected),
            ..Default::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(value: serde_json::Value) -> PodSpec {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_pod_decides_before_its_account_whether_the_token_is_mounted() {
        let cases = [
            (None, None, true),
            (None, Some(false), false),
            (None, Some(true), true),
            (Some(true), Some(false), true),
            (Some(false), Some(true), false),
            (Some(false), None, false),
        ];
        for (of_pod, of_account, expected) in cases {
            let spec = PodSpec {
                automount_service_account_token: of_pod,
                ..Default::default()
            };
            let account = ServiceAccount {
                automount_service_account_token: of_account,
                ..Default::default()
            };
            let case = (of_pod, of_account);
            assert_eq!(mounts_token(&spec, &account), expected, "{case:?}");
        }
    }

    #[test]
    fn every_container_gets_a_mount_of_one_volume() {
        let mut pod = spec(json!({
            "initContainers": [{"name": "init"}, {"name": "sidecar", "restartPolicy": "Always"}],
            "containers": [{"name": "web", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            "volumes": [{"name": "data", "emptyDir": {}}],
        }));
        mount_token(&mut pod, "abcde");
        let mount =
            json!({"name": "kube-api-access-abcde", "readOnly": true, "mountPath": MOUNT_PATH});
        let volume = json!({
            "name": "kube-api-access-abcde",
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {"downwardAPI": {"items": [{
                        "path": "namespace",
                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                    }]}},
                ],
                "defaultMode": 420,
            },
        });
        let pod = serde_json::to_value(&pod).unwrap();
        assert_eq!(pod["initContainers"][0]["volumeMounts"], json!([mount]));
        assert_eq!(pod["initContainers"][1]["volumeMounts"], json!([mount]));
        assert_eq!(pod["containers"][0]["volumeMounts"][1], mount);
        assert_eq!(pod["volumes"][1], volume);
    }

    #[test]
    fn a_mount_at_the_path_is_kept_and_a_volume_of_such_a_name_is_used() {
        let own = json!({"name": "own", "mountPath": MOUNT_PATH});
        let mut mounted = spec(json!({"containers": [{"name": "web", "volumeMounts": [own]}]}));
        let before = mounted.clone();
        mount_token(&mut mounted, "abcde");
        assert_eq!(mounted, before);

        let volume = json!({"name": "kube-api-access-given", "emptyDir": {}});
        let mut given = spec(json!({"containers": [{"name": "web"}], "volumes": [volume]}));
        mount_token(&mut given, "abcde");
        assert_eq!(given.volumes.len(), 1);
        let mount = &given.containers[0].volume_mounts[0];
        assert_eq!(mount.name, "kube-api-access-given");

        let mut again = given.clone();
        mount_token(&mut again, "other");
        assert_eq!(again, given);
    }
}
