//! A provider of keys for tests. It works, hangs or refuses, as it is told.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::stream;
use parking_lot::Mutex;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use super::v2::key_management_service_server::{KeyManagementService, KeyManagementServiceServer};
use super::v2::{
    DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, StatusRequest, StatusResponse,
};

/// A provider behind a socket. It ends when dropped.
pub struct TestKms {
    state: Arc<State>,
    server: JoinHandle<()>,
}

/// The way in which a provider answers calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It works.
    Works,
    /// It takes calls and never answers.
    Hangs,
    /// It says that it does not work, and refuses to encrypt and to decrypt.
    IsIll,
}

struct State {
    mode: Mutex<Mode>,
    key: Mutex<String>,
    decrypted: AtomicUsize,
    encrypted: AtomicUsize,
}

impl TestKms {
    /// Starts a provider whose key has the id `1`.
    ///
    /// # Panics
    /// If the socket cannot be made.
    pub fn start(socket: &Path) -> Self {
        let listener = UnixListener::bind(socket).expect("the socket can be made");
        let incoming = stream::unfold(listener, |listener| async move {
            let accepted = listener.accept().await;
            Some((accepted.map(|(stream, _)| stream), listener))
        });
        let state = Arc::new(State {
            mode: Mutex::new(Mode::Works),
            key: Mutex::new("1".to_owned()),
            decrypted: AtomicUsize::new(0),
            encrypted: AtomicUsize::new(0),
        });
        let service = KeyManagementServiceServer::from_arc(state.clone());
        let server = async move {
            let served = Server::builder().add_service(service);
            let _ = served.serve_with_incoming(incoming).await;
        };
        Self {
            state,
            server: tokio::spawn(server),
        }
    }

    /// Sets what it does from now on; calls that hang go on hanging.
    pub fn set_mode(&self, mode: Mode) {
        *self.state.mode.lock() = mode;
    }

    /// Sets the id of the key that encrypts from now on.
    pub fn set_key(&self, id: &str) {
        id.clone_into(&mut self.state.key.lock());
    }

    /// Returns the number of calls that it has encrypted and decrypted for.
    pub fn calls(&self) -> (usize, usize) {
        let State {
            encrypted,
            decrypted,
            ..
        } = &*self.state;
        let load = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        (load(encrypted), load(decrypted))
    }
}

impl Drop for TestKms {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl State {
    /// Returns in the mode in which it answers.
    async fn mode(&self) -> Mode {
        let mode = self.mode.lock().clone();
        match mode {
            Mode::Hangs => std::future::pending().await,
            mode => mode,
        }
    }

    async fn works(&self) -> Result<(), Status> {
        match self.mode().await {
            Mode::Works => Ok(()),
            Mode::Hangs | Mode::IsIll => Err(Status::failed_precondition("it is ill")),
        }
    }
}

/// Encrypts, or decrypts: a stand-in for a cipher.
fn scramble(text: &[u8], key: &str) -> Bytes {
    let key = key.bytes().cycle().map(|byte| byte ^ 0x5a);
    text.iter().zip(key).map(|(byte, key)| byte ^ key).collect()
}

#[tonic::async_trait]
impl KeyManagementService for State {
    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        let healthz = match self.mode().await {
            Mode::Works => "ok",
            Mode::Hangs | Mode::IsIll => "it is ill",
        };
        Ok(Response::new(StatusResponse {
            version: "v2".to_owned(),
            healthz: healthz.to_owned(),
            key_id: self.key.lock().clone(),
        }))
    }

    async fn decrypt(
        &self,
        request: Request<DecryptRequest>,
    ) -> Result<Response<DecryptResponse>, Status> {
        self.works().await?;
        self.decrypted.fetch_add(1, Ordering::SeqCst);
        let request = request.into_inner();
        let note = request.annotations.get("note.test.example");
        if note.is_none_or(|note| note != request.key_id.as_bytes()) {
            return Err(Status::invalid_argument("the annotations are missing"));
        }
        Ok(Response::new(DecryptResponse {
            plaintext: scramble(&request.ciphertext, &request.key_id),
        }))
    }

    async fn encrypt(
        &self,
        request: Request<EncryptRequest>,
    ) -> Result<Response<EncryptResponse>, Status> {
        self.works().await?;
        self.encrypted.fetch_add(1, Ordering::SeqCst);
        let key_id = self.key.lock().clone();
        let note = Bytes::from(key_id.clone());
        Ok(Response::new(EncryptResponse {
            ciphertext: scramble(&request.into_inner().plaintext, &key_id),
            annotations: BTreeMap::from([("note.test.example".to_owned(), note)]),
            key_id,
        }))
    }
}
