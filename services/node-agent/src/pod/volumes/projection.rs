//! Files of volumes that are projected from ConfigMaps, Secrets and the downward API.

use std::collections::BTreeMap;

use setpoint_model::Key;
use setpoint_proto::core::{
    ConfigMap, DownwardApiVolumeFile, KeyToPath, Pod, ProjectedVolumeSource, Secret,
    ServiceAccountTokenProjection, VolumeProjection,
};
use setpoint_runtime::File;

use super::{Sources, config_error, group, user};
use crate::pod::downward::{self, Placement};
use crate::pod::environment::{Error, optional_object};

/// The API's default for `defaultMode`.
pub const DEFAULT_MODE: i32 = 0o644;

/// The data of a ConfigMap or Secret, by key.
type Data = BTreeMap<String, Vec<u8>>;

impl Sources<'_> {
    /// Returns the files of a projected volume.
    pub(super) async fn projected_files(
        &self,
        projected: &ProjectedVolumeSource,
    ) -> Result<Vec<File>, Error> {
        let mode = projected.default_mode.unwrap_or(DEFAULT_MODE);
        let mut files = Vec::new();
        for source in &projected.sources {
            files.extend(self.source_files(source, mode).await?);
        }
        Ok(files)
    }

    async fn source_files(&self, source: &VolumeProjection, mode: i32) -> Result<Vec<File>, Error> {
        if let Some(map) = &source.config_map {
            let name = &map.local_object_reference.name;
            let files = self.config_map_files(name, map.optional, &map.items, mode);
            files.await
        } else if let Some(secret) = &source.secret {
            let name = &secret.local_object_reference.name;
            let files = self.secret_files(name, secret.optional, &secret.items, mode);
            files.await
        } else if let Some(downward) = &source.downward_api {
            self.downward_files(&downward.items, mode)
        } else if let Some(token) = &source.service_account_token {
            Ok(vec![self.token_file(token, mode).await?])
        } else {
            let message = format!(
                "projected source {} is not supported on this node",
                source_name(source)
            );
            Err(config_error(message))
        }
    }

    async fn token_file(
        &self,
        source: &ServiceAccountTokenProjection,
        mode: i32,
    ) -> Result<File, Error> {
        let token = self.tokens.token(&self.gateway, self.pod, source).await?;
        let user = user(self.pod);
        // The user of its containers and the group of the Pod's volumes may read it; others may not.
        let mode = match user.is_some() || group(self.pod).is_some() {
            true => 0o600,
            false => mode,
        };
        let file = file(&source.path, token.into_bytes(), mode);
        Ok(File { user, ..file })
    }

    /// Returns the files of a ConfigMap; none if it is optional and does not exist.
    pub(super) async fn config_map_files(
        &self,
        name: &str,
        optional: Option<bool>,
        items: &[KeyToPath],
        mode: i32,
    ) -> Result<Vec<File>, Error> {
        let (key, optional) = (
            Key::new(&self.pod.metadata.namespace, name),
            optional == Some(true),
        );
        let map = self.gateway.get::<ConfigMap>(&key).await;
        let map = optional_object(map, optional, "configmap", name)?.unwrap_or_default();
        let text = map
            .data
            .into_iter()
            .map(|(key, text)| (key, text.into_bytes()));
        let binary = map.binary_data.into_iter();
        let binary = binary.map(|(key, bytes)| (key, bytes.to_vec()));
        files(text.chain(binary).collect(), items, mode, optional)
    }

    /// Returns the files of a Secret; none if it is optional and does not exist.
    pub(super) async fn secret_files(
        &self,
        name: &str,
        optional: Option<bool>,
        items: &[KeyToPath],
        mode: i32,
    ) -> Result<Vec<File>, Error> {
        let (key, optional) = (
            Key::new(&self.pod.metadata.namespace, name),
            optional == Some(true),
        );
        let secret = self.gateway.get::<Secret>(&key).await;
        let secret = optional_object(secret, optional, "secret", name)?.unwrap_or_default();
        let data = secret.data.into_iter();
        let data = data.map(|(key, bytes)| (key, bytes.to_vec()));
        files(data.collect(), items, mode, optional)
    }

    /// Returns the files of a downward API volume.
    pub(super) fn downward_files(
        &self,
        items: &[DownwardApiVolumeFile],
        mode: i32,
    ) -> Result<Vec<File>, Error> {
        let files = items.iter().map(|item| {
            let content = content(self.pod, self.placement, item).map_err(config_error)?;
            Ok(file(
                &item.path,
                content.into_bytes(),
                item.mode.unwrap_or(mode),
            ))
        });
        files.collect()
    }
}

