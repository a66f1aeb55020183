//! The client of a provider, over its Unix socket. Each call has a time limit.

use std::path::PathBuf;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Response, Status};
use tower::service_fn;

use super::v2::key_management_service_client::KeyManagementServiceClient;
use super::v2::{
    DecryptRequest, EncryptRequest, EncryptResponse, EncryptedObject, StatusRequest, StatusResponse,
};

/// The largest answer in bytes: annotations of 32 KiB, with room.
const LARGEST: usize = 1 << 20;

/// A client; it connects when it is first used.
#[derive(Clone)]
pub(super) struct Client {
    service: KeyManagementServiceClient<Channel>,
    timeout: Duration,
}

/// An error of a call.
#[derive(Debug)]
pub(super) struct CallError {
    pub why: String,
    /// Whether the provider has not answered, so that the next call would not be answered either.
    pub is_unavailable: bool,
}

impl Client {
    pub(super) fn new(socket: PathBuf, timeout: Duration) -> Self {
        // The address is not used, but names the authority, as upstream.
        let endpoint = Endpoint::from_static("http://localhost");
        let channel = endpoint.connect_with_connector_lazy(service_fn(move |_: Uri| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        }));
        let service = KeyManagementServiceClient::new(channel);
        Self {
            service: service.max_decoding_message_size(LARGEST),
            timeout,
        }
    }

    pub(super) async fn status(&self) -> Result<StatusResponse, CallError> {
        let mut service = self.service.clone();
        self.within(service.status(StatusRequest {})).await
    }

    pub(super) async fn encrypt(&self, plaintext: Vec<u8>) -> Result<EncryptResponse, CallError> {
        let mut service = self.service.clone();
        let request = EncryptRequest {
            plaintext: plaintext.into(),
            uid: uid(),
        };
        self.within(service.encrypt(request)).await
    }

    /// Decrypts the source of the key of an object.
    pub(super) async fn decrypt(&self, object: &EncryptedObject) -> Result<Vec<u8>, CallError> {
        let mut service = self.service.clone();
        let request = DecryptRequest {
            ciphertext: object.encrypted_dek_source.clone(),
            uid: uid(),
            key_id: object.key_id.clone(),
            annotations: object.annotations.clone(),
        };
        let answer = self.within(service.decrypt(request)).await?;
        Ok(answer.plaintext.to_vec())
    }

    async fn within<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, CallError> {
        match timeout(self.timeout, call).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(CallError {
                is_unavailable: matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded),
                why: format!("{}: {}", status.code(), status.message()),
            }),
            Err(_) => Err(CallError {
                why: format!("it did not answer within {:?}", self.timeout),
                is_unavailable: true,
            }),
        }
    }
}

fn uid() -> String {
    format!("{:032x}", rand::random::<u128>())
}
