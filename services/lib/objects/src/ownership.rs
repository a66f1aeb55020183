//! Writes of controllers that concern the owner of an object.

use setpoint_model::{Meta, Target, owner};
use setpoint_proto::{ApiError, Reason, Resource};

use crate::{Objects, Stored};

impl Objects {
    /// Makes `owner` the controller of a child, which must be the version that was seen.
    ///
    /// # Errors
    /// `Conflict` if the child has changed or the owner is gone.
    pub fn adopt<O: Stored, C: Stored>(
        &mut self,
        owner: &Meta,
        child: &Target,
    ) -> Result<(), ApiError> {
        let newest = self.get::<O>(&owner.key.name);
        let is_alive = newest.is_some_and(|newest| {
            let meta = Resource::meta(&newest);
            meta.uid == owner.uid && meta.deletion_timestamp.is_none()
        });
        if !is_alive {
            let message = format!("{} {} is gone", O::KIND, owner.key);
            return Err(ApiError::new(Reason::Conflict, message));
        }
        let reference = owner::reference(O::API_VERSION, O::KIND, owner);
        self.change_unchanged::<C>(child, |child| {
            Resource::meta_mut(child).owner_references.push(reference);
        })
    }

    /// Removes `owner` from the owners of a child, which must be the version that was seen.
    ///
    /// # Errors
    /// `Conflict` if the child has changed.
    pub fn release<C: Stored>(&mut self, owner: &Meta, child: &Target) -> Result<(), ApiError> {
        self.change_unchanged::<C>(child, |child| {
            let owners = &mut Resource::meta_mut(child).owner_references;
            owners.retain(|one| one.uid != owner.uid);
        })
    }

    /// Creates a child, unless `owner` controls one of this name already.
    ///
    /// # Errors
    /// `AlreadyExists` if another object has the name; otherwise as [`Self::create`].
    pub fn create_or_take<C: Stored>(&mut self, owner: &Meta, child: C) -> Result<(), ApiError> {
        let name = Resource::meta(&child).name.clone();
        match self.create(child) {
            Err(error) if error.reason == Reason::AlreadyExists => {
                let taken = self.get::<C>(&name);
                let is_ours = taken.is_some_and(|taken| {
                    let controller = owner::controller_of(Resource::meta(&taken));
                    controller.is_some_and(|controller| controller.uid == owner.uid)
                });
                if is_ours { Ok(()) } else { Err(error) }
            }
            created => created.map(drop),
        }
    }
}
