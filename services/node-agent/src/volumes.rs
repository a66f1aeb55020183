//! The volumes of a Pod, with everything in them that the gateway has to say.

use std::collections::BTreeMap;

use setpoint_controller::Client;
use setpoint_model::Key;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::{
    ConfigMap, Container, DownwardApiVolumeFile, EmptyDirVolumeSource, KeyToPath, Pod,
    ProjectedVolumeSource, Secret, Volume as Declared, VolumeMount, VolumeProjection,
};

use crate::downward::{self, Place};
use crate::environment::{Error, found};
use crate::expand::expand_all;
use crate::runtime::{File, Mount, Volume, VolumeKind};
use crate::world::Trouble;

/// Who may read a file, unless somebody says otherwise.
const MODE: i32 = 0o644;

/// What a ConfigMap or Secret has, by key.
type Data = BTreeMap<String, Vec<u8>>;

/// Everything that the containers of a Pod may mount.
///
/// # Errors
/// When a volume names something that is not there, or that no node of this kind can give.
pub async fn volumes(gateway: &Client, pod: &Pod, place: &Place) -> Result<Vec<Volume>, Error> {
    let mut volumes = Vec::new();
    for declared in &pod.spec.volumes {
        let name = declared.name.clone();
        let (kind, group) = (kind(gateway, pod, place, declared).await?, group(pod));
        volumes.push(Volume { name, kind, group });
    }
    Ok(volumes)
}

/// The group that owns the files of a Pod's volumes.
fn group(pod: &Pod) -> Option<u32> {
    let context = pod.spec.security_context.as_ref()?;
    u32::try_from(context.fs_group?).ok()
}

/// Where a container sees them, with `env` as its environment.
///
/// A part of a volume cannot be mounted by every engine: its files are copied as they are now, which for files that
/// only the gateway writes is what Kubernetes does, too.
///
/// # Errors
/// When it wants a part of a volume that containers write to, or a place that the engine keeps for itself.
pub async fn mounts(
    gateway: &Client,
    pod: &Pod,
    place: &Place,
    container: &Container,
    env: &[(String, String)],
) -> Result<Vec<Mount>, Error> {
    let mut mounts = Vec::new();
    for wanted in &container.volume_mounts {
        let declared = pod
            .spec
            .volumes
            .iter()
            .find(|volume| volume.name == wanted.name);
        let Some(declared) = declared else { continue };
        let files = is_files(declared);
        let mut copies = Vec::new();
        let sub_path = sub_path_of(wanted, env)?;
        if !sub_path.is_empty() {
            if !files {
                let message = format!(
                    "subPath of volume {:?} is not supported on this node",
                    wanted.name
                );
                return Err(refused(message));
            }
            let kind = kind(gateway, pod, place, declared).await?;
            copies = part(&kind, &sub_path, &wanted.mount_path);
        }
        let paths = copies.iter().map(|file| file.path.as_str());
        if let Some(path) = paths.chain([wanted.mount_path.as_str()]).find(is_engines) {
            return Err(refused(format!(
                "volume {:?} cannot be mounted at {path:?} on this node: the engine mounts a file of its own there",
                wanted.name
            )));
        }
        mounts.push(Mount {
            volume: wanted.name.clone(),
            path: wanted.mount_path.clone(),
            read_only: wanted.read_only || files,
            copies,
            group: group(pod),
        });
    }
    Ok(mounts)
}

fn is_engines(path: &&str) -> bool {
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    matches!(
        parts.as_slice(),
        ["etc", "resolv.conf" | "hosts" | "hostname"]
    )
}

/// The part of a volume that is mounted, `$(NAME)`s of `subPathExpr` filled in; empty for all of it.
fn sub_path_of(wanted: &VolumeMount, env: &[(String, String)]) -> Result<String, Error> {
    let path = match wanted.sub_path_expr.as_str() {
        "" => wanted.sub_path.clone(),
        expression => {
            let expanded = expand_all(expression, &env.iter().cloned().collect());
            expanded.map_err(|name| refused(format!("missing value for {name:?}")))?
        }
    };
    if path.starts_with('/') {
        let message = format!("error SubPath `{path}` must not be an absolute path");
        return Err(refused(message));
    }
    if path.split('/').any(|part| part == "..") {
        let message = format!("unable to provision SubPath `{path}`: must not contain '..'");
        return Err(refused(message));
    }
    Ok(path)
}

