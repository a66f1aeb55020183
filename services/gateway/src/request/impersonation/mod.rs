//! Impersonation: a request as another user, with the permissions of that, if its own user may do so.
//!
//! There are five modes, which are tried in upstream's order (KEP-5284; `endpoints/filters/impersonation`): for the
//! node that a ServiceAccount runs on, any node, a ServiceAccount, another user, and the oldest, for everybody. A mode
//! has a verb of its own on users, groups, uids and attributes; all but the oldest demand the verb of the request, too,
//! as `impersonate-on:<mode>:<verb>` on what the request is about.
//!
//! A call of gRPC names that in its message, which is not read yet when its user is resolved: only the oldest mode is
//! tried for it.

mod checks;
mod headers;
mod mode;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use http::HeaderMap;
use parking_lot::Mutex;
use setpoint_kinds::Identity;
use setpoint_proto::ApiError;

use super::Attributes;
use super::authorization::Authorizer;
use checks::Checks;
use mode::Mode;

/// The number of users whose mode is remembered.
const MAX_USERS: usize = 10_000;

/// Resolves the users that requests act as.
#[derive(Default)]
pub(crate) struct Impersonation {
    last: LastModes,
}

impl Impersonation {
    /// Returns the user that a request acts as: its own one or, if its headers say so and that may, another. Removes
    /// these headers. `asked` is what the request is about, as far as that is known.
    ///
    /// # Errors
    /// `Forbidden` if the user may not act as that one in any mode: the error of the first. `BadRequest` if the headers
    /// name no user.
    pub(crate) async fn resolve(
        &self,
        authorizer: &Authorizer,
        user: Identity,
        headers: &mut HeaderMap,
        asked: Option<&Attributes>,
    ) -> Result<Identity, ApiError> {
        let Some(wanted) = headers::take(headers)? else {
            return Ok(user);
        };
        let mut refused = None;
        for mode in self.modes(&user, asked.is_some()) {
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
                    return Ok(found);
                }
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        // The oldest mode applies to everybody.
        Err(refused.unwrap_or_else(mode::none))
    }

    /// Returns the modes to try, the one first that the user had last, as upstream: it is the one whose error is
    /// returned.
    fn modes(&self, user: &Identity, is_asked: bool) -> Vec<Mode> {
        if !is_asked {
            return vec![Mode::Legacy];
        }
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
        assert_eq!(impersonation.modes(&jane, true), Mode::ALL);
        impersonation.last.set(&jane, Mode::Legacy);
        let modes = impersonation.modes(&jane, true);
        assert_eq!(modes[0], Mode::Legacy);
        assert_eq!(modes[1..], Mode::ALL[..4]);
        assert_eq!(impersonation.modes(&jane, false), [Mode::Legacy]);
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
