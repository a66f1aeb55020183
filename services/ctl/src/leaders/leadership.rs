//! The leadership of a service, derived from its Leases.

use jiff::Timestamp;
use serde::Serialize;
use setpoint_model::replicas::SERVICE;
use setpoint_proto::coordination::Lease;

/// Age in seconds from which a heartbeat is reported as missing; replicas send one every ten seconds.
const SILENT: f64 = 15.0;

/// The leader and the standbys of a service.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leadership {
    /// The name of the service and of its Lease.
    pub service: String,
    /// The instance that holds the Lease; `None` after it was released.
    pub leader: Option<String>,
    /// The holder as recorded in the Lease, `<instance>_<random>`; it differs for each start of an instance.
    pub identity: Option<String>,
    /// The term of the Lease, which fences compare. The gateway counts terms.
    pub term: u64,
    /// Time since the holder last renewed the Lease.
    pub lease_age_seconds: Option<f64>,
    /// Age at which another replica may take the Lease.
    pub lease_duration_seconds: i32,
    /// The other running replicas, sorted by name.
    pub standbys: Vec<Standby>,
}

/// A replica that does not lead.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standby {
    /// The name of the replica.
    pub instance: String,
    /// Time since its last heartbeat.
    pub age_seconds: f64,
}

/// Returns the leadership of every service, sorted by name, from the leader Leases with their terms and the heartbeat
/// Leases of all replicas.
pub fn leaderships<'a>(
    terms: impl IntoIterator<Item = (&'a Lease, u64)>,
    replicas: &[&Lease],
    now: Timestamp,
) -> Vec<Leadership> {
    let leaderships = terms
        .into_iter()
        .map(|(lease, term)| leadership(lease, term, replicas, now));
    let mut leaderships: Vec<_> = leaderships.collect();
    leaderships.sort_by(|a, b| a.service.cmp(&b.service));
    leaderships
}

fn leadership(lease: &Lease, term: u64, replicas: &[&Lease], now: Timestamp) -> Leadership {
    let service = lease.metadata.name.clone();
    let identity = holder(lease);
    let leader = identity.map(instance);
    // A controller that shares a process has replicas of the name of that process.
    let led_by = |replica: &&&Lease| leader.is_some() && holder(replica) == leader;
    let leading = replicas.iter().find(led_by);
    let name = leading.and_then(|replica| replica.metadata.labels.get(SERVICE));
    let name = Some(name.unwrap_or(&service));
    let of_service = |replica: &&&Lease| replica.metadata.labels.get(SERVICE) == name;
    let present = replicas.iter().filter(of_service);
    let mut standbys: Vec<_> = present
        .filter_map(|replica| standby(replica, leader, now))
        .collect();
    standbys.sort_by(|a, b| a.instance.cmp(&b.instance));
    Leadership {
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

/// Returns the holder of a Lease; `None` if it is released.
pub fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.holder_identity.as_deref();
    holder.filter(|holder| !holder.is_empty())
}

/// Returns the `<instance>` of `<instance>_<random>`.
fn instance(identity: &str) -> &str {
    let parts = identity.rsplit_once('_');
    parts.map_or(identity, |(instance, _)| instance)
}

fn age(lease: &Lease, now: Timestamp) -> Option<f64> {
    let renewed = lease.spec.renew_time.as_ref()?.timestamp()?;
    // Clocks differ a little; an age is never negative.
    Some(now.duration_since(renewed).as_secs_f64().max(0.0))
}

impl Leadership {
    /// Whether the leader has not renewed its Lease in time.
    pub fn is_expired(&self) -> bool {
        let duration = f64::from(self.lease_duration_seconds);
        self.lease_age_seconds.is_some_and(|age| age > duration)
    }

    /// Whether both have the same leader, term and standbys; ages are ignored.
    pub fn same_state(&self, other: &Self) -> bool {
        let names = |leadership: &Self| {
            let standbys = leadership.standbys.iter();
            standbys
                .map(|standby| standby.instance.clone())
                .collect::<Vec<_>>()
        };
        self.identity == other.identity && self.term == other.term && names(self) == names(other)
    }
}

impl Standby {
    /// Formats the name, and the age of the heartbeat if one is missing.
    pub fn describe(&self) -> String {
        match self.age_seconds > SILENT {
            true => format!(
                "{} (no heartbeat for {:.0}s)",
                self.instance, self.age_seconds
            ),
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

    fn found(leases: &[Lease], replicas: &[&Lease]) -> Vec<Leadership> {
        leaderships(leases.iter().map(|lease| (lease, 7)), replicas, now())
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
    fn a_replica_with_a_live_heartbeat_that_does_not_lead_is_a_standby() {
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
        let standbys: Vec<_> = second.standbys.iter().map(Standby::describe).collect();
        assert_eq!(standbys, ["s-0", "s-2 (no heartbeat for 20s)"]);
    }

    #[test]
    fn replicas_of_a_process_stand_by_for_each_of_its_controllers() {
        let leads = [lease("job-controller", "m-1_0a", 15, 1)];
        let there = [replica("m", "m-0", 0), replica("m", "m-1", 0)];
        let found = found(&leads, &there.each_ref());
        let standbys: Vec<_> = found[0].standbys.iter().map(Standby::describe).collect();
        assert_eq!(standbys, ["m-0"]);
    }

    #[test]
    fn a_released_lease_has_no_leader() {
        let found = found(&[lease("s", "", 1, 5)], &[]);
        assert_eq!((&found[0].leader, &found[0].identity), (&None, &None));
    }

    #[test]
    fn leaderships_that_differ_only_in_age_are_the_same_state() {
        let one = &found(&[lease("s", "s-1_0a", 15, 1)], &[])[0];
        let later = &found(&[lease("s", "s-1_0a", 15, 9)], &[])[0];
        let other = &found(&[lease("s", "s-1_0b", 15, 9)], &[])[0];
        assert!(one.same_state(later) && !one.same_state(other));
    }
}
