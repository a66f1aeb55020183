//! The record of an image that was pulled, in the form of the kubelet's `ImagePulledRecord`. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::SecretRef;
use crate::Credential;

const API_VERSION: &str = "kubelet.config.k8s.io/v1beta1";
const KIND: &str = "ImagePulledRecord";
/// The number of Secrets of an image up to which further ones are recorded that are only compared, as in the kubelet.
/// Beyond, only those are with which the image is pulled.
const MAX_LEARNED: usize = 100;

/// The credentials that the pulls of an image needed. Without any, no Pod may use it before a pull.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    kind: String,
    api_version: String,
    /// The time of the last change.
    pub last_updated_time: Timestamp,
    /// The runtime's id of the image.
    pub image_ref: String,
    /// By the name of the image without tag and digest.
    credential_mapping: BTreeMap<String, Credentials>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Credentials {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kubernetes_secrets: Vec<PullSecret>,
    /// Whether no credentials are needed.
    node_pods_accessible: bool,
}

/// A Secret with which an image was pulled, and a hash of what it had for the image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PullSecret {
    #[serde(flatten)]
    secret: SecretRef,
    credential_hash: String,
}

/// Those who may use an image after a pull.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// All Pods of the node.
    Everyone,
    /// Those with this Secret, or the same credentials.
    Secret(PullSecret),
}

/// Whether a Pod may use an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Granted,
    /// It may, and its Secret is to be added to the record: only its name or only its content was known.
    Learned(PullSecret),
    /// It has to pull.
    Refused,
}

impl PullSecret {
    /// Returns the Secret of a credential.
    pub fn of(credential: &Credential) -> Self {
        let mut hash = Sha256::new();
        for part in [&credential.username, &credential.password] {
            // With its length, so that no two pairs have the same text.
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        Self {
            secret: credential.secret.clone(),
            credential_hash: hex(&hash.finalize()),
        }
    }
}

impl Record {
    /// Returns a record of an image without credentials.
    pub fn new(image_ref: &str, now: Timestamp) -> Self {
        Self {
            kind: KIND.to_owned(),
            api_version: API_VERSION.to_owned(),
            last_updated_time: now,
            image_ref: image_ref.to_owned(),
            credential_mapping: BTreeMap::new(),
        }
    }

    /// Returns whether a Pod with these credentials may use the image under a name.
    pub fn verdict(&self, name: &str, own: &[PullSecret]) -> Verdict {
        let Some(known) = self.credential_mapping.get(name) else {
            return Verdict::Refused;
        };
        if known.node_pods_accessible {
            return Verdict::Granted;
        }
        let learns = known.kubernetes_secrets.len() < MAX_LEARNED;
        let pairs = own.iter().flat_map(|own| {
            let known = known.kubernetes_secrets.iter();
            known.map(move |known| (own, known))
        });
        let verdict = |(own, known): (&PullSecret, &PullSecret)| {
            let is_same = own.credential_hash == known.credential_hash;
            match (is_same, own.secret == known.secret) {
                (true, false) if learns => Some(Verdict::Learned(own.clone())),
                (true, _) => Some(Verdict::Granted),
                // A Secret with other content: the tenant is the same.
                (false, true) if learns => Some(Verdict::Learned(own.clone())),
                _ => None,
            }
        };
        let mut verdicts = pairs.filter_map(verdict);
        verdicts.next().unwrap_or(Verdict::Refused)
    }

