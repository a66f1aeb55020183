//! The authorizers that are in force, in the order in which they are asked.

use std::sync::Arc;

use setpoint_apiserver_config::authorization::{Configuration, Kind};
use setpoint_kinds::Identity;

use super::webhook::Webhook;
use super::{ALLOWED, Decision, Mode, is_master};

/// The authorizers.
#[derive(Clone, Default)]
pub(super) struct Chain(Arc<[Member]>);

/// An authorizer.
#[derive(Clone)]
pub(super) enum Member {
    Mode(Mode),
    Webhook(Arc<Webhook>),
}

/// Checks the files that a configuration names.
///
/// # Errors
/// If one cannot be read or is wrong, with the path of its field.
pub(crate) fn check(configuration: Configuration) -> Result<(), String> {
    Chain::of_configuration(configuration).map(drop)
}

impl Chain {
    pub(super) fn of_modes(modes: &[Mode]) -> Self {
        Self(modes.iter().copied().map(Member::Mode).collect())
    }

    /// Returns the authorizers of a configuration.
    ///
    /// # Errors
    /// If the kubeconfig file of a webhook cannot be read or is wrong, with the path of its field.
    pub(super) fn of_configuration(configuration: Configuration) -> Result<Self, String> {
        let members = configuration.authorizers.into_iter().enumerate();
        let members = members.map(|(index, authorizer)| {
            Ok(match authorizer.kind {
                Kind::AlwaysAllow => Member::Mode(Mode::AlwaysAllow),
                Kind::AlwaysDeny => Member::Mode(Mode::AlwaysDeny),
                Kind::Node => Member::Mode(Mode::Node),
                Kind::Rbac => Member::Mode(Mode::Rbac),
                Kind::Webhook(settings) => {
                    let path = settings.kubeconfig.display().to_string();
                    let webhook = Webhook::new(authorizer.name, *settings);
                    Member::Webhook(Arc::new(webhook.map_err(|error| {
                        format!(
                            "authorizers[{index}].connectionInfo.kubeConfigFile: Invalid value: {path:?}: error loading \
                             file: {error}"
                        )
                    })?))
                }
            })
        });
        let members = members.collect::<Result<Vec<_>, String>>()?;
        Ok(Self(members.into()))
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Member> {
        self.0.iter()
    }

    pub(super) fn modes(&self) -> impl Iterator<Item = Mode> {
        self.members().filter_map(|member| match member {
            Member::Mode(mode) => Some(*mode),
            Member::Webhook(_) => None,
        })
    }

    pub(super) fn has(&self, wanted: Mode) -> bool {
        self.modes().any(|mode| mode == wanted)
    }

    pub(super) fn has_webhooks(&self) -> bool {
        self.members()
            .any(|member| matches!(member, Member::Webhook(_)))
    }

    /// Returns whether the first authorizer allows everything.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.0.first(), None | Some(Member::Mode(Mode::AlwaysAllow)))
    }

    /// Returns the decision about everything that a user may ask for, if there is one.
    pub(super) fn without_question(&self, user: &Identity) -> Option<Decision> {
        if self.is_open() {
            return Some(Decision::allowed(ALLOWED));
        }
        is_master(user).then(|| Decision::allowed(""))
    }
}
