//! The files of an identity, and what they hold.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::Error;

/// The permissions of others.
const OF_OTHERS: u32 = 0o007;

/// The files of the identity of a process, in PEM. Without any there is no TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Files {
    /// File with the certificates of the CAs to trust; several during a change of the CA.
    pub ca_file: PathBuf,
    /// File with the certificate of this process, followed by those of intermediate CAs.
    pub certificate_file: PathBuf,
    /// File with the private key of the certificate.
    pub key_file: PathBuf,
}

impl Files {
    /// Returns the files `ca.crt`, `tls.crt` and `tls.key` of a directory, as in Secrets of type `kubernetes.io/tls`.
    pub fn in_directory(directory: &Path) -> Self {
        Self {
            ca_file: directory.join("ca.crt"),
            certificate_file: directory.join("tls.crt"),
            key_file: directory.join("tls.key"),
        }
    }

    /// Returns whether no file is given.
    pub fn is_empty(&self) -> bool {
        self.paths().iter().all(|path| path.as_os_str().is_empty())
    }

    /// Checks that all files are given, or none.
    ///
    /// # Errors
    /// The first that is missing.
    pub fn validate(&self) -> Result<(), Error> {
        let names = ["ca_file", "certificate_file", "key_file"];
        let mut named = names.into_iter().zip(self.paths());
        match named.find(|(_, path)| path.as_os_str().is_empty()) {
            Some((missing, _)) if !self.is_empty() => Err(Error::Incomplete { missing }),
            _ => Ok(()),
        }
    }

    pub(crate) fn paths(&self) -> [&Path; 3] {
        [&self.ca_file, &self.certificate_file, &self.key_file]
    }

    /// Reads the files.
    ///
    /// # Errors
    /// If one is missing, or cannot be read.
    pub(crate) fn read(&self) -> Result<Pem, Error> {
        let ca = Block::read(&self.ca_file)?;
        Ok(Pem {
            clients: vec![ca.clone()],
            ca,
            certificate: Block::read(&self.certificate_file)?,
            key: Block::read(&self.key_file)?,
            serving: Serving::Own,
            signers: None,
        })
    }

    /// Logs that others than the user and the group of the key's file may read it. Kubernetes and etcd do not look;
    /// it is no error, since volumes of Secrets are readable by all users of their container.
    pub(crate) fn warn_of_readers(&self) {
        let mode = fs::metadata(&self.key_file).map(|found| found.permissions().mode());
        if mode.is_ok_and(|mode| mode & OF_OTHERS != 0) {
            let file = self.key_file.display();
            warn!(%file, "other users may read this private key");
        }
    }

    /// Returns what changes with the content of the files.
    pub(crate) fn stamps(&self) -> [Option<Stamp>; 3] {
        self.paths().map(Stamp::of)
    }
}

/// The files of the certificate that a process serves, if that is another one than it connects with, in PEM. They may
/// not be there yet: until then, no handshake of a client succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingFiles {
    /// File with the certificate.
    pub certificate_file: PathBuf,
    /// File with its private key.
    pub key_file: PathBuf,
}

impl ServingFiles {
    /// Reads the files; `None` if there is no certificate yet.
    ///
    /// # Errors
    /// If one cannot be read.
    pub(crate) fn read(&self) -> Result<Option<(Block, Block)>, Error> {
        if !self.certificate_file.exists() {
            return Ok(None);
        }
        let key = Block::read(&self.key_file)?;
        Ok(Some((Block::read(&self.certificate_file)?, key)))
    }

    pub(crate) fn stamps(&self) -> [Option<Stamp>; 2] {
        [&self.certificate_file, &self.key_file].map(|path| Stamp::of(path))
    }
}

/// The version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    modified: (i64, i64),
    size: u64,
}

impl Stamp {
    /// Follows links, as volumes of Secrets have them. `None` if there is no such file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self {
            inode: found.ino(),
            modified: (found.mtime(), found.mtime_nsec()),
            size: found.size(),
        })
    }
}

/// A text and the name of its source.
#[derive(Clone)]
pub(crate) struct Block {
    pub(crate) source: String,
    pub(crate) text: Vec<u8>,
}

impl Block {
    pub(crate) fn new(source: &str, text: &str) -> Self {
        Self {
            source: source.to_owned(),
            text: text.as_bytes().to_owned(),
        }
    }

    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let file = path.display().to_string();
        match fs::read(path) {
            Ok(text) => Ok(Self { source: file, text }),
            Err(source) => Err(Error::Read { file, source }),
        }
    }
}

/// The texts of the files.
#[derive(Clone)]
pub(crate) struct Pem {
    pub(crate) ca: Block,
    /// The CAs of clients.
    pub(crate) clients: Vec<Block>,
    pub(crate) certificate: Block,
    pub(crate) key: Block,
    pub(crate) serving: Serving,
    /// The CA by which agents are accepted as servers, too.
    pub(crate) signers: Option<Block>,
}

/// The certificate for clients.
#[derive(Clone)]
pub(crate) enum Serving {
    /// The one that the process connects with.
    Own,
    /// Another one with its key, which may not be there yet.
    Other(Option<(Block, Block)>),
}
