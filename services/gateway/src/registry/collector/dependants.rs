//! Who belongs to whom.

use std::collections::HashMap;

use setpoint_model::Key;

use super::member::Member;

/// Dependants by their owner's uid. One that has changed hands may still stand with its old owner: whoever acts on
/// it looks at it again.
#[derive(Default)]
pub(super) struct Dependants {
    by_owner: HashMap<String, HashMap<Place, Member>>,
}

/// A kind, by its unique name, and a key.
type Place = (&'static str, Key);

fn place(member: &Member) -> Place {
    (&member.kind.type_url, member.key.clone())
}

impl Dependants {
    /// Notes a member with its owners, if it has any. Was one of them not yet known to be its owner?
    pub fn add(&mut self, member: &Member) -> bool {
        let mut new = false;
        for owner in &member.owners {
            let family = self.by_owner.entry(owner.uid.clone()).or_default();
            new |= family.insert(place(member), member.clone()).is_none();
        }
        new
    }

    /// Forgets a member, and answers with its owners that are known here, as far as they can be named.
    pub fn remove(&mut self, member: &Member) -> Vec<Member> {
        let mut owners = Vec::new();
        for owner in &member.owners {
            if let Some(family) = self.by_owner.get_mut(&owner.uid) {
                family.remove(&place(member));
            }
            owners.extend(member.place_of(owner).map(|(kind, key)| Member {
                kind,
                key,
                uid: owner.uid.clone(),
                owners: Vec::new(),
                finalizers: Vec::new(),
                ending: false,
            }));
        }
        owners
    }

    /// Forgets an owner, and answers with those who belonged to it.
    pub fn remove_owner(&mut self, uid: &str) -> Vec<Member> {
        let family = self.by_owner.remove(uid).unwrap_or_default();
        family.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use setpoint_codec::kinds;
    use setpoint_proto::meta::OwnerReference;

    use super::*;

    fn pod(name: &str, owner: &str) -> Member {
        Member {
            kind: kinds().by_resource("pods").unwrap(),
            key: Key::new("default", name),
            uid: name.into(),
            owners: vec![OwnerReference {
                api_version: "apps/v1".into(),
                kind: "ReplicaSet".into(),
                name: owner.into(),
                uid: owner.into(),
                ..Default::default()
            }],
            finalizers: Vec::new(),
            ending: false,
        }
    }

    #[test]
    fn an_owner_that_goes_leaves_its_dependants_behind() {
        let mut all = Dependants::default();
        assert!(all.add(&pod("a", "web")));
        assert!(!all.add(&pod("a", "web")));
        assert!(all.add(&pod("b", "web")));
        assert!(all.add(&pod("c", "db")));
        assert_eq!(all.remove_owner("web").len(), 2);
        assert_eq!(all.remove_owner("web").len(), 0);
        assert_eq!(all.remove_owner("db").len(), 1);
    }

    #[test]
    fn a_dependant_that_goes_names_its_owners() {
        let mut all = Dependants::default();
        all.add(&pod("a", "web"));
        let owners = all.remove(&pod("a", "web"));
        assert_eq!(owners[0].key, Key::new("default", "web"));
        assert_eq!(owners[0].kind.kind, "ReplicaSet");
        assert!(all.remove_owner("web").is_empty());
    }
}
