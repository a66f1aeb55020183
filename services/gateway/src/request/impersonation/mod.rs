//! Impersonation: a request as another user, with the permissions of that, if its own user may do so.
//!
//! There are five modes, which are tried in upstream's order (KEP-5284; `endpoints/filters/impersonation`): for the
//! node that a ServiceAccount runs on, any node, a ServiceAccount, another user, and the oldest, for everybody. A mode
//! has a verb of its own on users, groups, uids and attributes; all but the oldest demand the verb of the request, too,
//! as `impersonate-on:<mode>:<verb>` on what the request is about.
//!
//! A call of gRPC names that in its message, so that its user is resolved when that has been read.

mod checks;
mod headers;
mod mode;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use http::HeaderMap;
use parking_lot::Mutex;
use setpoint_kinds::Identity;
use setpoint_proto::{ApiError, Reason};

use super::Attributes;
use super::audit;
use super::authorization::{Authorizer, record};
use checks::Checks;
use mode::Mode;

/// The number of users whose mode is remembered.
const MAX_USERS: usize = 10_000;

/// The user of a request, and the one that it acts as.
#[derive(Clone, Debug)]
pub(crate) enum Actor {
    /// The user itself.
    Own(Identity),
    /// Another one, if the user may.
    Other { user: Identity, wanted: Identity },
}

impl Actor {
    /// Returns the user itself.
    pub(crate) fn user(&self) -> &Identity {
        let (Self::Own(user) | Self::Other { user, .. }) = self;
        user
    }

    /// Returns what the headers of a request of a user say, and removes those of impersonation.
    ///
    /// # Errors
    /// `BadRequest` if the headers name no user.
    pub(crate) fn of(user: Identity, headers: &mut HeaderMap) -> Result<Self, ApiError> {
        Ok(match headers::take(headers)? {
            None => Self::Own(user),
            Some(wanted) => Self::Other { user, wanted },
        })
    }
}

/// Resolves the users that requests act as.
#[derive(Default)]
pub(crate) struct Impersonation {
    last: LastModes,
}

impl Impersonation {
    /// Returns the user that a request acts as. `asked` is what the request is about. The modes are tried, and count as
    /// one authorization together.
    ///
    /// # Errors
    /// `Forbidden` if the user may not act as the other one in any mode: the error of the first.
    pub(crate) async fn resolve(
        &self,
        authorizer: &Authorizer,
        actor: Actor,
        asked: &[Attributes],
    ) -> Result<Identity, ApiError> {
        let (user, wanted) = match actor {
            Actor::Own(user) => return Ok(user),
            Actor::Other { user, wanted } => (user, wanted),
        };
        let mut refused = None;
        for mode in self.modes(&user) {
            if !mode.applies(&wanted, &user) {
                continue;
            }
            let checks = Checks {
                mode,
                authorizer,
                user: &user,
            };
            match checks.run(&wanted, asked).await {
                Ok(found) => {
                    self.last.set(&user, mode);
                    record::allowed();
                    let constraint = (mode != Mode::Legacy).then(|| mode.verb());
                    audit::impersonated(&found, constraint);
                    return Ok(found);
                }
                // No mode gets another answer from the store.
                Err(error) if error.reason != Reason::Forbidden => {
                    record::failed();
                    return Err(error);
                }
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        record::refused(&user, &checks::oldest_question(&wanted.name), false);
        // The oldest mode applies to everybody.
        Err(refused.unwrap_or_else(mode::none))
    }

    /// Returns the modes to try, the one first that the user had last, as upstream: it is the one whose error is
    /// returned.
    fn modes(&self, user: &Identity) -> Vec<Mode> {
        let last = self.last.get(user);
        let others = Mode::ALL.into_iter().filter(|mode| Some(*mode) != last);
        last.into_iter().chain(others).collect()
    }
}

/// The mode that each user had last, by the hash of its name: a collision changes no more than an order.
#[derive(Default)]
struct LastModes {
    modes: Mutex<HashMap<u64, Mode>>,
    hashes: RandomState,
}

impl LastModes {
    fn get(&self, user: &Identity) -> Option<Mode> {
        let hash = self.hashes.hash_one(&user.name);
        self.modes.lock().get(&hash).copied()
    }

    fn set(&self, user: &Identity, mode: Mode) {
        let hash = self.hashes.hash_one(&user.name);
        let mut modes = self.modes.lock();
        if modes.len() >= MAX_USERS && !modes.contains_key(&hash) {
            modes.clear();
        }
        modes.insert(hash, mode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: String) -> Identity {
        Identity {
            name,
            ..Identity::default()
        }
    }

    #[test]
    fn the_mode_that_a_user_had_last_is_tried_first() {
        let impersonation = Impersonation::default();
        let jane = named("jane".into());
        assert_eq!(impersonation.modes(&jane), Mode::ALL);
        impersonation.last.set(&jane, Mode::Legacy);
        let modes = impersonation.modes(&jane);
        assert_eq!(modes[0], Mode::Legacy);
        assert_eq!(modes[1..], Mode::ALL[..4]);
    }

    #[test]
    fn the_number_of_remembered_users_is_bounded() {
        let last = LastModes::default();
        for number in 0..=MAX_USERS {
            last.set(&named(number.to_string()), Mode::UserInfo);
        }
        let remembered = last.modes.lock().len();
        assert_eq!(remembered, 1);
    }
}
