//! The OpenAPI document of v2 of a server (upstream: the downloader of kube-aggregator's OpenAPI controller).

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::ETAG;
use setpoint_openapi::Filtered;
use sha2::{Digest as _, Sha256};

use super::Remote;
use super::documents::JSON;
use super::front_proxy::Certificate;
use crate::offload::offload;

/// The document of a server, as it was fetched last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Swagger {
    /// The part of the last document that was readable; `None` if there was none.
    pub(crate) filtered: Option<Arc<Filtered>>,
    etag: Option<String>,
    /// The hash of the document that was received last, readable or not.
    hash: Option<[u8; 32]>,
    /// The reason why there is no newer document, if it was logged.
    failure: Option<String>,
}

/// A response of the server.
enum Fetched {
    /// The server has no document.
    Nothing,
    /// It is the one of before.
    Unchanged,
    Document(Bytes, Option<String>),
}

impl Remote {
    /// Fetches the document if it is another than before. One that cannot be fetched or used is logged once, and that
    /// of before stays.
    pub(super) async fn swagger(
        &self,
        certificate: &Arc<Certificate>,
        before: &Swagger,
    ) -> Swagger {
        let mut now = before.clone();
        let used = match self.fetch(certificate, before).await {
            Ok(Fetched::Nothing | Fetched::Unchanged) => return now,
            Ok(Fetched::Document(document, etag)) => {
                now.etag = etag;
                let hash = Some(Sha256::digest(&document).into());
                if now.hash == hash {
                    return now;
                }
                now.hash = hash;
                let prefix = format!("{}/", self.path());
                offload(document.len(), || Filtered::parse(&document, &prefix)).await
            }
            Err(why) => Err(why),
        };
        match used {
            Ok(filtered) => (now.filtered, now.failure) = (Some(Arc::new(filtered)), None),
            Err(why) => {
                if now.failure.as_ref() != Some(&why) {
                    tracing::warn!(
                        name = self.name,
                        why,
                        "the OpenAPI v2 document of an APIService is left out"
                    );
                }
                now.failure = Some(why);
            }
        }
        now
    }

    async fn fetch(
        &self,
        certificate: &Arc<Certificate>,
        before: &Swagger,
    ) -> Result<Fetched, String> {
        let etag = before.etag.as_deref();
        let (status, headers, body) = self.get(certificate, "/openapi/v2", JSON, etag).await?;
        match status {
            StatusCode::NOT_MODIFIED if etag.is_some() => Ok(Fetched::Unchanged),
            StatusCode::NOT_FOUND => Ok(Fetched::Nothing),
            StatusCode::OK => {
                let etag = headers.get(ETAG).and_then(|etag| etag.to_str().ok());
                Ok(Fetched::Document(body, etag.map(str::to_owned)))
            }
            _ => Err(format!(
                "failed to retrieve openAPI spec, http error: {status}"
            )),
        }
    }
}
