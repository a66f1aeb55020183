//! The credentials of registries that a Pod brings, and which of them are for an image. Pure.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::image_name;

/// The key under which Docker's configuration has the credentials of its own registry.
const DOCKER_HUB: &str = "index.docker.io";

/// A user of a registry.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The user.
    pub username: String,
    /// The password, or a token.
    pub password: String,
    /// The Secret that has both.
    pub secret: SecretRef,
}

/// A Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SecretRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// The credentials of registries, by host and path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keyring(BTreeMap<String, Vec<Credential>>);

/// The content of Docker's file `config.json`, and of Secrets of the type `kubernetes.io/dockerconfigjson`.
#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    auths: Option<Registries>,
}

/// The content of Docker's older file `.dockercfg`, and of Secrets of the type `kubernetes.io/dockercfg`.
type Registries = BTreeMap<String, Entry>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    username: String,
    password: String,
    /// User and password, in base64. It replaces the other fields.
    auth: String,
}

impl Keyring {
    /// Adds the credentials of a `config.json` in a Secret.
    ///
    /// # Errors
    /// If it cannot be parsed; the message has no part of it.
    pub fn add_config(&mut self, content: &[u8], secret: &SecretRef) -> Result<(), String> {
        let config: Config = serde_json::from_slice(content).map_err(malformed)?;
        self.add(config.auths.unwrap_or_default(), secret)
    }

    /// Adds the credentials of a `.dockercfg` in a Secret.
    ///
    /// # Errors
    /// If it cannot be parsed; the message has no part of it.
    pub fn add_registries(&mut self, content: &[u8], secret: &SecretRef) -> Result<(), String> {
        self.add(serde_json::from_slice(content).map_err(malformed)?, secret)
    }

    fn add(&mut self, registries: Registries, secret: &SecretRef) -> Result<(), String> {
        for (registry, entry) in registries {
            let credential = entry.credential(secret.clone())?;
            self.0.entry(place(&registry)).or_default().push(credential);
        }
        Ok(())
    }

    /// Returns the credentials for an image, those of the longest path first.
    pub fn lookup(&self, image: &str) -> Vec<Credential> {
        let repository = repository(image);
        let matching = self.0.iter().rev();
        let matching = matching.filter(|(place, _)| matches(place, &repository));
        let found: Vec<_> = matching.flat_map(|(_, found)| found).cloned().collect();
        let is_default = repository.starts_with("docker.io/");
        match self.0.get(DOCKER_HUB).filter(|_| is_default) {
            Some(default) if found.is_empty() => default.clone(),
            _ => found,
        }
    }
}

impl Entry {
    fn credential(self, secret: SecretRef) -> Result<Credential, String> {
        if self.auth.is_empty() {
            return Ok(Credential {
                username: self.username,
                password: self.password,
                secret,
            });
        }
        let decoded = STANDARD.decode(self.auth.trim()).ok();
        let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        let pair = decoded.as_deref().and_then(|text| text.split_once(':'));
        let (username, password) = pair.ok_or("unable to parse auth field")?;
        Ok(Credential {
            username: username.to_owned(),
            password: password.to_owned(),
            secret,
        })
    }
}

/// Returns the place of an error in a configuration. The text of the error could show a part of a password.
fn malformed(error: serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    format!("malformed JSON at line {line} column {column}")
}

/// Returns the host and the path of a registry, without the scheme and the version of the API.
fn place(registry: &str) -> String {
    let rest = ["https://", "http://"]
        .iter()
        .find_map(|scheme| registry.strip_prefix(scheme));
    let rest = rest.unwrap_or(registry);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let versions = ["v1/", "v2/"].into_iter();
    let path = match versions
        .clone()
        .find_map(|version| path.strip_prefix(version))
    {
        Some(path) => path,
        None if ["v1", "v2"].contains(&path) => "",
        None => path,
    };
    match path {
        "" => host.to_owned(),
        path => format!("{host}/{path}"),
    }
}

/// Returns the repository of an image, with the host of its registry.
fn repository(image: &str) -> String {
    let name = image_name(image);
    match name.split_once('/') {
        Some(("docker.io" | DOCKER_HUB, path)) if !path.contains('/') => {
            format!("docker.io/library/{path}")
        }
        Some((DOCKER_HUB, path)) => format!("docker.io/{path}"),
        Some((host, _)) if host == "localhost" || host.contains(['.', ':']) => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
        None => format!("docker.io/library/{name}"),
    }
}

/// Returns whether a host and path, in which parts of the host may be patterns, is that of a repository or above it.
fn matches(place: &str, repository: &str) -> bool {
    let (wanted, path) = place.split_once('/').unwrap_or((place, ""));
    let (host, below) = repository.split_once('/').unwrap_or((repository, ""));
    let (wanted, wanted_port) = wanted.split_once(':').unwrap_or((wanted, ""));
    let (host, port) = host.split_once(':').unwrap_or((host, ""));
    let (wanted, parts) = (wanted.split('.'), host.split('.'));
    wanted_port == port
        && below.starts_with(path)
        && wanted.clone().count() == parts.clone().count()
        && wanted
            .zip(parts)
            .all(|(pattern, part)| is_like(pattern, part))
}

/// Returns whether a part of a host has a pattern, in which `*` stands for any characters and `?` for one. Takes time
/// in proportion to the product of their lengths: Pods bring both.
fn is_like(pattern: &str, part: &str) -> bool {
    let (pattern, part) = (pattern.as_bytes(), part.as_bytes());
    let (mut at, mut read) = (0, 0);
    // The last `*`, and what has been read when it was met.
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = part.get(read) {
        match (pattern.get(at), star) {
            (Some(b'*'), _) => {
                star = Some((at, read));
                at += 1;
            }
            (Some(wanted), _) if *wanted == b'?' || wanted == byte => {
                at += 1;
                read += 1;
            }
            (_, Some((place, met))) => {
                star = Some((place, met + 1));
                at = place + 1;
                read = met + 1;
            }
            _ => return false,
        }
    }
    pattern.iter().skip(at).all(|rest| *rest == b'*')
}

#[cfg(test)]
mod tests;
