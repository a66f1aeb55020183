//! The content that a token hands over to a machine that runs a part of the control plane (kubeadm: `upload-certs`):
//! the CAs with their keys, and the addresses of the cluster.
//!
//! It is in the Secret `kube-system/setpoint-join-<id of the token>`, encrypted by the [`CertificateKey`]. The user of
//! the token may read and delete it, and delete the token; a Role and a RoleBinding with the name of the Secret say so.
//! All have the Secret of the token as their owner, and go with it.

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use setpoint_controller::Client;
use setpoint_controller::client::Preconditions;
use setpoint_model::Key;
use setpoint_model::bootstrap_token::{NAMESPACE, USER_PREFIX, secret_name};
use setpoint_proto::core::Secret;
use setpoint_proto::rbac::{Role, RoleBinding};
use setpoint_proto::{ApiError, Resource};

use super::{CertificateKey, Token};
use crate::launcher::{ControlPlane, Joining, Keys};

/// The key of the data of the Secret.
pub const CONTENT: &str = "content";
const RBAC: &str = "rbac.authorization.k8s.io";

/// The content that is handed over.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    /// The CAs with their keys.
    pub keys: Keys,
    /// The control plane, as of the machine that hands it over.
    pub plane: ControlPlane,
}

impl Handover {
    /// Returns the name of the Secret of the token with this id.
    pub fn name(id: &str) -> String {
        format!("setpoint-join-{id}")
    }

    /// Encrypts it for a process of this kind that joins by the token.
    ///
    /// # Errors
    /// If there is no randomness.
    pub fn seal(
        &self,
        key: &CertificateKey,
        token: &Token,
        kind: Joining,
    ) -> anyhow::Result<Vec<u8>> {
        key.seal(&purpose(token, kind), &serde_json::to_vec(self)?)
    }

    /// Decrypts what [`Self::seal`] has encrypted.
    ///
    /// # Errors
    /// If it was encrypted by another key, or for another token or kind.
    pub fn open(
        sealed: &[u8],
        key: &CertificateKey,
        token: &Token,
        kind: Joining,
    ) -> anyhow::Result<Self> {
        let content = key.open(&purpose(token, kind), sealed);
        let content = content.context("--certificate-key does not decrypt what was handed over")?;
        serde_json::from_slice(&content)
            .context("what was handed over is of another version of setpoint")
    }
}

fn purpose(token: &Token, kind: Joining) -> String {
    format!("setpoint join {} {}", kind.name(), token.id())
}

/// Creates the Secret of a token, and what it hands over. After a failure, none is left.
///
/// # Errors
/// Those of the gateway.
pub async fn create(
    gateway: &Client,
    token: &Token,
    secret: &Secret,
    sealed: &[u8],
) -> anyhow::Result<()> {
    let created = gateway.create(secret).await;
    let created = created.context("the token cannot be made")?;
    let owner = created.object().context("the token cannot be made")?;
    let objects = objects(token, &owner.metadata.uid, sealed)?;
    if let Err(error) = create_each(gateway, objects).await {
        let key = Key::new(NAMESPACE, &secret.metadata.name);
        // It expires anyhow.
        let _ = gateway
            .delete::<Secret>(&key, Preconditions::default(), None)
            .await;
        return Err(error).context("what the token hands over cannot be written");
    }
    Ok(())
}

async fn create_each(gateway: &Client, [secret, role, binding]: [Value; 3]) -> anyhow::Result<()> {
    create_one::<Secret>(gateway, secret).await?;
    create_one::<Role>(gateway, role).await?;
    create_one::<RoleBinding>(gateway, binding).await
}

async fn create_one<T: Resource + DeserializeOwned>(
    gateway: &Client,
    object: Value,
) -> anyhow::Result<()> {
    let object: T = serde_json::from_value(object)?;
    let created: Result<_, ApiError> = gateway.create(&object).await;
    Ok(created.map(drop)?)
}

