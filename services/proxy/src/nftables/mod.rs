//! The back end of nftables: one table of this cluster, changed by transactions over [`netlink`].
//!
//! A transaction has what changes and nothing else; the table is never read. After an error, and when the table is no
//! longer there, the next transaction replaces it as a whole, which no packet sees: the kernel applies a transaction at
//! once.

mod answered;
pub(crate) mod base;
mod blocks;
mod content;
mod flows;
mod netlink;
pub(crate) mod rule;
mod script;
pub(crate) mod set;
mod sites;
mod suspects;
pub(crate) mod transaction;

use std::sync::Arc;
use std::time::Duration;

use tracing::{error, warn};

pub use answered::{Answered, is_cut_off};
pub use base::Base;
pub use blocks::Blocks;
pub use flows::StaleFlow;
pub use netlink::{Error, Socket};
pub use transaction::Transaction;

use suspects::{Suspects, Trial};

use crate::backend::{Backend, Kind};
use crate::ledger::{Changes, Delta, Ledger};
use crate::{Place, command, metrics};

/// The socket and the programs of a back end, and their deadline.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The socket of the network.
    pub socket: Socket,
    /// The program `conntrack`, with its first arguments.
    pub conntrack: Vec<String>,
    /// The time that a transaction and each run of the program have.
    pub timeout: Duration,
}

/// Changes that were not programmed.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// A transaction was not made.
    #[error(transparent)]
    Transaction(#[from] Error),
    /// There is no route for the addresses of Services.
    #[error("no route for the ranges of Services: {0}")]
    Route(#[from] command::Error),
}

/// The back end.
pub struct Nftables {
    base: Base,
    tools: Tools,
    ledger: Ledger,
    blocks: Blocks,
    /// The place that is programmed; `None` if the table is to be replaced.
    place: Option<Arc<Place>>,
    flows: flows::Flows,
    suspects: Suspects,
    answered: Answered,
}

impl Nftables {
    /// Returns a back end that has programmed nothing.
    pub fn new(base: Base, tools: Tools) -> Self {
        Self {
            flows: flows::Flows::new(tools.conntrack.clone(), tools.timeout),
            base,
            tools,
            ledger: Ledger::default(),
            blocks: Blocks::default(),
            place: None,
            suspects: Suspects::default(),
            answered: Answered::default(),
        }
    }

    /// Answers for ranges, once the table is there.
    #[must_use]
    pub fn answering(self, answered: Answered) -> Self {
        Self { answered, ..self }
    }

    /// Removes the table with this name, if it is there.
    ///
    /// # Errors
    /// If the kernel refuses, or takes longer than `limit`.
    pub async fn remove(table: &str, socket: &Socket, limit: Duration) -> Result<(), Error> {
        socket.commit(&Base::remove(table), limit).await
    }
}

impl Nftables {
    /// Programs everything but those of the changed Services that the kernel refuses. They come back with their next
    /// change.
    async fn without_refused(&mut self, place: &Place) -> Result<(), Error> {
        let trial = Trial {
            base: &self.base,
            tools: &self.tools,
            place,
        };
        let refused = self.suspects.refused(&self.ledger, &trial).await?;
        for (service, error) in &refused {
            error!(%service, %error, "a Service is refused, and is not programmed until it changes");
        }
        metrics::REFUSED.inc_by(refused.len().try_into().unwrap_or(u64::MAX));
        let none = refused.into_iter().map(|(service, _)| (service, None));
        let delta = self.ledger.apply(none.collect());
        self.flows.remember(flows::stale(&delta));
        let whole = self.whole(place, &self.ledger.whole());
        self.commit(&whole).await
    }

    /// Returns the transaction that replaces the table, for a delta from nothing.
    fn whole(&mut self, place: &Place, delta: &Delta) -> Transaction {
        self.blocks = Blocks::default();
        self.base.whole(place, delta, &mut self.blocks)
    }

    async fn commit(&self, transaction: &Transaction) -> Result<(), Error> {
        self.tools
            .socket
            .commit(transaction, self.tools.timeout)
            .await
    }
}

impl Backend for Nftables {
    type Error = SyncError;

    async fn sync(&mut self, place: &Arc<Place>, changes: Changes) -> Result<Kind, SyncError> {
        self.suspects.note(&changes);
        let is_first = self.ledger.is_empty();
        let delta = self.ledger.apply(changes);
        let stale = flows::stale(&delta);
        let kind = match self.place.as_ref() == Some(place) {
            true if delta.is_empty() => return Ok(Kind::Nothing),
            true => Kind::Partial,
            false => Kind::Full,
        };
        let transaction = match kind {
            Kind::Full if is_first => self.whole(place, &delta),
            Kind::Full => self.whole(place, &self.ledger.whole()),
            _ => self.base.partial(&delta, &mut self.blocks),
        };
        // Until it is known that it was made, nothing is.
        self.place = None;
        self.flows.remember(stale);
        match self.commit(&transaction).await {
            // Of a transaction with changes alone, the table may be to blame: the next one replaces it.
            Err(Error::Refused { .. }) if kind == Kind::Full => self.without_refused(place).await?,
            outcome => outcome?,
        }
        self.suspects.clear();
        if kind == Kind::Full {
            self.answered.answer().await?;
        }
        self.place = Some(Arc::clone(place));
        self.flows.delete().await;
        Ok(kind)
    }

    async fn check(&mut self) -> bool {
        if self.place.is_none() {
            return false;
        }
        let probe = match self.commit(&self.base.probe()).await {
            Ok(()) => self.answered.answer().await.map_err(SyncError::from),
            Err(gone) => Err(gone.into()),
        };
        if let Err(error) = &probe {
            warn!(%error, table = self.base.table, "the table or its route is gone, and is made again");
            self.place = None;
        }
        probe.is_ok()
    }
}
