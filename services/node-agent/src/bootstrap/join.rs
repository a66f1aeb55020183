//! The first client certificate, by a bootstrap token.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use setpoint_controller::Client;
use setpoint_model::bootstrap_token;
use setpoint_proto::Reason;
use setpoint_tls::Credentials;
use setpoint_tls::authority::{Authority, Leaf, Usage};
use tokio::time::timeout;
use tracing::info;

use super::directory::Directory;
use super::request::{self, Signer};
use crate::settings::Settings;

/// The time within which there must be a certificate: that of a token.
const TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Returns the credentials of the agent, after it has joined the cluster if it has not yet.
///
/// # Errors
/// Why it cannot join.
pub async fn identity(settings: &Settings) -> anyhow::Result<Credentials> {
    let (bootstrap, node) = (&settings.bootstrap, &settings.node_name);
    let directory = Directory::new(&bootstrap.directory);
    let token_file = &bootstrap.token_file;
    // A token beside an older certificate is there to join again. One that was not removed was used for it.
    let is_used = || !token_file.exists() || directory.is_newer_than(token_file);
    if !(directory.is_usable(node) && is_used()) {
        join(settings, &directory).await?;
    }
    directory.forget_request();
    let _ = fs::remove_file(token_file);
    Ok(directory.credentials()?)
}

async fn join(settings: &Settings, directory: &Directory) -> anyhow::Result<()> {
    let node = &settings.node_name;
    let token = read_token(&settings.bootstrap.token_file).with_context(|| {
        let place = settings.bootstrap.directory.display();
        format!("node {node:?} has no valid certificate in {place}, and no token to ask for one")
    })?;
    let gateway = connect(settings, directory)?.with_token(&token);
    let request = directory.first_request(node)?;
    info!(node, "requesting a client certificate by a bootstrap token");
    let obtained = timeout(TIMEOUT, request::obtain(&gateway, Signer::Client, &request)).await;
    let obtained = obtained.map_err(|_| {
        anyhow!("nobody has answered the request for the certificate of node {node:?} in time")
    })?;
    let certificate = obtained.map_err(|error| {
        directory.forget_request();
        explained(error)
    })?;
    directory.write_client(&certificate, &request.key())?;
    info!(node, "joined the cluster");
    Ok(())
}

/// Returns an error that says what became of the token.
fn explained(error: request::Error) -> anyhow::Error {
    let is_unknown =
        matches!(&error, request::Error::Refused(error) if error.reason == Reason::Unauthorized);
    match is_unknown {
        true => {
            anyhow!("the bootstrap token is not valid: it is unknown, was used, or has expired")
        }
        false => error.into(),
    }
}

fn read_token(file: &Path) -> anyhow::Result<String> {
    if file.as_os_str().is_empty() {
        bail!("the setting bootstrap.token_file is empty");
    }
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let token = text.trim();
    if bootstrap_token::parts(token).is_none() {
        bail!(
            "{} has no bootstrap token, such as abcdef.0123456789abcdef",
            file.display()
        );
    }
    Ok(token.to_owned())
}

/// Connects to a gateway that the pinned CA vouches for. The agent has no certificate to present: one that nobody knows
/// takes its place, beside which the gateway reads the token.
fn connect(settings: &Settings, directory: &Directory) -> anyhow::Result<Client> {
    let ca_file = directory.client().ca_file;
    let ca = fs::read_to_string(&ca_file);
    let ca = ca.with_context(|| format!("cannot read {}", ca_file.display()))?;
    let unknown = Authority::create("unknown")?.issue(&Leaf {
        name: String::new(),
        groups: Vec::new(),
        hosts: Vec::new(),
        usage: Usage::Client,
        lifetime: TIMEOUT,
    })?;
    let credentials = Credentials::from_pem(&ca, &unknown.certificate, &unknown.key)?;
    let connected = Client::connect_with(&settings.gateway, Some(credentials), "node-agent");
    Ok(connected?)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::ApiError;

    use super::*;

    #[test]
    fn a_token_is_read_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let problem = |file: &Path| format!("{:#}", read_token(file).unwrap_err());
        assert!(problem(&file).starts_with("cannot read "));
        assert!(problem(Path::new("")).contains("bootstrap.token_file"));
        fs::write(&file, "abcdef\n").unwrap();
        assert!(problem(&file).contains("has no bootstrap token"));
        fs::write(&file, "abcdef.0123456789abcdef\n").unwrap();
        assert_eq!(read_token(&file).unwrap(), "abcdef.0123456789abcdef");
    }

    #[test]
    fn a_token_that_the_gateway_does_not_know_is_an_error_in_words() {
        let of = |reason| {
            let error = request::Error::Refused(ApiError::new(reason, "Unauthorized"));
            explained(error).to_string()
        };
        assert!(of(Reason::Unauthorized).contains("was used, or has expired"));
        assert!(of(Reason::Forbidden).starts_with("the gateway refuses the request"));
    }

    /// Without a certificate and without a token, the agent says what is missing.
    #[tokio::test]
    async fn an_agent_without_certificate_and_token_does_not_start() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings {
            node_name: "a".into(),
            ..Settings::default()
        };
        settings.bootstrap.directory = folder.path().into();
        settings.bootstrap.token_file = folder.path().join("token");
        let problem = format!("{:#}", identity(&settings).await.unwrap_err());
        assert!(
            problem.contains("node \"a\" has no valid certificate"),
            "{problem}"
        );
    }

    /// A crash between the certificate and the removal of the token.
    #[tokio::test]
    async fn a_token_beside_the_certificate_that_it_was_used_for_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings {
            node_name: "a".into(),
            ..Settings::default()
        };
        let token_file = folder.path().join("token");
        fs::write(&token_file, "abcdef.0123456789abcdef").unwrap();
        settings.bootstrap.directory = folder.path().into();
        settings.bootstrap.token_file = token_file.clone();
        let authority = Authority::create("ca").unwrap();
        fs::write(folder.path().join("ca.crt"), authority.certificate()).unwrap();
        let leaf = |name: &str| Leaf {
            name: name.into(),
            groups: Vec::new(),
            hosts: Vec::new(),
            usage: Usage::Client,
            lifetime: Duration::from_secs(60),
        };
        let directory = Directory::new(folder.path());
        let issued = authority.issue(&leaf("system:node:a")).unwrap();
        directory
            .write_client(&issued.certificate, &issued.key)
            .unwrap();
        let credentials = identity(&settings).await.unwrap();
        assert!(!token_file.exists());
        assert_eq!(credentials.serving_validity(), None);
        // The certificate of another node is none of its own.
        let other = authority.issue(&leaf("system:node:b")).unwrap();
        directory
            .write_client(&other.certificate, &other.key)
            .unwrap();
        assert!(identity(&settings).await.is_err());
    }
}
