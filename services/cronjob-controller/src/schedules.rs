//! When schedules were changed. A new schedule is followed from its next time, as by upstream: a time that has passed
//! was none of the old schedule, so that its Job is not missed.
//!
//! A CronJob does not have the time of the change, so it is kept in memory. A new leader follows each schedule as if it
//! had always been the same, as upstream does after a restart.

use std::collections::HashMap;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_model::Key;

use crate::CronJobView;

/// The schedules of all CronJobs, as of their last reconciles.
#[derive(Debug, Default)]
pub struct Schedules(Mutex<HashMap<Key, Known>>);

#[derive(Debug)]
struct Known {
    uid: String,
    schedule: String,
    time_zone: Option<String>,
    changed: Option<Timestamp>,
}

impl Known {
    /// Returns when the schedule was changed, which is now if it differs.
    fn changed(&self, cronjob: &CronJobView, now: Timestamp) -> Option<Timestamp> {
        let same = self.schedule == cronjob.schedule && self.time_zone == cronjob.time_zone;
        match same {
            true => self.changed,
            false => Some(now),
        }
    }
}

impl Schedules {
    /// Keeps the schedule of a CronJob, or forgets it if the CronJob is gone.
    pub(crate) fn keep(&self, key: &Key, cronjob: Option<&CronJobView>, now: Timestamp) {
        let Some(cronjob) = cronjob else {
            self.0.lock().remove(key);
            return;
        };
        let known = Known {
            uid: cronjob.meta.uid.clone(),
            schedule: cronjob.schedule.clone(),
            time_zone: cronjob.time_zone.clone(),
            changed: self.changed(cronjob, now),
        };
        self.0.lock().insert(key.clone(), known);
    }

    /// Returns when the schedule of a CronJob was changed; `None` if that is not known.
    pub(crate) fn changed(&self, cronjob: &CronJobView, now: Timestamp) -> Option<Timestamp> {
        let schedules = self.0.lock();
        let known = schedules.get(&cronjob.meta.key);
        let known = known.filter(|known| known.uid == cronjob.meta.uid);
        known.and_then(|known| known.changed(cronjob, now))
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use setpoint_controller::View as _;
    use setpoint_proto::batch::CronJob;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    #[test]
    fn a_change_is_known_until_the_cronjob_is_another_one() {
        let schedules = Schedules::default();
        let mut cronjob = CronJobView::of(CronJob::default());
        let key = cronjob.meta.key.clone();
        assert_eq!(schedules.changed(&cronjob, at(0)), None);
        schedules.keep(&key, Some(&cronjob), at(0));
        assert_eq!(schedules.changed(&cronjob, at(1)), None);
        cronjob.schedule = "@hourly".into();
        assert_eq!(schedules.changed(&cronjob, at(2)), Some(at(2)));
        schedules.keep(&key, Some(&cronjob), at(3));
        schedules.keep(&key, Some(&cronjob), at(4));
        assert_eq!(schedules.changed(&cronjob, at(5)), Some(at(3)));
        cronjob.time_zone = Some("Asia/Tokyo".into());
        assert_eq!(schedules.changed(&cronjob, at(6)), Some(at(6)));
        cronjob.meta.uid = "another".into();
        assert_eq!(schedules.changed(&cronjob, at(7)), None);
        schedules.keep(&key, None, at(8));
        assert!(schedules.0.lock().is_empty());
        schedules.keep(&key, Some(&cronjob), at(9));
        schedules.clear();
        assert!(schedules.0.lock().is_empty());
    }
}
