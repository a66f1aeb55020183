//! A small OpenID Connect issuer: a discovery document, a set of keys, and tokens by ES256.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::https_server::{Answer, HttpsServer};

const KEYS: &str = "/keys";
/// The audience of tokens.
const AUDIENCE: &str = "setpoint";

/// An issuer, until it is dropped.
pub struct OidcIssuer {
    server: HttpsServer,
    state: Arc<State>,
}

struct State {
    key: Mutex<Key>,
    hangs: AtomicBool,
    fetched: AtomicUsize,
    url: Mutex<String>,
}

struct Key {
    pair: EcdsaKeyPair,
    id: String,
}

impl Key {
    fn new(number: usize) -> Self {
        let random = SystemRandom::new();
        let form = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(form, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(form, document.as_ref(), &random).unwrap();
        let id = format!("key-{number}");
        Self { pair, id }
    }

    fn public(&self) -> Value {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "kid": self.id, "x": BASE64.encode(x), "y": BASE64.encode(y),
        })
    }
}

impl OidcIssuer {
    /// Starts an issuer.
    pub fn start() -> Self {
        let state = Arc::new(State {
            key: Mutex::new(Key::new(0)),
            hangs: AtomicBool::new(false),
            fetched: AtomicUsize::new(0),
            url: Mutex::default(),
        });
        let shared = state.clone();
        let server = HttpsServer::start(move |path, _| shared.answer(path));
        *state.url.lock() = server.url();
        Self { server, state }
    }

    /// Returns the claim `iss` of its tokens.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the certificate that it is trusted by, in PEM.
    pub fn ca(&self) -> &str {
        self.server.ca()
    }

    /// Returns how often its keys were fetched.
    pub fn fetched(&self) -> usize {
        self.state.fetched.load(Ordering::SeqCst)
    }

    /// Sets whether it answers requests.
    pub fn hang(&self, hangs: bool) {
        self.state.hangs.store(hangs, Ordering::SeqCst);
    }

    /// Replaces its key, without keeping the one before.
    pub fn rotate(&self, number: usize) {
        *self.state.key.lock() = Key::new(number);
    }

    /// Returns a token for an hour for `setpoint`, with further claims or other values of those.
    pub fn token(&self, claims: &Value) -> String {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let mut all = json!({
            "iss": self.url(), "aud": AUDIENCE, "exp": now + 3600, "iat": now, "nbf": now,
        });
        for (name, value) in claims.as_object().unwrap() {
            all[name] = value.clone();
        }
        let key = self.state.key.lock();
        let header = json!({ "alg": "ES256", "kid": key.id });
        let part = |value: &Value| BASE64.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&all));
        let signature = key.pair.sign(&SystemRandom::new(), signed.as_bytes());
        format!("{signed}.{}", BASE64.encode(signature.unwrap()))
    }

    /// Returns the entry of the issuer in an AuthenticationConfiguration, with the rest of its fields.
    pub fn entry(&self, rest: &str) -> String {
        let ca = self.ca().replace('\n', "\n      ");
        let url = self.url();
        format!(
            "- issuer:
    url: {url}
    audiences: [{AUDIENCE}]
    certificateAuthority: |
      {ca}
{rest}
"
        )
    }
}

impl State {
    fn answer(&self, path: &str) -> Answer {
        if self.hangs.load(Ordering::SeqCst) {
            return Answer::Hang;
        }
        let url = self.url.lock();
        Answer::Json(match path {
            KEYS => {
                self.fetched.fetch_add(1, Ordering::SeqCst);
                json!({ "keys": [self.key.lock().public()] }).to_string()
            }
            "/.well-known/openid-configuration" => {
                json!({ "issuer": *url, "jwks_uri": format!("{url}{KEYS}") }).to_string()
            }
            _ => return Answer::Status(404),
        })
    }
}
