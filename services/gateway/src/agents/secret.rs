//! The secret that gateways share with the agents of nodes, sent with each call.

use std::path::Path;

use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use setpoint_host::secret;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

/// The header of a call.
const HEADER: &str = "authorization";

/// Adds the secret to calls, if there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secret(Option<MetadataValue<Ascii>>);

impl Secret {
    /// Reads the secret in a file; without a path there is none. It is read for each connection: the first agent may make the
    /// file after the gateway has started.
    ///
    /// # Errors
    /// If the file cannot be read, or its content cannot be sent.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        if path.as_os_str().is_empty() {
            return Ok(Self(None));
        }
        let failed = |cause: String| format!("the secret of agents, {}: {cause}", path.display());
        let secret = secret::read(path).map_err(|error| failed(error.to_string()))?;
        let value = format!("Bearer {secret}").parse::<MetadataValue<Ascii>>();
        let mut value = value.map_err(|_| failed("it is not ASCII".to_owned()))?;
        value.set_sensitive(true);
        Ok(Self(Some(value)))
    }

    /// Returns the header of a request of HTTP.
    pub(super) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let mut value = HeaderValue::from_bytes(self.0.as_ref()?.as_bytes()).ok()?;
        value.set_sensitive(true);
        Some((AUTHORIZATION, value))
    }
}

impl Interceptor for Secret {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(secret) = &self.0 {
            request.metadata_mut().insert(HEADER, secret.clone());
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks F21.
    #[test]
    fn each_call_has_the_secret_of_the_file() {
        let name = format!("setpoint-agent-secret-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let error = Secret::read(&path).unwrap_err();
        assert!(error.starts_with("the secret of agents, "), "{error}");
        std::fs::write(&path, "0123456789abcdef\n").unwrap();
        let mut secret = Secret::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let call = secret.call(Request::new(())).unwrap();
        let sent = call.metadata().get(HEADER).unwrap();
        assert_eq!(sent, "Bearer 0123456789abcdef");
        let (_, sent) = secret.header().unwrap();
        assert_eq!(sent, "Bearer 0123456789abcdef");
        let mut none = Secret::read(Path::new("")).unwrap();
        let call = none.call(Request::new(())).unwrap();
        assert!(call.metadata().get(HEADER).is_none());
    }
}
