//! The cascade that a round belongs to, as its writes pass it on.

use std::future::Future;

use setpoint_proto::{Cause, Lineage};

tokio::task_local! {
    static LINEAGE: Lineage;
}

/// Does `work` as what follows from the first of these causes: everything that it writes is one write deeper.
///
/// Work that is spawned inside is not part of it.
pub async fn after<F: Future>(causes: &[Cause], work: F) -> F::Output {
    match causes.first() {
        Some(cause) => LINEAGE.scope(Lineage::after(cause), work).await,
        None => work.await,
    }
}

/// Where writes made now stand; where a cascade begins, nothing is known.
pub(crate) fn lineage() -> Lineage {
    LINEAGE.try_with(Lineage::clone).unwrap_or_default()
}