fn is_files(declared: &Declared) -> bool {
    let source = &declared.volume_source;
    source.config_map.is_some()
        || source.secret.is_some()
        || source.projected.is_some()
        || source.downward_api.is_some()
}

/// The files below `sub_path`, as they are called where they are mounted.
fn part(kind: &VolumeKind, sub_path: &str, mount_path: &str) -> Vec<File> {
    let VolumeKind::Files { files, .. } = kind else {
        return Vec::new();
    };
    let below = files.iter().filter_map(|file| {
        let rest = file.path.strip_prefix(sub_path.trim_end_matches('/'))?;
        let path = match rest.is_empty() || rest.starts_with('/') {
            true => format!("{mount_path}{rest}"),
            false => return None,
        };
        Some(File {
            path,
            ..file.clone()
        })
    });
    below.collect()
}

async fn kind(
    gateway: &Client,
    pod: &Pod,
    place: &Place,
    declared: &Declared,
) -> Result<VolumeKind, Error> {
    let namespace = &pod.metadata.namespace;
    let source = &declared.volume_source;
    if let Some(empty) = &source.empty_dir {
        return Ok(in_memory(empty));
    }
    let projected = if let Some(map) = &source.config_map {
        let (name, optional) = (
            &map.local_object_reference.name,
            map.optional.unwrap_or_default(),
        );
        let data = config_map(gateway, namespace, name, optional).await?;
        (
            files(data, &map.items, map.default_mode.unwrap_or(MODE), optional)?,
            false,
        )
    } else if let Some(secret) = &source.secret {
        let optional = secret.optional.unwrap_or_default();
        let data = secret_data(gateway, namespace, &secret.secret_name, optional).await?;
        (
            files(
                data,
                &secret.items,
                secret.default_mode.unwrap_or(MODE),
                optional,
            )?,
            true,
        )
    } else if let Some(projected) = &source.projected {
        (all(gateway, pod, place, projected).await?, true)
    } else if let Some(downward) = &source.downward_api {
        let mode = downward.default_mode.unwrap_or(MODE);
        (told(pod, place, &downward.items, mode)?, true)
    } else {
        let message = format!(
            "volume {:?} is of a kind that this node does not have",
            declared.name
        );
        return Err(refused(message));
    };
    let (files, secret) = projected;
    Ok(VolumeKind::Files { files, secret })
}

fn in_memory(empty: &EmptyDirVolumeSource) -> VolumeKind {
    let limit = empty.size_limit.as_ref();
    let limit = limit.and_then(|limit| Amount::parse(&limit.string).ok());
    match empty.medium.as_str() {
        "Memory" => VolumeKind::Memory(limit.map_or(0, Amount::value)),
        _ => VolumeKind::Empty,
    }
}

async fn all(
    gateway: &Client,
    pod: &Pod,
    place: &Place,
    projected: &ProjectedVolumeSource,
) -> Result<Vec<File>, Error> {
    let namespace = &pod.metadata.namespace;
    let mode = projected.default_mode.unwrap_or(MODE);
    let mut all = Vec::new();
    for source in &projected.sources {
        if let Some(map) = &source.config_map {
            let (name, optional) = (
                &map.local_object_reference.name,
                map.optional.unwrap_or_default(),
            );
            let data = config_map(gateway, namespace, name, optional).await?;
            all.extend(files(data, &map.items, mode, optional)?);
        } else if let Some(secret) = &source.secret {
            let (name, optional) = (
                &secret.local_object_reference.name,
                secret.optional.unwrap_or_default(),
            );
            let data = secret_data(gateway, namespace, name, optional).await?;
            all.extend(files(data, &secret.items, mode, optional)?);
        } else if let Some(downward) = &source.downward_api {
            all.extend(told(pod, place, &downward.items, mode)?);
        } else {
            let message = format!(
                "projected source {} is not supported on this node",
                source_name(source)
            );
            return Err(refused(message));
        }
    }
    Ok(all)
}

/// The name of a source that no node can give.
fn source_name(source: &VolumeProjection) -> &'static str {
    let named = [
        (
            source.service_account_token.is_some(),
            "serviceAccountToken",
        ),
        (source.cluster_trust_bundle.is_some(), "clusterTrustBundle"),
        (source.pod_certificate.is_some(), "podCertificate"),
    ];
    let named = named.into_iter().find(|(is_set, _)| *is_set);
    named.map_or("of an unknown kind", |(_, name)| name)
}

