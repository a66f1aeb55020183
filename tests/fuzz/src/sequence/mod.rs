//! Sequences of requests for objects of several kinds and a few names, with arbitrary values in some fields.
//!
//! Checked after each request: a rejected request writes nothing; a read returns the acknowledged object; watchers get
//! each write once and in order, with the acknowledged object. Checked at the end: lists and watches are equal, with
//! and without selectors, and the background tasks run without an error.

mod pages;
mod request;
mod session;
mod watcher;

use std::time::Duration;

use arbitrary::{Result, Unstructured};

use session::Session;

use crate::gateway::Gateway;

/// The maximum number of requests.
const REQUESTS: usize = 40;

/// Long enough for the expiry of an Event.
const HOUSE: Duration = Duration::from_secs(120);

/// Sends the requests that the input encodes.
pub fn run(input: &[u8]) {
    run_on(Gateway::start(), input);
}

/// As [`run`], on a store whose answers to writes are lost, doubled or late.
pub fn with_lost_answers(input: &[u8]) {
    run_on(Gateway::with_lost_answers(), input);
}

fn run_on(gateway: Gateway, input: &[u8]) {
    let mut session = Session::start(gateway);
    let mut u = Unstructured::new(input);
    let _ = requests(&mut session, &mut u);
    session.compare();
    session.run_background_for(HOUSE);
    session.compare();
}

fn requests(session: &mut Session, u: &mut Unstructured<'_>) -> Result<()> {
    for _ in 0..REQUESTS {
        if u.is_empty() {
            break;
        }
        match u.int_in_range(0..=19)? {
            0..=4 => session.create(u)?,
            5..=6 => session.update(u)?,
            7..=11 => session.patch(u)?,
            12..=13 => session.delete(u)?,
            14 => session.delete_collection(u)?,
            15 => session.bind(u)?,
            16 => session.watch(u)?,
            17 => session.begin_pages(u)?,
            18 => session.next_page(),
            _ => session.list(u)?,
        }
    }
    Ok(())
}
