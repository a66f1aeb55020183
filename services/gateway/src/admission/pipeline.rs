//! The order of a write: one for create, update, every kind of patch, delete, connections and subresources, whether a
//! request comes by HTTP, by gRPC or from the gateway's own loops.
//!
//! ```text
//! defaults ─▶ admit ─▶ mutating policies and webhooks ─▶ prepare ─▶ validate ─▶ check
//!          ─▶ validating policies and webhooks ─▶ reserve ─▶ commit
//! ```
//!
//! | step | what happens | by |
//! |---|---|---|
//! | defaults | the object of the request with what its user left out; for an update, made of the current object | [`Draft`] |
//! | admit | completed from other objects, or refused | [`Plugins`] |
//! | mutate | changed by policies, then webhooks, in the order of their names | [`Chain`] |
//! | prepare | what a client may not set is removed or restored | [`Draft`] |
//! | validate | the rules of its kind, without other objects | [`Draft`] |
//! | check | the rules that depend on other objects | [`Plugins`] |
//! | validate by hooks | policies, then webhooks, which see what will be stored | [`Chain`] |
//! | reserve | addresses, quota, a lease term: conditions of the transaction, nothing is written | [`Plugins`] |
//! | commit | one transaction of the object and all that is reserved for it | [`Draft`] |
//!
//! A step that fails ends the write, and nothing is left to undo: only the last one writes. A conflict of the commit is
//! resolved by its draft: a create reserves again, and an update begins again from the request, with the new current
//! object.

use std::future::Future;

use setpoint_codec::Object;
use setpoint_kinds::Target;
use setpoint_kinds::validation::metadata;
use setpoint_proto::ApiError;
use setpoint_store::cache::AtLeast;

use super::{Attributes, Chain, Plugins, Reservation};
use crate::admission::Admission;

/// The effect of a commit on the stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It is written.
    Writes,
    /// It is removed.
    Removes,
    /// Nothing: a connection, or a request to do something, such as an eviction, which consists of other writes.
    Nothing,
}

/// The end of an attempt to commit.
pub(crate) enum Committed<D: Draft> {
    /// There was an outcome, which may be an error.
    Ended(D::Outcome),
    /// Something that was reserved has changed meanwhile: reserve it again.
    Again(D),
}

/// A write that has not been committed: the parts of the order that depend on its verb.
pub(crate) trait Draft: Send + Sized {
    /// The outcome of the commit.
    type Outcome: Send;

    /// Returns the target that policies and webhooks select the request by; `None` for a part of a request that they
    /// have admitted.
    fn hooked(&self) -> Option<&Target>;

    /// Makes the object of the write.
    ///
    /// # Errors
    /// If the request does not fit its target or the current object.
    fn set_defaults(&mut self) -> impl Future<Output = Result<(), ApiError>> + Send;

    /// Returns the request as plugins see it, without the object.
    fn request(&self) -> Attributes<'_>;

    /// Returns the object.
    fn object(&self) -> &dyn Object;

    /// Returns the request and, apart from it, the object.
    fn parts(&mut self) -> (Attributes<'_>, &mut dyn Object);

    /// Shows the request to mutating policies and webhooks in its form, and takes over what they have changed.
    ///
    /// # Errors
    /// If one of them denies it, or has made something of it that cannot be taken over.
    fn mutate(
        &mut self,
        chain: &mut Chain<'_>,
    ) -> impl Future<Output = Result<(), ApiError>> + Send;

    /// Removes or restores what the client may not set.
    ///
    /// # Errors
    /// If the object is not that of the target.
    fn prepare(&mut self) -> Result<(), ApiError>;

    /// Validates the object, and counts its generation.
    ///
    /// # Errors
    /// `Invalid`.
    fn validate(&mut self) -> impl Future<Output = Result<(), ApiError>> + Send;

    /// Shows the request to validating policies and webhooks in its form.
    ///
    /// # Errors
    /// If one of them denies it.
    fn validate_by(
        &mut self,
        chain: &mut Chain<'_>,
    ) -> impl Future<Output = Result<(), ApiError>> + Send;

    /// Returns the warnings of its kind about a valid object.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns what the commit does to the stored object.
    fn effect(&self) -> Effect;

    /// Commits the object and what is reserved for it in one transaction.
    fn commit(self, reservation: Reservation) -> impl Future<Output = Committed<Self>> + Send;
}

/// The outcome of the commit of a write that was admitted.
pub(crate) struct Passed<T> {
    pub outcome: T,
    pub warnings: Vec<String>,
}

/// Runs a write through all steps.
///
/// # Errors
/// That of the step before the commit that fails. Errors of the commit are in its outcome: whether a write may be
/// repeated depends on whether it may have been made.
pub(crate) async fn run<D: Draft>(
    admission: &Admission,
    mut draft: D,
) -> Result<Passed<D::Outcome>, ApiError> {
    let mut chain = Chain::of(admission, draft.hooked()).await?;
    let plugins = admission.plugins();
    if let Err(error) = admit(plugins, &mut chain, &mut draft).await {
        return Err(chain.refused(error));
    }
    let mut at = AtLeast::Any;
    loop {
        let reservation = match reserve(plugins, &mut draft, at).await {
            Ok(reservation) => reservation,
            Err(error) => return Err(chain.refused(error)),
        };
        draft = match draft.commit(reservation).await {
            Committed::Again(draft) => draft,
            Committed::Ended(outcome) => {
                let warnings = chain.warnings;
                return Ok(Passed { outcome, warnings });
            }
        };
        at = AtLeast::Newest;
    }
}

/// Runs the steps that decide whether a write is made, and of what.
async fn admit<D: Draft>(
    plugins: &Plugins,
    chain: &mut Chain<'_>,
    draft: &mut D,
) -> Result<(), ApiError> {
    draft.set_defaults().await?;
    chain.warnings.extend(remove_duplicate_owners(draft, ""));
    let (request, object) = draft.parts();
    plugins.admit(request, object).await?;
    if chain.mutates() {
        draft.mutate(chain).await?;
        let after = " after mutating admission happens";
        let duplicates = remove_duplicate_owners(draft, after);
        chain.warnings.extend(duplicates);
    }
    draft.prepare()?;
    draft.validate().await?;
    chain.warnings.extend(draft.warnings());
    let request = draft.request().with_object(Some(draft.object()));
    plugins.check(request, &mut chain.warnings).await?;
    if !chain.is_empty() {
        draft.validate_by(chain).await?;
    }
    Ok(())
}

/// Removes owners that an object lists twice. Returns the warning. A request that stores nothing may have no metadata.
fn remove_duplicate_owners<D: Draft>(draft: &mut D, after: &str) -> Option<String> {
    if draft.effect() == Effect::Nothing {
        return None;
    }
    metadata::remove_duplicate_owners(draft.parts().1.meta_mut(), after)
}

/// Reserves what the commit of a draft needs.
async fn reserve<D: Draft>(
    plugins: &Plugins,
    draft: &mut D,
    at: AtLeast,
) -> Result<Reservation, ApiError> {
    match draft.effect() {
        Effect::Writes => {
            let (request, object) = draft.parts();
            plugins.reserve(request, object, at).await
        }
        Effect::Removes => plugins.release(draft.request()).await,
        Effect::Nothing => Ok(Reservation::default()),
    }
}
