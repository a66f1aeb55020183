//! Properties of a set of queues, for any order of events.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use setpoint_fairness::{Dealer, QueueDump, QueueSet, Queuing, Rejected, Ticket, Work, flow_hash};

const QUEUING: Queuing = Queuing {
    queues: 16,
    hand: 3,
    length: 4,
};

fn wide(seats: usize) -> Work {
    Work {
        initial: seats,
        ..Work::default()
    }
}

/// A set, and what a caller knows about its requests.
struct Model {
    set: QueueSet<usize, usize>,
    now: Instant,
    number: usize,
    waiting: Vec<(usize, Ticket)>,
    executing: Vec<(usize, Ticket)>,
    lingering: Vec<usize>,
    widest: usize,
}

impl Model {
    fn new(queuing: Option<Queuing>, limit: usize) -> Self {
        let now = Instant::now();
        Self {
            set: QueueSet::new(queuing, limit, now),
            now,
            number: 0,
            waiting: Vec::new(),
            executing: Vec::new(),
            lingering: Vec::new(),
            widest: 0,
        }
    }

    fn arrive(&mut self, flow: u64, work: Work) -> Result<(), Rejected> {
        self.number += 1;
        let arrived = self.set.arrive(self.now, flow, work, self.number)?;
        self.widest = self.widest.max(work.seats());
        self.wake(arrived.woken);
        match arrived.executes {
            true => self.executing.push((self.number, arrived.ticket)),
            false => {
                self.set.wake_by(&arrived.ticket, self.number);
                self.waiting.push((self.number, arrived.ticket));
            }
        }
        Ok(())
    }

    /// Moves requests that were woken; each must have waited.
    fn wake(&mut self, woken: Vec<usize>) {
        for number in woken {
            let at = self.waiting.iter().position(|(one, _)| *one == number);
            let woken = self.waiting.swap_remove(at.expect("it waited"));
            assert!(!self.set.is_waiting(&woken.1));
            self.executing.push(woken);
        }
    }

    fn finish(&mut self, index: usize) {
        if self.executing.is_empty() {
            return;
        }
        let (_, ticket) = self.executing.remove(index % self.executing.len());
        let finished = self.set.finish(self.now, ticket);
        self.lingering
            .extend(finished.lingering.map(|(seats, _)| seats));
        self.wake(finished.woken);
    }

    fn withdraw(&mut self, index: usize) {
        if self.waiting.is_empty() {
            return;
        }
        let (_, ticket) = self.waiting.swap_remove(index % self.waiting.len());
        let finished = self.set.withdraw(self.now, ticket, index.is_multiple_of(2));
        self.wake(finished.woken);
    }

    fn release(&mut self) {
        if let Some(seats) = self.lingering.pop() {
            let woken = self.set.release(self.now, seats);
            self.wake(woken);
        }
    }

    fn check(&self) {
        assert_eq!(self.set.waiting(), self.waiting.len());
        assert_eq!(self.set.executing(), self.executing.len());
        assert!(
            self.waiting
                .iter()
                .all(|(_, ticket)| self.set.is_waiting(ticket))
        );
        let limit = self.set.limit();
        let seats = self.set.seats();
        let alone = self.executing.len() + self.lingering.len() == 1 && seats <= self.widest;
        assert!(
            seats <= limit || alone,
            "{seats} of {limit} seats are in use"
        );
        if !self.waiting.is_empty() && self.widest == 1 {
            assert_eq!(seats, limit, "a seat is free and a request waits");
        }
        assert!(
            self.set
                .queues()
                .iter()
                .all(|queue| queue.waiting.len() <= QUEUING.length)
        );
    }

    fn drain(&mut self) {
        while !self.set.is_idle() {
            self.finish(0);
            self.release();
            self.check();
        }
        assert!(self.waiting.is_empty());
        let is_empty = |queue: &QueueDump<'_, usize>| {
            queue.waiting.is_empty() && queue.executing.is_empty() && queue.work == 0.0
        };
        assert!(self.set.queues().iter().all(is_empty));
        assert_eq!(self.set.seats_waiting(), 0);
    }
}

#[derive(Clone, Debug)]
enum Event {
    Arrive(u64, usize, bool),
    Finish(usize),
    Withdraw(usize),
    Release,
    Limit(usize),
    Pass(u64),
}

fn events(widest: usize) -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => (0..40_u64, 1..=widest, any::<bool>()).prop_map(|(flow, seats, lingers)| {
            Event::Arrive(flow_hash("f", &flow.to_string()), seats, lingers)
        }),
        3 => (0..100_usize).prop_map(Event::Finish),
        2 => (0..100_usize).prop_map(Event::Withdraw),
        1 => Just(Event::Release),
        1 => (0..20_u64).prop_map(Event::Pass),
    ];
    prop::collection::vec(event, 0..200)
}

fn run(model: &mut Model, events: Vec<Event>) {
    for event in events {
        match event {
            Event::Arrive(flow, seats, lingers) => {
                let mut work = wide(seats);
                if lingers {
                    work.last = seats;
                    work.additional = Duration::from_millis(5);
                }
                let _ = model.arrive(flow, work);
            }
            Event::Finish(index) => model.finish(index),
            Event::Withdraw(index) => model.withdraw(index),
            Event::Release => model.release(),
            Event::Limit(limit) => {
                let woken = model.set.set_limit(model.now, limit);
                model.wake(woken);
            }
            Event::Pass(milliseconds) => model.now += Duration::from_millis(milliseconds),
        }
        model.check();
    }
}