/// Files of what a Pod is told about itself.
fn told(
    pod: &Pod,
    place: &Place,
    items: &[DownwardApiVolumeFile],
    mode: i32,
) -> Result<Vec<File>, Error> {
    let file = |item: &DownwardApiVolumeFile| {
        let content = content(pod, place, item).map_err(refused)?;
        let mode = item.mode.unwrap_or(mode);
        Ok(File {
            path: item.path.clone(),
            content: content.into_bytes(),
            mode: u32::try_from(mode).unwrap_or_default(),
        })
    };
    items.iter().map(file).collect()
}

fn content(pod: &Pod, place: &Place, item: &DownwardApiVolumeFile) -> Result<String, String> {
    if let Some(field) = &item.field_ref {
        let path = &field.field_path;
        let value = downward::field(pod, place, path);
        return value.ok_or_else(|| format!("unsupported fieldPath: {path}"));
    }
    let Some(selector) = &item.resource_field_ref else {
        return Ok(String::new());
    };
    let name = &selector.container_name;
    let container = downward::container(&pod.spec, name);
    let container = container.ok_or_else(|| format!("container {name} not found"))?;
    let value = downward::resource(container, selector, place);
    value.ok_or_else(|| format!("unsupported container resource : {}", selector.resource))
}

async fn config_map(
    gateway: &Client,
    namespace: &str,
    name: &str,
    optional: bool,
) -> Result<Data, Error> {
    let map = gateway.get::<ConfigMap>(&Key::new(namespace, name)).await;
    let map = found(map, optional, "configmap", name)?.unwrap_or_default();
    let text = map
        .data
        .into_iter()
        .map(|(key, text)| (key, text.into_bytes()));
    let binary = map
        .binary_data
        .into_iter()
        .map(|(key, bytes)| (key, bytes.to_vec()));
    Ok(text.chain(binary).collect())
}

async fn secret_data(
    gateway: &Client,
    namespace: &str,
    name: &str,
    optional: bool,
) -> Result<Data, Error> {
    let secret = gateway.get::<Secret>(&Key::new(namespace, name)).await;
    let secret = found(secret, optional, "secret", name)?.unwrap_or_default();
    Ok(secret
        .data
        .into_iter()
        .map(|(key, bytes)| (key, bytes.to_vec()))
        .collect())
}

/// One file a key, or those that are listed, under the names that are listed.
fn files(
    mut data: Data,
    items: &[KeyToPath],
    mode: i32,
    optional: bool,
) -> Result<Vec<File>, Error> {
    let file = |path: &str, content, mode: i32| File {
        path: path.to_owned(),
        content,
        mode: u32::try_from(mode).unwrap_or_default(),
    };
    if items.is_empty() {
        return Ok(data
            .into_iter()
            .map(|(key, content)| file(&key, content, mode))
            .collect());
    }
    let mut files = Vec::new();
    for item in items {
        match data.remove(&item.key) {
            Some(content) => files.push(file(&item.path, content, item.mode.unwrap_or(mode))),
            None if optional => {}
            None => {
                return Err(refused(format!(
                    "references non-existent config key: {}",
                    item.key
                )));
            }
        }
    }
    Ok(files)
}

