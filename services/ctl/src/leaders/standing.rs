//! Who leads a service and who stands by, as the Leases say.

use jiff::Timestamp;
use serde::Serialize;
use setpoint_proto::coordination::Lease;

/// The namespace of the Leases for which services contend.
pub const TERMS: &str = "setpoint-system";
/// The namespace of the Leases that say who is there.
pub const REPLICAS: &str = "setpoint-replicas";
/// The label that says which service a replica is of.
const SERVICE: &str = "setpoint.dev/service";
/// A replica shows itself every ten seconds; one that missed that is worth a word.
const SILENT: f64 = 15.0;

/// A service that elects its leader.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// Its name, which is also that of its Lease.
    pub service: String,
    /// Who holds the Lease: the instance. `None` after it was given back.
    pub leader: Option<String>,
    /// The same with what tells its terms apart, as it stands in the Lease.
    pub identity: Option<String>,
    /// The term of the Lease, as the gateway counts them: what fences name.
    pub term: u64,
    /// Since the holder last renewed.
    pub lease_age_seconds: Option<f64>,
    /// When others may take it.
    pub lease_duration_seconds: i32,
    /// Who else is there, in order.
    pub standbys: Vec<Standby>,
}

/// A replica that does not lead.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standby {
    /// Which.
    pub instance: String,
    /// Since it last showed itself.
    pub age_seconds: f64,
}

/// Everyone's standing, in the order of their names: from the Leases that are contended for, and those of the replicas.
pub fn standings<'a>(
    terms: impl IntoIterator<Item = (&'a Lease, u64)>,
    replicas: &[&Lease],
    now: Timestamp,
) -> Vec<Standing> {
    let standings = terms
        .into_iter()
        .map(|(lease, term)| standing(lease, term, replicas, now));
    let mut standings: Vec<_> = standings.collect();
    standings.sort_by(|a, b| a.service.cmp(&b.service));
    standings
}

fn standing(lease: &Lease, term: u64, replicas: &[&Lease], now: Timestamp) -> Standing {
    let service = lease.metadata.name.clone();
    let identity = holder(lease);
    let leader = identity.map(instance);
    let of_service = |replica: &&&Lease| replica.metadata.labels.get(SERVICE) == Some(&service);
    let present = replicas.iter().filter(of_service);
    let mut standbys: Vec<_> = present
        .filter_map(|replica| standby(replica, leader, now))
        .collect();
    standbys.sort_by(|a, b| a.instance.cmp(&b.instance));
    Standing {
        leader: leader.map(str::to_owned),
        identity: identity.map(str::to_owned),
        term,
        lease_age_seconds: age(lease, now),
        lease_duration_seconds: lease.spec.lease_duration_seconds.unwrap_or_default(),
        standbys,
        service,
    }
}

fn standby(replica: &Lease, leader: Option<&str>, now: Timestamp) -> Option<Standby> {
    let instance = holder(replica)?;
    let age_seconds = age(replica, now)?;
    let duration = replica.spec.lease_duration_seconds.unwrap_or_default();
    let there = age_seconds <= f64::from(duration) && leader != Some(instance);
    there.then(|| Standby {
        instance: instance.to_owned(),
        age_seconds,
    })
}

/// Who holds a Lease.
pub fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.holder_identity.as_deref();
    holder.filter(|holder| !holder.is_empty())
}

/// `<instance>` of `<instance>_<random>`.
fn instance(identity: &str) -> &str {
    let parts = identity.rsplit_once('_');
    parts.map_or(identity, |(instance, _)| instance)
}

fn age(lease: &Lease, now: Timestamp) -> Option<f64> {
    let renewed = lease.spec.renew_time.as_ref()?.timestamp()?;
    // Clocks differ a little, and nobody renews in the future.
    Some(now.duration_since(renewed).as_secs_f64().max(0.0))
}

impl Standing {
    /// Has the leader let its Lease expire?
    pub fn is_expired(&self) -> bool {
        let duration = f64::from(self.lease_duration_seconds);
        self.lease_age_seconds.is_some_and(|age| age > duration)
    }

    /// The same but for what passes with time alone.
    pub fn is_as(&self, other: &Self) -> bool {
        let names = |standing: &Self| {
            let standbys = standing.standbys.iter();
            standbys
                .map(|standby| standby.instance.clone())
                .collect::<Vec<_>>()
        };
        self.identity == other.identity && self.term == other.term && names(self) == names(other)
    }
}

impl Standby {
    /// Its name, and whether it has been silent for long.
    pub fn shown(&self) -> String {
        match self.age_seconds > SILENT {
            true => format!("{} (silent for {:.0}s)", self.instance, self.age_seconds),
            false => self.instance.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;
    use setpoint_proto::coordination::LeaseSpec;
    use setpoint_proto::meta::ObjectMeta;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    fn lease(name: &str, holder: &str, seconds: i32, age: i64) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: name.to_owned(),
                ..ObjectMeta::default()
            },
            spec: LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: Some(seconds),
                renew_time: Some((now() - age.seconds()).into()),
                ..LeaseSpec::default()
            },
        }
    }

    fn found(leases: &[Lease], replicas: &[&Lease]) -> Vec<Standing> {
        standings(leases.iter().map(|lease| (lease, 7)), replicas, now())
    }

    fn replica(service: &str, instance: &str, age: i64) -> Lease {
        let mut lease = lease(instance, instance, 40, age);
        lease
            .metadata
            .labels
            .insert(SERVICE.to_owned(), service.to_owned());
        lease
    }

    #[test]
    fn whoever_is_there_and_does_not_lead_stands_by() {
        let leads = [lease("s", "s-1_0a", 15, 1), lease("r", "r-0_0b", 2, 3)];
        let there = [
            replica("s", "s-2", 20),
            replica("s", "s-1", 0),
            replica("s", "s-0", 1),
            replica("s", "s-3", 41),
            replica("r", "r-0", 0),
        ];
        let there: Vec<_> = there.iter().collect();
        let found = found(&leads, &there);
        assert_eq!(found[0].service, "r");
        assert!(found[0].is_expired() && found[0].standbys.is_empty());
        let second = &found[1];
        assert_eq!(second.leader.as_deref(), Some("s-1"));
        assert_eq!((second.term, second.lease_age_seconds), (7, Some(1.0)));
        assert!(!second.is_expired());
        let standbys: Vec<_> = second.standbys.iter().map(Standby::shown).collect();
        assert_eq!(standbys, ["s-0", "s-2 (silent for 20s)"]);
    }

    #[test]
    fn a_lease_that_was_given_back_has_no_leader() {
        let found = found(&[lease("s", "", 1, 5)], &[]);
        assert_eq!((&found[0].leader, &found[0].identity), (&None, &None));
    }

    #[test]
    fn time_alone_changes_nothing() {
        let one = &found(&[lease("s", "s-1_0a", 15, 1)], &[])[0];
        let later = &found(&[lease("s", "s-1_0a", 15, 9)], &[])[0];
        let other = &found(&[lease("s", "s-1_0b", 15, 9)], &[])[0];
        assert!(one.is_as(later) && !one.is_as(other));
    }
}
