//! Tokens of ServiceAccounts for volumes.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::Client;
use setpoint_model::Key;
use setpoint_model::time::after;
use setpoint_proto::ApiError;
use setpoint_proto::authentication::{BoundObjectReference, TokenRequestSpec};
use setpoint_proto::core::{Pod, ServiceAccountTokenProjection};

/// The longest time for which a token is used.
const MAX_USE: Duration = Duration::from_secs(24 * 3600);

/// The tokens in use, so that a volume keeps its token for most of the token's life.
#[derive(Default)]
pub struct Tokens {
    tokens: Mutex<HashMap<Claim, Token>>,
}

/// The claims of the token that a volume needs.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Claim {
    pod: String,
    audience: String,
    expiration: Option<i64>,
}

#[derive(Clone)]
struct Token {
    text: String,
    /// The time at which the next token is due.
    until: Timestamp,
}

impl Tokens {
    /// Returns a token for a volume of a Pod. After 80 % of its life it is replaced by another.
    ///
    /// # Errors
    /// If the gateway issues none and there is none to go on with.
    pub async fn token(
        &self,
        gateway: &Client,
        pod: &Pod,
        source: &ServiceAccountTokenProjection,
    ) -> Result<String, ApiError> {
        let claim = Claim {
            pod: pod.metadata.uid.clone(),
            audience: source.audience.clone(),
            expiration: source.expiration_seconds,
        };
        let now = Timestamp::now();
        let known = self.tokens.lock().get(&claim).cloned();
        if let Some(token) = known.filter(|token| now < token.until) {
            return Ok(token.text);
        }
        let token = request(gateway, pod, source, now).await?;
        let text = token.text.clone();
        self.tokens.lock().insert(claim, token);
        Ok(text)
    }

    /// Forgets the tokens of a Pod.
    pub fn forget(&self, uid: &str) {
        self.tokens.lock().retain(|claim, _| claim.pod != uid);
    }
}

async fn request(
    gateway: &Client,
    pod: &Pod,
    source: &ServiceAccountTokenProjection,
    now: Timestamp,
) -> Result<Token, ApiError> {
    let account = match pod.spec.service_account_name.as_str() {
        "" => "default",
        named => named,
    };
    let audiences = [source.audience.clone()].into_iter();
    let spec = TokenRequestSpec {
        audiences: audiences.filter(|audience| !audience.is_empty()).collect(),
        expiration_seconds: source.expiration_seconds,
        bound_object_ref: Some(BoundObjectReference {
            kind: "Pod".to_owned(),
            api_version: "v1".to_owned(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
        }),
        ..TokenRequestSpec::default()
    };
    let account = Key::new(&pod.metadata.namespace, account);
    let issued = gateway.create_token(&account, spec).await?;
    let expires = issued.expiration_timestamp.timestamp().unwrap_or(now);
    let until = after(now, time_of_use(now, expires));
    let text = issued.token;
    Ok(Token { text, until })
}

/// Returns for how long a token is used: 80 % of its life, and a day at most.
fn time_of_use(now: Timestamp, expires: Timestamp) -> Duration {
    let life = Duration::try_from(expires.duration_since(now)).unwrap_or_default();
    let most = life.saturating_mul(4).checked_div(5).unwrap_or_default();
    most.min(MAX_USE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_used_for_four_fifths_of_its_life_and_a_day_at_most() {
        let now = Timestamp::from_second(1000).unwrap();
        let used = |life: i64| {
            let expires = Timestamp::from_second(1000 + life).unwrap();
            time_of_use(now, expires).as_secs()
        };
        assert_eq!([used(600), used(3600), used(-5)], [480, 2880, 0]);
        assert_eq!(used(10 * 24 * 3600), 24 * 3600);
    }
}
