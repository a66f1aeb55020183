//! The back end of nftables: one table of this cluster, changed by the transactions of the program `nft`.
//!
//! A transaction has what changes and nothing else; the table is never read. After an error, and when the table is no
//! longer there, the next transaction replaces it as a whole, which no packet sees: the kernel applies a transaction at
//! once.

mod base;
mod blocks;
mod command;
mod content;
mod flows;
mod script;
mod sites;
mod suspects;

use std::sync::Arc;
use std::time::Duration;

use tracing::{error, warn};

pub use base::Base;
pub use blocks::Blocks;
pub use command::Error;
pub use flows::StaleFlow;

use suspects::{Suspects, Trial};

use crate::backend::{Backend, Kind};
use crate::ledger::{Changes, Ledger};
use crate::{Place, metrics};

/// The programs and their deadline.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `nft`, with its first arguments.
    pub nft: Vec<String>,
    /// `conntrack`, with its first arguments.
    pub conntrack: Vec<String>,
    /// The time that each of them has.
    pub timeout: Duration,
}

/// The back end.
pub struct Nftables {
    base: Base,
    programs: Programs,
    ledger: Ledger,
    blocks: Blocks,
    /// The place that is programmed; `None` if the table is to be replaced.
    place: Option<Arc<Place>>,
    flows: flows::Flows,
    suspects: Suspects,
}

impl Nftables {
    /// Returns a back end that has programmed nothing.
    pub fn new(base: Base, programs: Programs) -> Self {
        Self {
            flows: flows::Flows::new(programs.conntrack.clone(), programs.timeout),
            base,
            programs,
            ledger: Ledger::default(),
            blocks: Blocks::default(),
            place: None,
            suspects: Suspects::default(),
        }
    }

    /// Removes the table with this name, if it is there.
    ///
    /// # Errors
    /// If `nft` fails.
    pub async fn remove(table: &str, programs: &Programs) -> Result<(), Error> {
        execute(programs, Base::remove(table)).await
    }
}

impl Nftables {
    /// Programs everything but those of the changed Services that the kernel refuses. They come back with their next
    /// change.
    async fn without_refused(&mut self, place: &Place) -> Result<(), Error> {
        let trial = Trial {
            base: &self.base,
            programs: &self.programs,
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
        self.blocks = Blocks::default();
        let whole = self.ledger.whole();
        let script = self.base.whole(place, &whole, &mut self.blocks);
        execute(&self.programs, script).await
    }
}

/// Makes a transaction.
pub(crate) async fn execute(programs: &Programs, script: String) -> Result<(), Error> {
    let run = command::run(&programs.nft, &["-f", "-"], script, programs.timeout);
    run.await.map(|_| ())
}

impl Backend for Nftables {
    type Error = Error;

    async fn sync(&mut self, place: &Arc<Place>, changes: Changes) -> Result<Kind, Error> {
        self.suspects.note(&changes);
        let delta = self.ledger.apply(changes);
        let stale = flows::stale(&delta);
        let kind = match self.place.as_ref() == Some(place) {
            true if delta.is_empty() => return Ok(Kind::Nothing),
            true => Kind::Partial,
            false => Kind::Full,
        };
        let script = match kind {
            Kind::Full => {
                self.blocks = Blocks::default();
                let whole = self.ledger.whole();
                self.base.whole(place, &whole, &mut self.blocks)
            }
            _ => self.base.partial(&delta, &mut self.blocks),
        };
        // Until it is known that it was made, nothing is.
        self.place = None;
        self.flows.remember(stale);
        match execute(&self.programs, script).await {
            // Of a transaction with changes alone, the table may be to blame: the next one replaces it.
            Err(Error::Failed { .. }) if kind == Kind::Full => self.without_refused(place).await?,
            outcome => outcome?,
        }
        self.suspects.clear();
        self.place = Some(Arc::clone(place));
        self.flows.delete().await;
        Ok(kind)
    }

    async fn check(&mut self) -> bool {
        if self.place.is_none() {
            return false;
        }
        let probe = execute(&self.programs, self.base.probe()).await;
        if let Err(error) = &probe {
            warn!(%error, table = self.base.table, "the table is gone, and is made again");
            self.place = None;
        }
        probe.is_ok()
    }
}