    /// Adds who may use the image under a name. Returns whether that has changed anything.
    pub fn add(&mut self, name: &str, grant: Grant, now: Timestamp) -> bool {
        let known = self.credential_mapping.entry(name.to_owned()).or_default();
        let before = known.clone();
        match grant {
            _ if known.node_pods_accessible => {}
            Grant::Everyone => {
                known.node_pods_accessible = true;
                known.kubernetes_secrets.clear();
            }
            Grant::Secret(new) => {
                let secrets = &mut known.kubernetes_secrets;
                secrets.retain(|known| known.secret != new.secret);
                secrets.push(new);
                secrets.sort_by(|one, other| one.secret.cmp(&other.secret));
            }
        }
        let changed = *known != before;
        if changed {
            self.last_updated_time = now;
        }
        changed
    }
}

/// Returns bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(namespace: &str, uid: &str, password: &str) -> PullSecret {
        PullSecret::of(&Credential {
            username: "puller".into(),
            password: password.into(),
            secret: SecretRef {
                namespace: namespace.into(),
                name: "pull".into(),
                uid: uid.into(),
            },
        })
    }

    fn record(grants: &[Grant]) -> Record {
        let mut record = Record::new("sha256:00", Timestamp::UNIX_EPOCH);
        for grant in grants {
            record.add("here.test/app", grant.clone(), Timestamp::UNIX_EPOCH);
        }
        record
    }

    #[test]
    fn a_pod_may_use_an_image_with_the_secret_or_the_credentials_of_a_pull() {
        let known = secret("shop", "1", "hush");
        let same = secret("other", "2", "hush");
        let renewed = secret("shop", "1", "changed");
        let strange = secret("other", "2", "guessed");
        let of_one = record(&[Grant::Secret(known.clone())]);
        for (record, name, own, expected) in [
            (
                &of_one,
                "here.test/app",
                vec![known.clone()],
                Verdict::Granted,
            ),
            (
                &of_one,
                "here.test/app",
                vec![strange.clone(), same.clone()],
                Verdict::Learned(same),
            ),
            (
                &of_one,
                "here.test/app",
                vec![renewed.clone()],
                Verdict::Learned(renewed),
            ),
            (
                &of_one,
                "here.test/app",
                vec![strange.clone()],
                Verdict::Refused,
            ),
            (&of_one, "here.test/app", vec![], Verdict::Refused),
            (
                &of_one,
                "here.test/copy",
                vec![known.clone()],
                Verdict::Refused,
            ),
            (&record(&[]), "here.test/app", vec![known], Verdict::Refused),
            (
                &record(&[Grant::Everyone]),
                "here.test/app",
                vec![],
                Verdict::Granted,
            ),
        ] {
            assert_eq!(record.verdict(name, &own), expected, "{name} {own:?}");
        }
    }

    #[test]
    fn a_record_has_each_secret_once_and_none_once_none_is_needed() {
        let now = Timestamp::UNIX_EPOCH;
        let mut kept = record(&[Grant::Secret(secret("shop", "1", "hush"))]);
        let mut add = |grant| kept.add("here.test/app", grant, now);
        assert!(!add(Grant::Secret(secret("shop", "1", "hush"))));
        assert!(add(Grant::Secret(secret("shop", "1", "changed"))));
        assert!(add(Grant::Secret(secret("shop", "2", "changed"))));
        let secrets = kept.credential_mapping["here.test/app"].clone();
        assert_eq!(secrets.kubernetes_secrets.len(), 2);
        let mut add = |grant| kept.add("here.test/app", grant, now);
        assert!(add(Grant::Everyone));
        assert!(!add(Grant::Everyone));
        assert!(!add(Grant::Secret(secret("shop", "1", "hush"))));
        assert_eq!(kept, record(&[Grant::Everyone]));
    }

    #[test]
    fn no_more_secrets_are_learned_than_the_limit() {
        let many: Vec<_> = (0..MAX_LEARNED)
            .map(|uid| Grant::Secret(secret("shop", &uid.to_string(), "hush")))
            .collect();
        let full = record(&many);
        let verdict = |own| full.verdict("here.test/app", &[own]);
        assert_eq!(verdict(secret("other", "1", "hush")), Verdict::Granted);
        assert_eq!(verdict(secret("shop", "1", "changed")), Verdict::Refused);
    }
}
