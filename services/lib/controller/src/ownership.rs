//! Ownership by selector: the owners that a child concerns, the children that an owner claims, and the writes that set
//! and remove owner references.

use setpoint_model::{Key, Meta, Selector, Target, owner};
use setpoint_proto::meta::{LabelSelector, OwnerReference};
use setpoint_proto::{ApiError, Reason, Resource};

use crate::{Client, Reader, Receipt, View};

/// A view of objects that own children of the view `C`.
pub trait Owns<C: View>: View {
    /// Returns whether the owner's selector matches the child.
    fn selects(&self, child: &C) -> bool;
}

/// A change of ownership that an owner wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// To become the controller of a child without one.
    Adopt(Target),
    /// To release a child that the selector no longer matches.
    Release(Target),
}

/// Returns the keys of the owners that a child concerns: its controller, or, for an orphan, all that select it.
pub fn owners<O: Owns<C>, C: View>(all: &Reader<O>, child: &C) -> Vec<Key> {
    let (meta, kind) = (child.meta(), <O::Object as Resource>::KIND);
    let namespace = &meta.key.namespace;
    match &meta.owner {
        Some(owner) if owner.kind == kind => vec![Key::new(namespace, &owner.name)],
        Some(_) => Vec::new(),
        None => {
            let mut owners = all.in_namespace(namespace);
            owners.retain(|owner| owner.selects(child));
            owners
                .iter()
                .map(|owner| owner.meta().key.clone())
                .collect()
        }
    }
}

/// Returns the claims of an owner on children, each with its reason.
pub fn claims<'c, O: Owns<C>, C: View>(
    owner: &O,
    children: impl IntoIterator<Item = &'c C>,
) -> impl Iterator<Item = (Claim, &'static str)> {
    children.into_iter().filter_map(move |child| {
        let meta = child.meta();
        let owned = meta.is_owned_by(&owner.meta().uid);
        match (owned, owner.selects(child)) {
            (true, false) => Some((
                Claim::Release(Target::of(meta)),
                "its labels left the selector",
            )),
            (false, true) if meta.owner.is_none() && !meta.deleting => Some((
                Claim::Adopt(Target::of(meta)),
                "an orphan that the selector matches",
            )),
            _ => None,
        }
    })
}

/// Returns the parsed selector of an owner. One that is invalid, which the gateway rejects, or missing selects nothing.
pub fn selector(selector: Option<&LabelSelector>) -> Selector {
    let parsed = selector.and_then(|selector| Selector::from_label_selector(selector).ok());
    parsed.unwrap_or_else(Selector::nothing)
}

/// Returns the reference that makes an object of the kind `O` the controller of a child.
pub fn reference<O: Resource>(owner: &Meta) -> OwnerReference {
    owner::reference(O::API_VERSION, O::KIND, owner)
}

impl Client {
    /// Makes `owner` the controller of a child, which must be the version that was seen. The owner is read first: it
    /// may have been deleted, or replaced by another object of its name, before its cache shows that.
    ///
    /// # Errors
    /// `Conflict` if the child has changed or the owner is gone.
    pub async fn adopt<O: Resource, C: Resource>(
        &self,
        owner: &Meta,
        child: &Target,
    ) -> Result<Receipt, ApiError> {
        self.ensure_alive::<O>(owner).await?;
        let adopt = |owners: &mut Vec<_>| owners.push(reference::<O>(owner));
        self.change_owners::<C>(child, adopt).await
    }

    /// Removes `owner` from the owners of a child, which must be the version that was seen.
    ///
    /// # Errors
    /// `Conflict` if the child has changed.
    pub async fn release<C: Resource>(
        &self,
        owner: &Meta,
        child: &Target,
    ) -> Result<Receipt, ApiError> {
        let release = |owners: &mut Vec<OwnerReference>| owners.retain(|it| it.uid != owner.uid);
        self.change_owners::<C>(child, release).await
    }

    /// Adopts or releases a child, as [`Self::adopt`] and [`Self::release`].
    ///
    /// # Errors
    /// `Conflict` if the child has changed or the owner is gone.
    pub async fn claim<O: Resource, C: Resource>(
        &self,
        owner: &Meta,
        claim: &Claim,
    ) -> Result<Receipt, ApiError> {
        match claim {
            Claim::Adopt(child) => self.adopt::<O, C>(owner, child).await,
            Claim::Release(child) => self.release::<C>(owner, child).await,
        }
    }

    /// Creates a child, or returns the one that an earlier attempt has created: the one of its name if `owner` controls
    /// it and `is_same` accepts it.
    ///
    /// # Errors
    /// `AlreadyExists` if another object has the name; otherwise as [`Self::create`].
    pub async fn create_or_take<C: Resource>(
        &self,
        owner: &Meta,
        child: &C,
        is_same: impl FnOnce(&C) -> bool,
    ) -> Result<Created<C>, ApiError> {
        match self.create(child).await {
            Err(error) if error.reason == Reason::AlreadyExists => {
                let taken = self.get::<C>(&Key::of(child.meta())).await?;
                let controller = owner::controller_of(taken.meta());
                let ours = controller.is_some_and(|controller| controller.uid == owner.uid);
                match ours && is_same(&taken) {
                    true => Ok(Created::Before(Receipt::of(&taken))),
                    false => Err(error),
                }
            }
            created => Ok(Created::Now(created?)),
        }
    }
}

/// The result of [`Client::create_or_take`].
#[derive(Clone, Debug, PartialEq)]
pub enum Created<C> {
    /// This attempt has created the child.
    Now(crate::Written<C>),
    /// An earlier attempt has created it.
    Before(Receipt),
}

impl<C: Resource> Created<C> {
    /// Returns the receipt for the barrier.
    pub const fn receipt(&self) -> Receipt {
        match self {
            Self::Now(written) => written.receipt(),
            Self::Before(receipt) => *receipt,
        }
    }
}
