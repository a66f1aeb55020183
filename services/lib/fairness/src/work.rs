//! The seats that a request takes, and the time for which it has them: lists by the size of what they read, writes by
//! the watchers that are told (upstream: `util/flowcontrol/request`).

use std::time::Duration;

/// The bytes of a list for which it takes a seat.
const BYTES_PER_SEAT: u64 = 100_000;
/// The most bytes that count of a list that the cache serves.
const CACHED_LIST_BYTES: u64 = 1_000_000;
/// The size that is assumed of objects of which nothing is known.
const LARGEST_OBJECT: u64 = 1_500_000;
const MOST_LIST_SEATS: u64 = 100;
const MOST_WRITE_SEATS: usize = 10;
const WATCHES_PER_SEAT: usize = 10;
/// The time for which a seat serves its watchers.
const EVENT: Duration = Duration::from_millis(5);

/// The seats of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// While it is executed.
    pub initial: usize,
    /// Afterwards, while watchers are told.
    pub last: usize,
    /// For how long that takes. The client does not wait for it.
    pub additional: Duration,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            initial: 1,
            last: 0,
            additional: Duration::ZERO,
        }
    }
}

impl Work {
    /// Returns the seats that it takes from its begin to its end.
    pub fn seats(&self) -> usize {
        self.initial.max(self.last)
    }

    /// Returns the same work on no more than `limit` seats at its end.
    pub(crate) fn within(self, limit: usize) -> Self {
        if self.last <= limit.max(1) {
            return self;
        }
        Self {
            last: limit.max(1),
            additional: self
                .additional
                .mul_f64(self.last as f64 / limit.max(1) as f64),
            ..self
        }
    }

    /// Returns the seat-seconds, if it is executed in `estimate`.
    pub(crate) fn seat_seconds(&self, estimate: Duration) -> f64 {
        self.initial as f64 * estimate.as_secs_f64()
            + self.last as f64 * self.additional.as_secs_f64()
    }
}

/// The stored objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Their number.
    pub objects: u64,
    /// Their size, encoded.
    pub bytes: u64,
}

/// A request for a collection.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListRequest {
    /// Whether it selects one object by its name.
    pub is_single: bool,
    /// The limit of a page; 0 for none.
    pub limit: u64,
    /// Whether the store serves it, and not the cache: a later page.
    pub from_store: bool,
    /// Whether it selects objects by labels or fields.
    pub has_selector: bool,
}

/// Returns the work of a list, or of the begin of a watch that sends the state first. `stats` are those of its kind, if
/// it is served here; `most` is the level's.
pub fn of_list(request: ListRequest, stats: Option<Stats>, most: usize) -> Work {
    let Some(stats) = stats else {
        return Work::default();
    };
    let average = match stats.objects {
        0 => 0,
        objects => (stats.bytes / objects).clamp(1, LARGEST_OBJECT),
    };
    let limited = match request.limit {
        0 => stats.objects,
        limit => limit.min(stats.objects),
    };
    let read = match request {
        ListRequest {
            is_single: true, ..
        } => 1,
        ListRequest {
            from_store: true,
            has_selector: true,
            ..
        } => limited.max(stats.objects / 2),
        _ => limited,
    };
    let bytes = read.saturating_mul(average);
    let bytes = match request.from_store {
        true => bytes,
        false => bytes.min(CACHED_LIST_BYTES),
    };
    let seats = bytes.div_ceil(BYTES_PER_SEAT).clamp(1, MOST_LIST_SEATS);
    Work {
        initial: usize::try_from(seats).map_or(most, |seats| seats.min(most.max(1))),
        ..Work::default()
    }
}

/// Returns the work of a write that some watchers are told of.
pub fn of_write(watchers: usize, most: usize) -> Work {
    if watchers < WATCHES_PER_SEAT {
        return Work::default();
    }
    let seats = watchers.div_ceil(WATCHES_PER_SEAT);
    let work = Work {
        initial: 1,
        last: seats,
        additional: EVENT,
    };
    work.within(most.min(MOST_WRITE_SEATS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: Option<Stats> = Some(Stats {
        objects: 5_000,
        bytes: 5_000_000,
    });

    #[test]
    fn a_list_takes_a_seat_for_each_hundred_kilobytes() {
        let seats = |request, most| of_list(request, MANY, most).seats();
        let whole = ListRequest::default();
        assert_eq!(seats(whole, 37), 10, "the cache sends it in parts");
        assert_eq!(seats(whole, 4), 4, "no more than the level gives to one");
        let page = ListRequest {
            limit: 500,
            ..whole
        };
        assert_eq!(seats(page, 37), 5);
        let single = ListRequest {
            is_single: true,
            ..whole
        };
        assert_eq!(seats(single, 37), 1);
        let later = ListRequest {
            from_store: true,
            has_selector: true,
            ..page
        };
        assert_eq!(seats(later, 37), 25);
        assert_eq!(of_list(whole, None, 37), Work::default());
        let none = Some(Stats {
            objects: 0,
            bytes: 0,
        });
        assert_eq!(of_list(whole, none, 37).seats(), 1);
    }

    #[test]
    fn a_write_that_many_watch_takes_seats_after_its_end() {
        assert_eq!(of_write(9, 10), Work::default());
        let work = of_write(95, 10);
        assert_eq!((work.initial, work.last), (1, 10));
        assert_eq!(work.additional, EVENT);
        let narrow = of_write(1000, 4);
        assert_eq!((narrow.seats(), narrow.last), (4, 4));
        assert_eq!(narrow.additional, EVENT * 25, "the same seat-seconds");
    }
}
