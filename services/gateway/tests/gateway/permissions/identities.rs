//! Those who ask: the users and groups of their certificates.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_model::bootstrap_token::{GROUP, JOINING_AGENTS};
use setpoint_model::users::{
    ADMINISTRATORS, NODE_PREFIX, NODES, SERVICES, SIMULATED_NODES, SIMULATED_NODES_PREFIX,
    of_service,
};
use setpoint_rbac::bootstrap::setpoint::WRITERS;

pub const MASTERS: &str = "masters";
pub const ANONYMOUS: &str = "anonymous";
/// The namespace in which users hold `admin`, `edit` and `view`.
pub const NAMESPACE: &str = "team";
/// These ClusterRoles, and the users who hold them.
pub const BOUND: [&str; 3] = ["admin", "edit", "view"];

/// A user that asks, and its groups.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The name in the table.
    pub short: String,
    pub user: String,
    pub groups: Vec<String>,
}

impl Identity {
    fn new(short: &str, user: impl Into<String>, groups: &[&str]) -> Self {
        Self {
            short: short.to_owned(),
            user: user.into(),
            groups: groups.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns the name of a service or controller, which is that of the Lease of its election.
    pub fn own_name(&self) -> &str {
        self.user.rsplit(':').next().unwrap_or_default()
    }
}

/// Returns all of them. There is one for each service and each controller.
pub fn all() -> Vec<Identity> {
    let services = WRITERS.iter().filter(|name| **name != "node-agent");
    let services = services.map(|name| {
        let short = name.strip_suffix("-controller").unwrap_or(name);
        Identity::new(short, of_service(name), &[SERVICES])
    });
    let users = BOUND.map(|name| Identity::new(name, name, &[]));
    let account = "system:serviceaccount:team:app";
    let of_accounts = ["system:serviceaccounts", "system:serviceaccounts:team"];
    let agent = format!("{SIMULATED_NODES_PREFIX}sim");
    let others = [
        Identity::new(MASTERS, "root", &[ADMINISTRATORS]),
        Identity::new("jane", "jane", &[]),
        Identity::new("account", account, &of_accounts),
        Identity::new("node", format!("{NODE_PREFIX}n1"), &[NODES]),
        Identity::new("simulated", agent, &[SIMULATED_NODES]),
        Identity::new(
            "joining",
            "system:bootstrap:abcdef",
            &[GROUP, JOINING_AGENTS],
        ),
        Identity::new(ANONYMOUS, "system:anonymous", &[]),
    ];
    services.chain(users).chain(others).collect()
}

/// Returns the member of sets that somebody is in [`NAMESPACE`] only.
pub fn in_namespace(short: &str) -> String {
    format!("{short}@{NAMESPACE}")
}

/// Returns the sets of identities that the table can name without listing them, and each one as a set: those who hold
/// a ClusterRole in [`NAMESPACE`] with this limit.
pub fn sets(identities: &[Identity]) -> BTreeMap<String, BTreeSet<String>> {
    let of = |is_one: &dyn Fn(&Identity) -> bool| -> BTreeSet<String> {
        let members = identities.iter().filter(|one| is_one(one));
        members.map(|one| one.short.clone()).collect()
    };
    let is_service = |one: &Identity| one.groups == [SERVICES];
    let announced = [SERVICES, NODES, SIMULATED_NODES];
    let announces = |one: &Identity| {
        let mut groups = one.groups.iter();
        groups.any(|group| announced.contains(&group.as_str()))
    };
    let does_not_elect = ["gateway", "controller-manager", "dns", "proxy"];
    let elects = |one: &Identity| is_service(one) && !does_not_elect.contains(&one.short.as_str());
    let named = [
        ("everyone", of(&|_| true)),
        ("authenticated", of(&|one| one.short != ANONYMOUS)),
        ("processes", of(&announces)),
        ("elected", of(&elects)),
    ];
    let named = named.map(|(name, members)| (name.to_owned(), members));
    let single = identities.iter().map(|one| {
        let member = match BOUND.contains(&one.short.as_str()) {
            true => in_namespace(&one.short),
            false => one.short.clone(),
        };
        (one.short.clone(), BTreeSet::from([member]))
    });
    single.chain(named).collect()
}
