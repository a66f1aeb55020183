//! The Secrets that a PersistentVolume names (upstream: `VisitPVSecretNames`).

use setpoint_proto::core::{PersistentVolume, SecretReference};

/// Returns the namespaces and names of the Secrets by which a node mounts a volume. Those by which controllers attach
/// and resize it are left out.
pub fn of_nodes(volume: &PersistentVolume) -> impl Iterator<Item = (&str, &str)> {
    let all = of_file_share(volume)
        .into_iter()
        .chain(references(volume))
        .chain(of_storageos(volume));
    all.filter(|(_, name)| !name.is_empty())
}

/// Returns the references whose namespace is that of the claim if they name none.
fn references(volume: &PersistentVolume) -> impl Iterator<Item = (&str, &str)> {
    let source = &volume.spec.persistent_volume_source;
    let of_claim = [
        source
            .cephfs
            .as_ref()
            .and_then(|source| source.secret_ref.as_ref()),
        source
            .flex_volume
            .as_ref()
            .and_then(|source| source.secret_ref.as_ref()),
        source
            .rbd
            .as_ref()
            .and_then(|source| source.secret_ref.as_ref()),
        source
            .scale_io
            .as_ref()
            .and_then(|source| source.secret_ref.as_ref()),
        source
            .iscsi
            .as_ref()
            .and_then(|source| source.secret_ref.as_ref()),
    ];
    let csi = source.csi.as_ref();
    let elsewhere = [
        source
            .cinder
            .as_ref()
            .and_then(|source| source.secret_ref.as_ref()),
        csi.and_then(|source| source.node_publish_secret_ref.as_ref()),
        csi.and_then(|source| source.node_stage_secret_ref.as_ref()),
        csi.and_then(|source| source.node_expand_secret_ref.as_ref()),
    ];
    let of_claim = of_claim.into_iter().flatten();
    let of_claim = of_claim.map(|reference: &SecretReference| {
        (
            given_or_of_claim(&reference.namespace, volume),
            reference.name.as_str(),
        )
    });
    let elsewhere = elsewhere.into_iter().flatten();
    of_claim.chain(elsewhere.map(|one| (one.namespace.as_str(), one.name.as_str())))
}

fn of_file_share(volume: &PersistentVolume) -> Option<(&str, &str)> {
    let source = volume.spec.persistent_volume_source.azure_file.as_ref()?;
    let namespace = source.secret_namespace.as_deref().unwrap_or_default();
    Some((given_or_of_claim(namespace, volume), &source.secret_name))
}

fn of_storageos(volume: &PersistentVolume) -> Option<(&str, &str)> {
    let source = volume.spec.persistent_volume_source.storageos.as_ref()?;
    let reference = source.secret_ref.as_ref()?;
    Some((&reference.namespace, &reference.name))
}

fn given_or_of_claim<'v>(namespace: &'v str, volume: &'v PersistentVolume) -> &'v str {
    let claim = volume.spec.claim_ref.as_ref();
    match namespace {
        "" => claim.map_or("", |claim| claim.namespace.as_str()),
        given => given,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found(source: Value) -> Vec<String> {
        let mut spec = json!({ "claimRef": { "namespace": "shop", "name": "data" } });
        spec.as_object_mut()
            .unwrap()
            .extend(source.as_object().unwrap().clone());
        let volume: PersistentVolume = serde_json::from_value(json!({ "spec": spec })).unwrap();
        of_nodes(&volume)
            .map(|(namespace, name)| format!("{namespace}/{name}"))
            .collect()
    }

    #[test]
    fn a_secret_without_a_namespace_is_in_that_of_the_claim() {
        let reference = |namespace: &str| json!({ "name": "key", "namespace": namespace });
        for kind in ["cephfs", "flexVolume", "rbd", "scaleIO", "iscsi"] {
            assert_eq!(
                found(json!({ kind: { "secretRef": { "name": "key" } } })),
                ["shop/key"]
            );
            assert_eq!(
                found(json!({ kind: { "secretRef": reference("other") } })),
                ["other/key"]
            );
        }
        assert_eq!(
            found(json!({ "azureFile": { "secretName": "key" } })),
            ["shop/key"]
        );
        let elsewhere = json!({ "azureFile": { "secretName": "key", "secretNamespace": "other" } });
        assert_eq!(found(elsewhere), ["other/key"]);
        for kind in ["cinder", "storageos"] {
            assert_eq!(
                found(json!({ kind: { "secretRef": reference("other") } })),
                ["other/key"]
            );
        }
    }

    #[test]
    fn the_secrets_of_controllers_are_not_those_of_nodes() {
        let reference = |name: &str| json!({ "name": name, "namespace": "csi" });
        let source = json!({ "csi": {
            "controllerPublishSecretRef": reference("attach"),
            "controllerExpandSecretRef": reference("resize"),
            "nodePublishSecretRef": reference("publish"),
            "nodeStageSecretRef": reference("stage"),
            "nodeExpandSecretRef": reference("expand"),
        } });
        assert_eq!(found(source), ["csi/publish", "csi/stage", "csi/expand"]);
        assert_eq!(found(json!({ "hostPath": { "path": "/" } })), [""; 0]);
    }
}