fn file(path: &str, content: Vec<u8>, mode: i32) -> File {
    File {
        path: path.to_owned(),
        content,
        mode: u32::try_from(mode).unwrap_or_default(),
        user: None,
    }
}

/// Returns the field name of an unsupported source of a projected volume.
fn source_name(source: &VolumeProjection) -> &'static str {
    let named = [
        (source.cluster_trust_bundle.is_some(), "clusterTrustBundle"),
        (source.pod_certificate.is_some(), "podCertificate"),
    ];
    let named = named.into_iter().find(|(is_set, _)| *is_set);
    named.map_or("of unknown type", |(_, name)| name)
}

/// Returns the content of a downward API file, or why it is not available.
fn content(
    pod: &Pod,
    placement: &Placement,
    item: &DownwardApiVolumeFile,
) -> Result<String, String> {
    if let Some(field) = &item.field_ref {
        let path = &field.field_path;
        let value = downward::field(pod, placement, path);
        return value.ok_or_else(|| format!("unsupported fieldPath: {path}"));
    }
    let Some(selector) = &item.resource_field_ref else {
        return Ok(String::new());
    };
    let name = &selector.container_name;
    let container = downward::container(&pod.spec, name);
    let container = container.ok_or_else(|| format!("container {name} not found"))?;
    let value = downward::resource(&pod.spec, container, selector, placement);
    value.ok_or_else(|| format!("unsupported container resource : {}", selector.resource))
}

/// Returns one file for each key, or for each of `items` if there are any.
fn files(
    mut data: Data,
    items: &[KeyToPath],
    mode: i32,
    optional: bool,
) -> Result<Vec<File>, Error> {
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
                return Err(config_error(format!(
                    "references non-existent config key: {}",
                    item.key
                )));
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use setpoint_controller::Client;
    use setpoint_proto::core::{Container, ObjectFieldSelector, ResourceFieldSelector};

    use super::*;
    use crate::pod::volumes::Tokens;

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
    fn every_key_is_a_file_unless_items_are_listed() {
        let every = files(data(), &[], DEFAULT_MODE, false).unwrap();
        assert_eq!(listed(&every), [("a", 0o644), ("b", 0o644)]);
        let some = files(data(), &[item("b", "conf/b.txt")], DEFAULT_MODE, false).unwrap();
        assert_eq!(listed(&some), [("conf/b.txt", 0o400)]);
        assert!(files(data(), &[item("c", "c")], DEFAULT_MODE, false).is_err());
        assert!(
            files(data(), &[item("c", "c")], DEFAULT_MODE, true)
                .unwrap()
                .is_empty()
        );
    }

    fn unreachable_gateway() -> Client {
        let settings = setpoint_controller::client::Settings {
            address: "http://127.0.0.1:1".into(),
            ..Default::default()
        };
        Client::connect(&settings, "test").unwrap()
    }

    #[tokio::test]
    async fn a_downward_volume_has_a_file_for_each_item() {
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
        let (tokens, placement) = (Tokens::default(), Placement::default());
        let sources = Sources {
            gateway: unreachable_gateway(),
            tokens: &tokens,
            host_paths: &[],
            local_path: None,
            has_engine: true,
            pod: &pod,
            placement: &placement,
        };
        let downward_files = |item| {
            let files = sources.downward_files(&[item], DEFAULT_MODE);
            files.map(|mut files| files.remove(0))
        };
        let labels = downward_files(field("metadata.labels")).unwrap();
        assert_eq!((labels.path.as_str(), labels.mode), ("here", 0o644));
        assert_eq!(labels.content, b"app=\"shop\"");
        let cpu = downward_files(resource("main")).unwrap();
        assert_eq!((cpu.content.as_slice(), cpu.mode), (&b"0"[..], 0o400));
        for unknown in [field("spec.containers"), resource("other")] {
            assert!(downward_files(unknown).is_err());
        }
    }

    /// Checks F22: a source that is added to the API is not ignored silently.
    #[tokio::test]
    async fn every_source_of_a_projected_volume_gives_files_or_an_error() {
        let (tokens, pod, placement) = Default::default();
        let sources = Sources {
            gateway: unreachable_gateway(),
            tokens: &tokens,
            host_paths: &[],
            local_path: None,
            has_engine: true,
            pod: &pod,
            placement: &placement,
        };
        let pool = prost_reflect::DescriptorPool::decode(setpoint_proto::DESCRIPTORS).unwrap();
        let message = pool
            .get_message_by_name("k8s.core.v1.VolumeProjection")
            .unwrap();
        let known = ["configMap", "secret", "downwardAPI", "serviceAccountToken"];
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
            let files = sources.projected_files(&projected).await;
            let config_error = files.unwrap_err().to_string();
            assert!(config_error.contains(field.json_name()), "{config_error}");
        }
    }
}