/// Returns the Secret, and the role and its binding by which the token's user gets it.
fn objects(token: &Token, owner: &str, sealed: &[u8]) -> anyhow::Result<[Value; 3]> {
    let (name, of_token) = (Handover::name(token.id()), secret_name(token.id()));
    let content = STANDARD.encode(sealed);
    let metadata = json!({
        "namespace": NAMESPACE, "name": name,
        "ownerReferences": [{ "apiVersion": "v1", "kind": "Secret", "name": of_token, "uid": owner }],
    });
    let rule = |names: &[&str], verbs: &[&str]| json!({ "apiGroups": [""], "resources": ["secrets"], "resourceNames": names, "verbs": verbs });
    let rules = [
        rule(&[&name], &["get", "delete"]),
        rule(&[&of_token], &["delete"]),
    ];
    let user = format!("{USER_PREFIX}{}", token.id());
    let version = format!("{RBAC}/v1");
    Ok([
        json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata,
            "data": { CONTENT: content } }),
        json!({ "apiVersion": version, "kind": "Role", "metadata": metadata, "rules": rules }),
        json!({ "apiVersion": version, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": RBAC, "kind": "Role", "name": name },
            "subjects": [{ "apiGroup": RBAC, "kind": "User", "name": user }] }),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launcher::{ClusterSpec, Pki};

    fn handover() -> Handover {
        let root = tempfile::tempdir().unwrap();
        let pki = Pki::new(root.path().join("pki"));
        Handover {
            keys: pki.keys().unwrap(),
            plane: ControlPlane {
                spec: ClusterSpec::default(),
                server: "https://10.0.0.1:6443".to_owned(),
                etcd: vec!["https://10.0.0.1:2379".to_owned()],
                gateways: vec!["https://10.0.0.1:6443".to_owned()],
            },
        }
    }

    #[test]
    fn what_is_handed_over_is_for_one_token_and_one_kind() {
        let handover = handover();
        let key = CertificateKey::random().unwrap();
        let token: Token = "abcdef.0123456789abcdef".parse().unwrap();
        let sealed = handover.seal(&key, &token, Joining::Gateway).unwrap();
        let open =
            |key, token: &str, kind| Handover::open(&sealed, key, &token.parse().unwrap(), kind);
        let opened = open(&key, "abcdef.0123456789abcdef", Joining::Gateway).unwrap();
        assert!(opened == handover);
        let other = CertificateKey::random().unwrap();
        for (key, token, kind) in [
            (&other, "abcdef.0123456789abcdef", Joining::Gateway),
            (&key, "abcdee.0123456789abcdef", Joining::Gateway),
            (&key, "abcdef.0123456789abcdef", Joining::Etcd),
        ] {
            let why = open(key, token, kind).err().unwrap().to_string();
            assert!(
                why.starts_with("--certificate-key does not decrypt"),
                "{why}"
            );
        }
    }

    #[test]
    fn another_machine_gets_the_same_authorities_and_keeps_its_own() {
        let (handover, root) = (handover(), tempfile::tempdir().unwrap());
        let pki = Pki::new(root.path().join("pki"));
        pki.install(&handover.keys).unwrap();
        pki.install(&handover.keys).unwrap();
        assert!(pki.keys().unwrap() == handover.keys);
        let other = Pki::new(root.path().join("other"));
        let why = pki.install(&other.keys().unwrap()).unwrap_err();
        assert!(
            why.to_string().ends_with("is that of another cluster"),
            "{why}"
        );
    }

    #[test]
    fn the_user_of_a_token_may_read_what_it_hands_over_and_nothing_else() {
        let token: Token = "abcdef.0123456789abcdef".parse().unwrap();
        let [secret, role, binding] = objects(&token, "uid-1", b"sealed").unwrap();
        for object in [&secret, &role, &binding] {
            let metadata = &object["metadata"];
            assert_eq!(metadata["name"], "setpoint-join-abcdef");
            let owner = &metadata["ownerReferences"][0];
            assert_eq!(owner["name"], "bootstrap-token-abcdef");
            assert_eq!(owner["uid"], "uid-1");
            assert!(!object.to_string().contains("0123456789"));
        }
        let rules: Vec<_> = role["rules"].as_array().unwrap().iter().collect();
        let is = |rule: &Value, name: &str, verbs: Value| {
            rule["resourceNames"] == json!([name]) && rule["verbs"] == verbs
        };
        assert!(is(
            rules[0],
            "setpoint-join-abcdef",
            json!(["get", "delete"])
        ));
        assert!(is(rules[1], "bootstrap-token-abcdef", json!(["delete"])));
        assert_eq!(rules.len(), 2);
        assert_eq!(binding["subjects"][0]["name"], "system:bootstrap:abcdef");
        serde_json::from_value::<Role>(role).unwrap();
        serde_json::from_value::<RoleBinding>(binding).unwrap();
    }
}
