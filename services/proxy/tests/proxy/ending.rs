//! An orderly stop of the back end of user space.

use std::io::ErrorKind;
use std::thread;
use std::time::{Duration, Instant};

use setpoint_proxy::userspace::Limits;

use crate::userspace::{echo, plane};

const PATIENCE: Duration = Duration::from_secs(10);

fn limits(grace_period: Duration) -> Limits {
    Limits {
        grace_period,
        ..Limits::default()
    }
}

#[test]
fn a_stop_refuses_new_connections_at_once_and_waits_for_open_ones() {
    let mut plane = plane(1, limits(PATIENCE));
    plane.set(&plane.echo(1));
    let mut open = plane.open().unwrap();
    assert_eq!(echo(&mut open, "before").unwrap(), "before");
    let (end, begin) = (plane.end(), Instant::now());
    while plane.open().is_ok() {
        assert!(begin.elapsed() < PATIENCE, "nothing listens any more");
        thread::sleep(Duration::from_millis(5));
    }
    let refused = plane.open().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(echo(&mut open, "after").unwrap(), "after");
    assert!(!end.is_finished(), "a connection is open");
    drop(open);
    while !end.is_finished() {
        assert!(begin.elapsed() < PATIENCE, "it ends with its connections");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_stop_does_not_wait_for_connections_beyond_the_grace_period() {
    let grace = Duration::from_millis(200);
    let mut plane = plane(1, limits(grace));
    plane.set(&plane.echo(1));
    let mut open = plane.open().unwrap();
    assert_eq!(echo(&mut open, "before").unwrap(), "before");
    let (end, begin) = (plane.end(), Instant::now());
    while !end.is_finished() {
        assert!(begin.elapsed() < PATIENCE, "it ends");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(begin.elapsed() >= grace, "{:?}", begin.elapsed());
    assert_eq!(echo(&mut open, "still").unwrap(), "still");
}