proptest! {
    #[test]
    fn seats_are_limited_and_nothing_waits_for_a_free_one(limit in 1..6_usize, events in events(1)) {
        let mut model = Model::new(Some(QUEUING), limit);
        run(&mut model, events);
        model.drain();
    }

    #[test]
    fn wide_requests_wait_for_their_seats_and_end(limit in 1..6_usize, events in events(8)) {
        let mut model = Model::new(Some(QUEUING), limit);
        run(&mut model, events);
        model.drain();
    }

    #[test]
    fn without_queues_requests_are_executed_or_rejected_at_once(
        limit in 1..6_usize,
        events in events(3),
    ) {
        let mut model = Model::new(None, limit);
        run(&mut model, events);
        prop_assert!(model.waiting.is_empty());
        model.drain();
    }

    /// However many requests another flow has (here 120 wait), one of a quiet flow is among the next few: some for each
    /// queue of the other, and some for each seat, whose times were estimated too long or too short.
    #[test]
    fn a_flow_with_few_requests_is_not_starved(
        limit in 1..5_usize,
        busy: u64,
        quiet: u64,
        took in 1..200_u64,
    ) {
        let long = Queuing { length: 40, ..QUEUING };
        let hand = |flow| Dealer::new(long.queues, long.hand).deal(flow);
        let shared: BTreeSet<_> = hand(busy).collect();
        prop_assume!(hand(quiet).any(|queue| !shared.contains(&queue)));
        let mut model = Model::new(Some(long), limit);
        let step = Duration::from_millis(took);
        for _ in 0..50 {
            while model.arrive(busy, wide(1)).is_ok() {}
            model.now += step;
            model.finish(0);
        }
        prop_assert!(model.arrive(quiet, wide(1)).is_ok(), "its queue is not full");
        let own = model.number;
        let mut ended = 0;
        while model.waiting.iter().any(|(number, _)| *number == own) {
            while model.arrive(busy, wide(1)).is_ok() {}
            model.now += step;
            model.finish(0);
            ended += 1;
            let most = 2 * (long.hand as usize + limit);
            prop_assert!(ended <= most, "{ended} of the other flow came first");
        }
    }
}

#[test]
fn a_limit_that_rises_executes_what_waits_and_one_that_falls_interrupts_nothing() {
    let mut model = Model::new(Some(QUEUING), 1);
    for flow in 0..6 {
        let _ = model.arrive(flow_hash("f", &flow.to_string()), wide(1));
    }
    assert_eq!((model.set.executing(), model.set.waiting()), (1, 5));
    run(&mut model, vec![Event::Limit(4)]);
    assert_eq!((model.set.executing(), model.set.waiting()), (4, 2));
    let woken = model.set.set_limit(model.now, 2);
    assert!(woken.is_empty());
    model.finish(0);
    assert_eq!((model.set.executing(), model.set.waiting()), (3, 2));
}

#[test]
fn a_full_queue_rejects_and_counts() {
    let mut model = Model::new(Some(QUEUING), 1);
    let mut accepted = 0;
    while model.arrive(7, wide(1)).is_ok() {
        accepted += 1;
    }
    let most = 1 + QUEUING.hand as usize * QUEUING.length;
    assert_eq!(
        accepted, most,
        "one is executed, and the queues of the hand are full"
    );
    assert_eq!(model.arrive(7, wide(1)), Err(Rejected::QueueFull));
    model.withdraw(0);
    model.withdraw(1);
    let totals = model.set.totals();
    assert_eq!(
        (totals.rejected, totals.timed_out, totals.cancelled),
        (4, 1, 1)
    );
    model.drain();
}

#[test]
fn the_queues_that_are_configured_may_change_while_requests_wait() {
    let mut model = Model::new(Some(QUEUING), 1);
    for flow in 0..8 {
        let _ = model.arrive(flow_hash("f", &flow.to_string()), wide(1));
    }
    let few = Queuing {
        queues: 1,
        hand: 1,
        length: 4,
    };
    model.set.set_queuing(Some(few));
    let _ = model.arrive(3, wide(1));
    model.check();
    model.set.set_queuing(None);
    assert_eq!(model.arrive(3, wide(1)), Err(Rejected::ConcurrencyLimit));
    model.drain();
}

#[test]
fn a_ticket_that_was_dispatched_meanwhile_is_finished_when_it_is_withdrawn() {
    let mut model = Model::new(Some(QUEUING), 1);
    model.arrive(1, wide(1)).unwrap();
    model.arrive(2, wide(1)).unwrap();
    let (_, first) = model.executing.pop().unwrap();
    let finished = model.set.finish(model.now, first);
    assert_eq!(finished.woken, [2]);
    let (_, second) = model.waiting.pop().unwrap();
    let withdrawn = model.set.withdraw(model.now, second, false);
    assert!(withdrawn.woken.is_empty());
    assert!(model.set.is_idle());
}