fn refused(message: String) -> Error {
    Error::Config(Trouble::config(message))
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{ObjectFieldSelector, ResourceFieldSelector};

    use super::*;

    fn data() -> Data {
        [("a", "1"), ("b", "2")]
            .map(|(key, text)| (key.to_owned(), text.into()))
            .into()
    }

    fn item(key: &str, path: &str) -> KeyToPath {
        KeyToPath {
            key: key.into(),
            path: path.into(),
            mode: Some(0o400),
            ..KeyToPath::default()
        }
    }

    fn listed(files: &[File]) -> Vec<(&str, u32)> {
        files
            .iter()
            .map(|file| (file.path.as_str(), file.mode))
            .collect()
    }

    #[test]
    fn every_key_is_a_file_unless_some_are_listed() {
        let every = files(data(), &[], MODE, false).unwrap();
        assert_eq!(listed(&every), [("a", 0o644), ("b", 0o644)]);
        let some = files(data(), &[item("b", "conf/b.txt")], MODE, false).unwrap();
        assert_eq!(listed(&some), [("conf/b.txt", 0o400)]);
        assert!(files(data(), &[item("c", "c")], MODE, false).is_err());
        assert!(
            files(data(), &[item("c", "c")], MODE, true)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_part_of_a_volume_is_one_file_or_the_files_of_one_folder() {
        let items = [item("a", "conf/a"), item("b", "confuse")];
        let files = files(data(), &items, MODE, false).unwrap();
        let kind = VolumeKind::Files {
            files,
            secret: false,
        };
        assert_eq!(
            listed(&part(&kind, "conf", "/etc/x")),
            [("/etc/x/a", 0o400)]
        );
        assert_eq!(
            listed(&part(&kind, "confuse", "/etc/b")),
            [("/etc/b", 0o400)]
        );
    }

    #[test]
    fn the_downward_api_is_a_file_for_each_item() {
        let mut pod = Pod::default();
        pod.metadata.labels.insert("app".into(), "shop".into());
        pod.spec.containers.push(Container {
            name: "main".into(),
            ..Container::default()
        });
        let field = |path: &str| DownwardApiVolumeFile {
            path: "here".into(),
            field_ref: Some(ObjectFieldSelector {
                field_path: path.into(),
                ..ObjectFieldSelector::default()
            }),
            ..DownwardApiVolumeFile::default()
        };
        let resource = |container: &str| DownwardApiVolumeFile {
            resource_field_ref: Some(ResourceFieldSelector {
                container_name: container.into(),
                resource: "requests.cpu".into(),
                ..ResourceFieldSelector::default()
            }),
            mode: Some(0o400),
            ..DownwardApiVolumeFile::default()
        };
        let told =
            |item| told(&pod, &Place::default(), &[item], MODE).map(|mut files| files.remove(0));
        let labels = told(field("metadata.labels")).unwrap();
        assert_eq!((labels.path.as_str(), labels.mode), ("here", 0o644));
        assert_eq!(labels.content, b"app=\"shop\"");
        let cpu = told(resource("main")).unwrap();
        assert_eq!((cpu.content.as_slice(), cpu.mode), (&b"0"[..], 0o400));
        for unknown in [field("spec.containers"), resource("other")] {
            assert!(told(unknown).is_err());
        }
    }

    /// Checks F22: a source that is added to the API is not dropped silently.
    #[tokio::test]
    async fn every_source_of_a_projected_volume_gives_files_or_an_error() {
        let settings = setpoint_controller::client::Settings {
            address: "http://127.0.0.1:1".into(),
            ..Default::default()
        };
        let gateway = Client::connect(&settings, "test").unwrap();
        let pool = prost_reflect::DescriptorPool::decode(setpoint_proto::DESCRIPTORS).unwrap();
        let message = pool
            .get_message_by_name("k8s.core.v1.VolumeProjection")
            .unwrap();
        let known = ["configMap", "secret", "downwardAPI"];
        for field in message
            .fields()
            .filter(|field| !known.contains(&field.json_name()))
        {
            let mut source = prost_reflect::DynamicMessage::new(message.clone());
            let kind = field.kind();
            let empty = prost_reflect::DynamicMessage::new(kind.as_message().unwrap().clone());
            source.set_field(&field, prost_reflect::Value::Message(empty));
            let projected = ProjectedVolumeSource {
                sources: vec![source.transcode_to().unwrap()],
                ..ProjectedVolumeSource::default()
            };
            let all = all(&gateway, &Pod::default(), &Place::default(), &projected).await;
            let refused = all.unwrap_err().to_string();
            assert!(refused.contains(field.json_name()), "{refused}");
        }
    }

    /// Checks K14.
    #[test]
    fn an_expression_is_filled_in_and_never_leaves_its_volume() {
        let env = [
            ("NAME".to_owned(), "web".to_owned()),
            ("UP".to_owned(), "..".to_owned()),
        ];
        let path = |sub_path: &str, expression: &str| {
            let wanted = VolumeMount {
                sub_path: sub_path.into(),
                sub_path_expr: expression.into(),
                ..VolumeMount::default()
            };
            sub_path_of(&wanted, &env).map_err(|error| error.to_string())
        };
        assert_eq!(path("plain", ""), Ok("plain".into()));
        assert_eq!(path("", "logs/$(NAME)"), Ok("logs/web".into()));
        assert_eq!(path("", "$(NO)"), Err("missing value for \"NO\"".into()));
        assert!(path("", "a/$(UP)").is_err() && path("", "/$(NAME)").is_err());
    }

    /// Checks K17.
    #[test]
    fn files_that_the_engine_mounts_itself_are_known() {
        for path in ["/etc/resolv.conf", "/etc//hosts", "etc/hostname/"] {
            assert!(is_engines(&path), "{path}");
        }
        assert!(!is_engines(&"/etc/resolv.conf.d") && !is_engines(&"/etc"));
    }
}
