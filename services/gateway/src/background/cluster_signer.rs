//! Follows the CA of the signers of CertificateSigningRequests: clients with certificates by it are known.

use futures::StreamExt as _;
use setpoint_codec::kind_of;
use setpoint_model::Key;
use setpoint_model::replicas::SYSTEM_NAMESPACE as NAMESPACE;
use setpoint_proto::ApiError;
use setpoint_proto::core::Secret;
use setpoint_tls::Credentials;
use tracing::warn;

use super::attempts::repeat;
use crate::cached::cached;
use crate::registry::{AtLeast, Filter, Registry, Start, WatchSpec};

const NAME: &str = "cluster-signer";
const CERTIFICATE: &str = "tls.crt";

impl Registry {
    /// Knows clients by the CA in the Secret `setpoint-system/cluster-signer`, if there is one, beside those of files.
    /// Runs until dropped.
    pub async fn know_clients_of_signers(&self, credentials: Option<Credentials>) {
        let Some(credentials) = credentials else {
            return std::future::pending().await;
        };
        self.cache().synced().await;
        repeat("cluster-signer", || self.follow_signer(&credentials)).await;
    }

    /// Reads the CA whenever the Secret changes, until a watch ends.
    async fn follow_signer(&self, credentials: &Credentials) -> Result<(), ApiError> {
        let spec = WatchSpec {
            filter: Filter::all(kind_of::<Secret>(), NAMESPACE),
            start: Start::Now,
            bookmarks: false,
        };
        let mut events = self.cache().watch(spec).await?;
        self.read_signer(credentials).await?;
        while let Some(event) = events.next().await {
            if event?.object.key.name == NAME {
                self.read_signer(credentials).await?;
            }
        }
        Ok(())
    }

    async fn read_signer(&self, credentials: &Credentials) -> Result<(), ApiError> {
        let key = Key::new(NAMESPACE, NAME);
        let secret = cached::<Secret>(self.cache(), &key, AtLeast::Any).await?;
        let bundle = secret.as_ref();
        let bundle = bundle.and_then(|secret| secret.data.get(CERTIFICATE));
        let bundle = bundle.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        if let Err(error) = credentials.also_know_clients_by(&bundle.unwrap_or_default()) {
            warn!(%error, secret = NAME, "the CA of signers is not trusted");
        }
        Ok(())
    }
}
