//! The modes of authorization.

use std::collections::HashSet;

use setpoint_apiserver_config::authorization::{Configuration, Kind};

/// A mode of authorization, by the name that it has in upstream's flag `--authorization-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Allows every request.
    AlwaysAllow,
    /// Allows no request.
    AlwaysDeny,
    /// Allows nodes what they need for themselves and for the Pods that are bound to them.
    Node,
    /// Allows the requests that roles and bindings allow.
    Rbac,
}

impl Mode {
    const ALL: [(&str, Self); 4] = [
        ("AlwaysAllow", Self::AlwaysAllow),
        ("AlwaysDeny", Self::AlwaysDeny),
        ("Node", Self::Node),
        ("RBAC", Self::Rbac),
    ];

    /// Returns the modes among the authorizers of a configuration.
    pub(crate) fn of(configuration: &Configuration) -> Vec<Self> {
        let kinds = configuration.authorizers.iter().map(|one| &one.kind);
        let modes = kinds.filter_map(|kind| match kind {
            Kind::AlwaysAllow => Some(Self::AlwaysAllow),
            Kind::AlwaysDeny => Some(Self::AlwaysDeny),
            Kind::Node => Some(Self::Node),
            Kind::Rbac => Some(Self::Rbac),
            Kind::Webhook(_) => None,
        });
        modes.collect()
    }

    /// Reads the names of modes.
    ///
    /// # Errors
    /// If there is none, one is unknown, or one is there twice.
    pub fn parse_all(names: &[String]) -> Result<Vec<Self>, String> {
        let modes: Result<Vec<Self>, String> = names.iter().map(|name| Self::parse(name)).collect();
        let modes = modes?;
        let distinct: HashSet<_> = modes.iter().collect();
        match modes.len() {
            0 => Err("authorization.modes must not be empty".into()),
            number if number != distinct.len() => {
                Err("authorization.modes must name each mode once".into())
            }
            _ => Ok(modes),
        }
    }

    fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, mode)| mode).ok_or_else(|| {
            let known = Self::ALL.map(|(known, _)| known).join(", ");
            format!("authorization.modes: {name:?} is not a valid mode; there are {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(names: &[&str]) -> Result<Vec<Mode>, String> {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        Mode::parse_all(&names)
    }

    #[test]
    fn modes_have_upstreams_names() {
        let all = parse(&["Node", "RBAC", "AlwaysAllow", "AlwaysDeny"]);
        assert_eq!(
            all.unwrap(),
            [Mode::Node, Mode::Rbac, Mode::AlwaysAllow, Mode::AlwaysDeny]
        );
    }

    #[test]
    fn a_list_of_modes_that_means_nothing_is_refused() {
        let unknown = parse(&["RBAC", "rbac"]).unwrap_err();
        assert_eq!(
            unknown,
            "authorization.modes: \"rbac\" is not a valid mode; there are AlwaysAllow, AlwaysDeny, Node, RBAC"
        );
        assert!(parse(&[]).unwrap_err().contains("empty"));
        assert!(parse(&["RBAC", "RBAC"]).unwrap_err().contains("once"));
    }
}
