//! The port to a back end, which makes packets reach endpoints.

use std::fmt::Display;
use std::sync::Arc;

use crate::Place;
use crate::ledger::Changes;

/// The extent of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing had changed.
    Nothing,
    /// The changes alone.
    Partial,
    /// Everything.
    Full,
}

impl Kind {
    /// Returns its name in spans and log lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "noop",
            Self::Partial => "partial",
            Self::Full => "full",
        }
    }
}

/// Programs Services.
pub trait Backend: Send {
    /// The error of a transaction that was not made.
    type Error: Display + Send;

    /// Programs Services in one transaction. Those that are not named stay as they were.
    ///
    /// After an error the changes are not lost: the next call, perhaps with no changes, programs everything anew.
    fn sync(
        &mut self,
        place: &Arc<Place>,
        changes: Changes,
    ) -> impl Future<Output = Result<Kind, Self::Error>> + Send;

    /// Returns whether what was programmed is still there. If not, the next [`Backend::sync`] programs everything anew.
    fn check(&mut self) -> impl Future<Output = bool> + Send;

    /// Ends what ends with the process, in the time that it has. By default that is nothing: what was programmed stays.
    fn end(&mut self) -> impl Future<Output = ()> + Send {
        async {}
    }
}
