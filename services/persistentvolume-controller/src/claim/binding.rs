//! The state of a claim's binding, from the claim and the volume that it names.

use std::sync::Arc;

use setpoint_model::volume::{best, satisfies};

use super::World;
use crate::Notice;
use crate::volume::VolumeView;

/// The state of a claim's binding.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// No volume is known that it could be bound to.
    Open,
    /// It has to wait; the Event says why.
    Blocked(Notice),
    /// It is to be bound to this volume, or is bound in part.
    Chosen(Arc<VolumeView>),
    /// It and the volume name each other.
    Complete(Arc<VolumeView>),
    /// It was bound, and its volume is gone; the Event says how.
    Lost(Notice),
}

impl Binding {
    /// Returns the state of the claim's binding.
    pub fn of(world: &World) -> Self {
        match world.claim.claim.is_bound() {
            true => Self::bound(world),
            false if world.claim.claim.volume.is_empty() => Self::free(world),
            false => Self::named(world),
        }
    }

    fn bound(world: &World) -> Self {
        let claim = &world.claim.claim;
        let lost = |reason, message: &str| Self::Lost(Notice::warning(reason, message));
        if claim.volume.is_empty() {
            let message =
                "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!";
            return lost("ClaimLost", message);
        }
        let Some(view) = &world.named else {
            let message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
            return lost("ClaimLost", message);
        };
        let volume = &view.volume;
        if volume.is_bound_to(claim) {
            return Self::Complete(view.clone());
        }
        if volume.claim.is_none() || volume.is_reserved_for(claim) {
            return Self::Chosen(view.clone());
        }
        let message = "Two claims are bound to the same volume, this one is bound incorrectly";
        lost("ClaimMisbound", message)
    }

    fn free(world: &World) -> Self {
        let volumes = world.volumes.iter().map(|volume| &**volume);
        let best = best(&world.claim.claim, volumes, None, world.is_delayed());
        let same =
            |volume: &&Arc<VolumeView>| best.is_some_and(|best| best.volume == volume.volume);
        match world.volumes.iter().find(same) {
            Some(volume) => Self::Chosen(volume.clone()),
            None => Self::Open,
        }
    }

    fn named(world: &World) -> Self {
        let claim = &world.claim.claim;
        let Some(view) = &world.named else {
            let message = format!(
                "volume {:?} requested by the claim does not exist",
                claim.volume
            );
            return Self::Blocked(Notice::normal("FailedBinding", message));
        };
        let volume = &view.volume;
        if volume.claim.is_none() {
            return match satisfies(volume, claim) {
                Ok(()) => Self::Chosen(view.clone()),
                Err(problem) => {
                    let name = volume.name();
                    let message = format!("Cannot bind to requested volume {name:?}: {problem}");
                    Self::Blocked(Notice::warning("VolumeMismatch", message))
                }
            };
        }
        if volume.is_reserved_for(claim) {
            return Self::Chosen(view.clone());
        }
        let name = volume.name();
        let message = format!("volume {name:?} already bound to a different claim.");
        Self::Blocked(Notice::warning("FailedBinding", message))
    }
}
