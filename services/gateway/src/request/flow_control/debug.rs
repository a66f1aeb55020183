//! The debug pages: levels, queues and requests, as texts of values separated by commas (upstream:
//! `/debug/api_priority_and_fairness`).

use std::fmt::Write as _;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use setpoint_fairness::{QueueDump, RequestDump, Totals, distinguisher};

use super::level::{Kind, Level};
use super::limited::About;
use super::{FlowControl, digest};

/// A debug page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    PriorityLevels,
    Queues,
    Requests { with_details: bool },
}

const LEVELS: &[&str] = &[
    "PriorityLevelName",
    "ActiveQueues",
    "IsIdle",
    "IsQuiescing",
    "WaitingRequests",
    "ExecutingRequests",
    "DispatchedRequests",
    "RejectedRequests",
    "TimedoutRequests",
    "CancelledRequests",
];
const QUEUES: &[&str] = &[
    "PriorityLevelName",
    "Index",
    "PendingRequests",
    "ExecutingRequests",
    "SeatsInUse",
    "NextDispatchR",
    "InitialSeatsSum",
    "MaxSeatsSum",
    "TotalWorkSum",
];
const REQUESTS: &[&str] = &[
    "PriorityLevelName",
    "FlowSchemaName",
    "QueueIndex",
    "RequestIndexInQueue",
    "FlowDistingsher",
    "ArriveTime",
    "InitialSeats",
    "FinalSeats",
    "AdditionalLatency",
    "StartTime",
];
const DETAILS: &[&str] = &[
    "UserName",
    "Verb",
    "APIPath",
    "Namespace",
    "Name",
    "APIVersion",
    "Resource",
    "SubResource",
];

impl FlowControl {
    /// Returns the text of a page.
    pub(crate) fn page(&self, page: Page) -> String {
        let headers = match page {
            Page::PriorityLevels => vec![LEVELS],
            Page::Queues => vec![QUEUES],
            Page::Requests {
                with_details: false,
            } => vec![REQUESTS],
            Page::Requests { with_details: true } => vec![REQUESTS, DETAILS],
        };
        let headers = headers.concat().into_iter().map(str::to_owned);
        let mut rows = vec![headers.collect()];
        for level in self.active().levels.values() {
            match page {
                Page::PriorityLevels => rows.push(level_row(level)),
                Page::Queues => add_queues(level, &mut rows),
                Page::Requests { with_details } => add_requests(level, with_details, &mut rows),
            }
        }
        aligned(&rows)
    }
}

/// Returns rows whose columns begin below each other.
fn aligned(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| cell.chars().count() + 2)
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    for row in rows {
        let mut cells = row.iter().zip(&widths).peekable();
        while let Some((cell, width)) = cells.next() {
            let _ = match cells.peek() {
                Some(_) => write!(text, "{:<width$}", format!("{cell},")),
                None => writeln!(text, "{cell}"),
            };
        }
    }
    text
}

fn level_row(level: &Level) -> Vec<String> {
    let (queues, waiting, executing, totals) = match &level.kind {
        Kind::Exempt(exempt) => {
            let totals = Totals {
                dispatched: exempt.dispatched(),
                ..Totals::default()
            };
            (0, 0, exempt.executing(), totals)
        }
        Kind::Limited(limited) => limited.read(|set| {
            let queues = set.queues();
            let active = queues.iter().filter(|queue| !queue.waiting.is_empty());
            (active.count(), set.waiting(), set.executing(), set.totals())
        }),
    };
    vec![
        level.name().to_owned(),
        queues.to_string(),
        level.is_idle().to_string(),
        level.is_quiescing().to_string(),
        waiting.to_string(),
        executing.to_string(),
        totals.dispatched.to_string(),
        totals.rejected.to_string(),
        totals.timed_out.to_string(),
        totals.cancelled.to_string(),
    ]
}

fn add_queues(level: &Level, rows: &mut Vec<Vec<String>>) {
    let Kind::Limited(limited) = &level.kind else {
        return;
    };
    limited.read(|set| {
        rows.extend(set.queues().iter().map(|queue| queue_row(level, queue)));
    });
}

fn queue_row(level: &Level, queue: &QueueDump<'_, About>) -> Vec<String> {
    let waiting = || queue.waiting.iter();
    let initial: usize = waiting().map(|request| request.work.initial).sum();
    let most: usize = waiting().map(|request| request.work.seats()).sum();
    vec![
        level.name().to_owned(),
        queue.index.to_string(),
        queue.waiting.len().to_string(),
        queue.executing.len().to_string(),
        queue.seats.to_string(),
        seat_seconds(queue.next),
        initial.to_string(),
        most.to_string(),
        seat_seconds(queue.work),
    ]
}

/// Returns seat-seconds as upstream writes them.
fn seat_seconds(value: f64) -> String {
    format!("{value:.8}ss")
}

fn add_requests(level: &Level, with_details: bool, rows: &mut Vec<Vec<String>>) {
    let clock = Clock::now();
    let mut add = |queue: i64, index: i64, request: &RequestDump<'_, About>| {
        let mut row = request_row(level, [queue, index], request, &clock);
        if with_details {
            row.extend(details(request.about));
        }
        rows.push(row);
    };
    let limited = match &level.kind {
        Kind::Exempt(exempt) => return exempt.for_each(|request| add(-1, -1, request)),
        Kind::Limited(limited) => limited,
    };
    limited.read(|set| {
        for queue in set.queues() {
            for (index, request) in (0..).zip(&queue.waiting) {
                add(queue.index.into(), index, request);
            }
            for request in &queue.executing {
                add(queue.index.into(), -1, request);
            }
        }
        set.queueless()
            .iter()
            .for_each(|request| add(-1, -1, request));
    });
}

fn request_row(
    level: &Level,
    [queue, index]: [i64; 2],
    request: &RequestDump<'_, About>,
    clock: &Clock,
) -> Vec<String> {
    let About {
        schema,
        user,
        asked,
    } = request.about;
    let digest = digest(user, asked);
    let flow = distinguisher(&digest, schema.spec.distinguisher_method.as_ref());
    let started = request.started.map(|started| clock.time(started));
    vec![
        level.name().to_owned(),
        schema.name.clone(),
        queue.to_string(),
        index.to_string(),
        flow.to_owned(),
        clock.time(request.arrived),
        request.work.initial.to_string(),
        request.work.last.to_string(),
        format!("{}s", request.work.additional.as_secs_f64()),
        started.unwrap_or_else(|| "0001-01-01T00:00:00Z".into()),
    ]
}

fn details(about: &About) -> Vec<String> {
    let asked = &about.asked;
    let resource = asked.resource.clone().unwrap_or_default();
    let version = match resource.group.as_str() {
        "" => resource.version.clone(),
        group => format!("{group}/{}", resource.version),
    };
    vec![
        about.user.name.clone(),
        asked.verb.to_string(),
        asked.path.clone(),
        resource.namespace,
        resource.name,
        version,
        resource.resource,
        resource.subresource,
    ]
}

/// The time of day that goes with a moment.
struct Clock {
    moment: Instant,
    time: Timestamp,
}

impl Clock {
    fn now() -> Self {
        Self {
            moment: tokio::time::Instant::now().into_std(),
            time: Timestamp::now(),
        }
    }

    fn time(&self, moment: Instant) -> String {
        let ago = self.moment.saturating_duration_since(moment);
        let ago = SignedDuration::try_from(ago).unwrap_or_default();
        self.time.checked_sub(ago).unwrap_or(self.time).to_string()
    }
}
