//! Tests of the scheduled times: those of upstream's tests, and intervals, zones and bounds.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use setpoint_cronjob_controller::{Missed, Never, Ticks};
use setpoint_model::cron::Timetable;
use setpoint_model::time::seconds_after;

use crate::decisions::cluster::{Cluster, at};

/// A Thursday, as in upstream's tests.
const HOUR: &str = "2016-05-19T10:00:00Z";

fn minutes(minutes: i64) -> Timestamp {
    seconds_after(at(HOUR), minutes * 60)
}

fn missed(schedule: &str, start: i64, now: i64) -> Result<Missed, Never> {
    let timetable = Timetable::parse(schedule, &TimeZone::UTC).unwrap();
    Missed::between(&timetable, minutes(start), minutes(now))
}

#[test]
fn the_last_time_before_now_is_found_as_upstream_finds_it() {
    let day = 24 * 60;
    for (schedule, start, now, last) in [
        ("0 * * * *", 0, 0, None),
        ("0 * * * *", 0, 61, Some(60)),
        ("0 * * * *", 1, 301, Some(300)),
        ("30 6-16/4 * * 1-5", 30, day + 31, Some(day + 30)),
        ("30 10,11,12 * * 1-5", 30, 30 * 60 + 30, None),
        ("30 6-16/4 * * 1-5", 30, 4 * day + 31, Some(4 * day + 30)),
        ("30 6-16/4 * * 1-5", 0, day + 31, Some(day + 30)),
        ("@every 1h", 1, 7 * day, Some(6 * day + 23 * 60 + 1)),
        ("*/5 * * * *", 30, 31, None),
    ] {
        let found = missed(schedule, start, now).unwrap();
        assert_eq!(found.last, last.map(minutes), "{schedule} at {now}");
    }
    assert_eq!(missed("59 23 31 2 *", 0, 60), Err(Never));
}

/// Checks J2.
#[test]
fn times_are_counted_if_there_is_more_than_one() {
    let count = |now| missed("0 * * * *", 0, now).unwrap().count;
    assert_eq!([59, 60, 119, 120].map(count), [0, 0, 0, 2]);
    assert_eq!([100 * 60, 101 * 60].map(count), [100, 101]);
}

fn ticks(cluster: &Cluster) -> Ticks {
    Ticks::of(&cluster.world()).unwrap()
}

/// Checks J1.
#[test]
fn the_last_scheduled_time_is_that_of_a_job_unless_the_clock_was_set_back() {
    let mut cluster = Cluster::new("0 * * * *");
    let one = at("2026-01-05T01:00:00Z");
    cluster.add_scheduled(one);
    for (now, expected) in [
        ("2026-01-05T01:00:00Z", Some(one)),
        ("2026-01-05T01:10:00Z", Some(one)),
        ("2026-01-05T00:59:59Z", None),
    ] {
        cluster.objects.now = at(now);
        assert_eq!(cluster.world().last_scheduled(), expected, "{now}");
    }
}

/// Checks J2.
#[test]
fn a_time_is_due_until_its_deadline() {
    let mut cluster = Cluster::new("0 * * * *");
    cluster.edit(|cronjob| cronjob.spec.starting_deadline_seconds = Some(90));
    let times = |ticks: Ticks| (ticks.due, ticks.late);
    let one = Some(at("2026-01-05T01:00:00Z"));
    for (now, expected) in [
        ("2026-01-05T00:59:59Z", (None, None)),
        ("2026-01-05T01:00:00Z", (one, None)),
        ("2026-01-05T01:01:29Z", (one, None)),
        ("2026-01-05T01:01:30Z", (None, one)),
    ] {
        cluster.objects.now = at(now);
        assert_eq!(times(ticks(&cluster)), expected, "{now}");
    }
    for deadline in [i64::MAX, i64::MIN] {
        cluster.edit(|cronjob| cronjob.spec.starting_deadline_seconds = Some(deadline));
        ticks(&cluster);
    }
}

/// Upstream counts intervals from the deadline, so that none would ever end.
#[test]
fn a_deadline_does_not_move_the_start_of_intervals() {
    let mut cluster = Cluster::new("@every 1h");
    cluster.edit(|cronjob| cronjob.spec.starting_deadline_seconds = Some(10));
    cluster.objects.now = at("2026-01-05T03:00:05Z");
    let ticks = ticks(&cluster);
    assert_eq!(ticks.due, Some(at("2026-01-05T03:00:00Z")));
    assert_eq!(ticks.next, Some(at("2026-01-05T04:00:00Z")));
}

/// As in upstream's `TestControllerV2UpdateCronJob`: a Job would start at once for a time that the old schedule did not
/// have.
#[test]
fn a_changed_schedule_is_followed_from_its_next_time() {
    for (schedule, next) in [
        ("0 * * * *", "2026-01-05T16:00:00Z"),
        ("0 14 * * *", "2026-01-06T14:00:00Z"),
        ("@every 7h", "2026-01-05T21:00:00Z"),
    ] {
        let mut cluster = Cluster::new(schedule);
        cluster.changed = Some(at("2026-01-05T15:30:00Z"));
        for now in ["2026-01-05T15:30:00Z", "2026-01-05T15:59:00Z"] {
            cluster.objects.now = at(now);
            let ticks = ticks(&cluster);
            let expected = (None, None, Some(at(next)));
            assert_eq!((ticks.due, ticks.late, ticks.next), expected, "{schedule}");
        }
        cluster.objects.now = at(next);
        assert_eq!(ticks(&cluster).due, Some(at(next)), "{schedule}");
    }
}

/// Checks J3.
#[test]
fn the_zone_is_that_of_the_cronjob_or_else_that_of_the_controller() {
    let mut cluster = Cluster::new("0 8 * * *");
    let next = |cluster: &Cluster, local: &str| {
        let mut world = cluster.world();
        world.local = setpoint_model::cron::zone(local, &TimeZone::UTC).unwrap();
        Ticks::of(&world).unwrap().next.unwrap().to_string()
    };
    assert_eq!(next(&cluster, "UTC"), "2026-01-05T08:00:00Z");
    assert_eq!(next(&cluster, "Europe/Berlin"), "2026-01-05T07:00:00Z");
    cluster.edit(|cronjob| cronjob.spec.time_zone = Some("America/New_York".into()));
    assert_eq!(next(&cluster, "Europe/Berlin"), "2026-01-05T13:00:00Z");
    cluster.edit(|cronjob| cronjob.spec.schedule = "TZ=Asia/Tokyo 0 8 * * *".into());
    assert_eq!(next(&cluster, "Europe/Berlin"), "2026-01-05T23:00:00Z");
}

#[test]
fn the_search_for_rare_times_over_decades_ends() {
    for (schedule, last) in [
        ("* * 1 1 *", "2025-01-01T23:59:00Z"),
        ("0 0 29 2 *", "2024-02-29T00:00:00Z"),
        ("* * * 1-11 *", "2025-11-30T23:59:00Z"),
    ] {
        let mut cluster = Cluster::new(schedule);
        cluster.edit(|cronjob| {
            cronjob.metadata.creation_timestamp = at("1971-11-30T23:58:30Z").into()
        });
        cluster.objects.now = at("2025-12-15T00:00:00Z");
        let due = ticks(&cluster).due;
        assert!(due.is_none_or(|due| due == at(last)), "{schedule}: {due:?}");
    }
}
