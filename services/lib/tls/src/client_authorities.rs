//! The CAs by which clients are known.

use std::path::PathBuf;

use parking_lot::RwLock;

use crate::Error;
use crate::files::{Block, Pem, Stamp};

/// The CAs of client certificates. By default they are those of the CA file.
#[derive(Debug, Default)]
pub(crate) struct ClientAuthorities(RwLock<Chosen>);

#[derive(Clone, Debug, Default)]
struct Chosen {
    /// The file that takes the place of the CA file.
    file: Option<PathBuf>,
    /// Further certificates in PEM.
    further: String,
}

impl ClientAuthorities {
    /// Takes the CAs of this file instead of those of the CA file, if `change` succeeds then.
    ///
    /// # Errors
    /// That of `change`; nothing is changed.
    pub(crate) fn read_from(
        &self,
        file: PathBuf,
        change: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let chosen = Chosen {
            file: Some(file),
            ..self.0.read().clone()
        };
        self.choose(chosen, change)
    }

    /// Adds these CAs in PEM, in the place of those of an earlier call, if `change` succeeds then.
    ///
    /// # Errors
    /// That of `change`; nothing is changed.
    pub(crate) fn add(
        &self,
        bundle: &str,
        change: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let chosen = Chosen {
            further: bundle.to_owned(),
            ..self.0.read().clone()
        };
        self.choose(chosen, change)
    }

    fn choose(
        &self,
        chosen: Chosen,
        change: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let before = std::mem::replace(&mut *self.0.write(), chosen);
        change().inspect_err(|_| *self.0.write() = before)
    }

    /// Returns the texts with the CAs of clients in the place of those of the CA file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn of(&self, mut pem: Pem) -> Result<Pem, Error> {
        let chosen = self.0.read().clone();
        if let Some(file) = &chosen.file {
            pem.clients = vec![Block::read(file)?];
        }
        if !chosen.further.is_empty() {
            let further = Block::new("the further CAs of clients", &chosen.further);
            pem.signers = Some(further.clone());
            pem.clients.push(further);
        }
        Ok(pem)
    }

    /// Returns what changes with the content of the file; `None` without one.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        self.0.read().file.as_deref().and_then(Stamp::of)
    }
}
