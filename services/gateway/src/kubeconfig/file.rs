//! Reads a kubeconfig file.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use setpoint_document::yaml;

use crate::settings_file::read;

/// Fields that would change how the server is called, and are not supported.
const NOT_SUPPORTED: [(&str, &[&str]); 2] = [
    ("cluster", &["proxy-url", "tls-server-name"]),
    (
        "user",
        &[
            "as",
            "as-groups",
            "as-uid",
            "as-user-extra",
            "auth-provider",
            "exec",
        ],
    ),
];

/// A server, and the credentials for it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Kubeconfig {
    pub(super) server: String,
    /// CAs in PEM; none for those of the system.
    pub(super) ca: Vec<u8>,
    /// Whether any certificate is accepted.
    pub(super) is_insecure: bool,
    /// The certificate of the client and its key, in PEM.
    pub(super) identity: Option<(Vec<u8>, Vec<u8>)>,
    pub(super) token: Token,
}

/// The value of the header `Authorization`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Token {
    #[default]
    None,
    Text(String),
    /// Read for each request.
    File(PathBuf),
    Password(String, String),
}

/// An entry of the file: the cluster or the user of the current context.
struct Entry<'a> {
    kind: &'static str,
    fields: &'a Value,
    directory: &'a Path,
}

impl Kubeconfig {
    /// Reads a file. Paths in it are relative to its directory.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let document = yaml(&read(path)?)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let current = document["current-context"].as_str().unwrap_or_default();
        if current.is_empty() {
            return Err("current-context: Required value".to_owned());
        }
        let context = named(&document, "contexts", "context", current)?;
        let entry = |kind: &'static str, list: &str| {
            let name = context[kind].as_str().unwrap_or_default();
            match (kind, name) {
                ("user", "") => Ok(Value::Null),
                _ => named(&document, list, kind, name).cloned(),
            }
        };
        let (cluster, user) = (entry("cluster", "clusters")?, entry("user", "users")?);
        let entry = |kind, fields| Entry {
            kind,
            fields,
            directory,
        };
        let (cluster, user) = (entry("cluster", &cluster), entry("user", &user));
        cluster.check()?;
        user.check()?;
        let server = cluster.text("server");
        if !server.starts_with("http://") && !server.starts_with("https://") {
            return Err(format!(
                "cluster.server: Invalid value: {server:?}: must be a URL of http or https"
            ));
        }
        let identity = [user.file("client-certificate")?, user.file("client-key")?];
        let identity = match identity {
            [Some(certificate), Some(key)] => Some((certificate, key)),
            [None, None] => None,
            _ => return Err("user: a client certificate needs its key".to_owned()),
        };
        Ok(Self {
            server: server.to_owned(),
            ca: cluster.file("certificate-authority")?.unwrap_or_default(),
            is_insecure: cluster.fields["insecure-skip-tls-verify"] == true,
            identity,
            token: user.token(),
        })
    }
}

impl Entry<'_> {
    fn check(&self) -> Result<(), String> {
        let refused = NOT_SUPPORTED.iter().find(|(kind, _)| *kind == self.kind);
        let mut refused = refused.map_or(&[][..], |(_, names)| names).iter();
        let is_set = |name: &&&str| !matches!(self.fields.get(name), None | Some(Value::Null));
        match refused.find(is_set) {
            Some(name) => Err(format!(
                "{}.{name}: Forbidden: it is not supported",
                self.kind
            )),
            None => Ok(()),
        }
    }

    fn text(&self, name: &str) -> &str {
        self.fields[name].as_str().unwrap_or_default()
    }

    /// Returns what `<name>-data` has, or the file that `<name>` names.
    fn file(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let field = format!("{name}-data");
        let failed = |field: &str, error: String| format!("{}.{field}: {error}", self.kind);
        match (self.text(&field), self.text(name)) {
            ("", "") => Ok(None),
            ("", path) => {
                let read = read(&self.directory.join(path));
                read.map(Some).map_err(|error| failed(name, error))
            }
            (data, _) => {
                let decoded = BASE64_STANDARD.decode(data);
                decoded
                    .map(Some)
                    .map_err(|error| failed(&field, error.to_string()))
            }
        }
    }

    /// Returns the token; as in clients of Kubernetes, one in a file is preferred.
    fn token(&self) -> Token {
        let [file, token, name] = ["tokenFile", "token", "username"].map(|name| self.text(name));
        match (file, token, name) {
            ("", "", "") => Token::None,
            ("", "", name) => Token::Password(name.into(), self.text("password").into()),
            ("", token, _) => Token::Text(token.into()),
            (file, ..) => Token::File(self.directory.join(file)),
        }
    }
}

/// Returns an entry of a list by its name.
fn named<'a>(document: &'a Value, list: &str, kind: &str, name: &str) -> Result<&'a Value, String> {
    let mut entries = document[list].as_array().into_iter().flatten();
    let found = entries.find(|entry| entry["name"] == name);
    let found = found.and_then(|entry| entry.get(kind));
    found.ok_or_else(|| format!("{list}: Not found: {name:?}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read_with(cluster: &str, user: &str) -> Result<Kubeconfig, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("webhook.yaml");
        let text = format!(
            "apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: a, user: u}}}}]
clusters: [{{name: a, cluster: {{{cluster}}}}}]
users: [{{name: u, user: {{{user}}}}}]
"
        );
        fs::write(&path, text).unwrap();
        fs::write(directory.path().join("ca.crt"), "the CA").unwrap();
        Kubeconfig::read(&path)
    }

    #[test]
    fn the_current_context_names_the_server_and_the_credentials() {
        let found = read_with(
            "server: https://audit.example.com/events, certificate-authority: ca.crt",
            "token: secret, client-certificate-data: YQ==, client-key-data: Yg==",
        );
        let expected = Kubeconfig {
            server: "https://audit.example.com/events".into(),
            ca: b"the CA".into(),
            is_insecure: false,
            identity: Some((b"a".into(), b"b".into())),
            token: Token::Text("secret".into()),
        };
        assert_eq!(found, Ok(expected));
    }

    #[test]
    fn what_is_not_supported_or_missing_is_refused() {
        let server = "server: http://a";
        for (cluster, user, expected) in [
            (
                server,
                "exec: {command: x}",
                "user.exec: Forbidden: it is not supported",
            ),
            (
                "server: http://a, proxy-url: http://b",
                "",
                "cluster.proxy-url: Forbidden: it is not supported",
            ),
            ("server: a", "", "must be a URL of http or https"),
            ("", "", "must be a URL of http or https"),
            (
                server,
                "client-key-data: YQ==",
                "a client certificate needs its key",
            ),
            (
                server,
                "client-key-data: '?', client-certificate-data: YQ==",
                "user.client-key-data",
            ),
            (
                "server: http://a, certificate-authority: missing",
                "",
                "cluster.certificate-authority",
            ),
        ] {
            let error = read_with(cluster, user).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
