//! Sequences of requests, of several kinds and to a few names, with fields changed to anything.
//!
//! What must hold after each: a refusal has written nothing; what was acknowledged is what a read answers; watchers have
//! heard of each write once and in order, and know the object as the answer showed it. At the end lists and watches,
//! with and without selectors, agree; and whatever is there, the garbage collector lives through it.

mod pages;
mod replica;
mod request;
mod session;

use std::time::Duration;

use arbitrary::{Result, Unstructured};

use session::Session;

/// At most so many requests are made.
const REQUESTS: usize = 40;

/// Long enough for a namespace to be emptied and for an Event to be forgotten.
const HOUSE: Duration = Duration::from_secs(120);

/// Makes the requests that the bytes describe.
pub fn run(input: &[u8]) {
    let mut session = Session::start();
    let mut u = Unstructured::new(input);
    let _ = requests(&mut session, &mut u);
    session.compare();
    session.keep_house(HOUSE);
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
            18 => session.turn_page(),
            _ => session.list(u)?,
        }
    }
    Ok(())
}
