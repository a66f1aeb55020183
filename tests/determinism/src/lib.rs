//! Repeatable random numbers and a simulated wall clock for the thread of a test.
//!
//! A program that links this crate calls the functions below instead of the C library's `getrandom` and
//! `clock_gettime`. On a thread that called [`simulate`], they return repeatable bytes and a time of the caller's; on
//! all other threads, those of the kernel. So names, uids, jitter, the order of hash maps and the choice among ready
//! branches of `tokio::select!` are the same in each run, and no crate needs a parameter for it.
//!
//! We chose this over a source of randomness and a clock handed through all crates because dependencies draw random
//! numbers, too. It would be wrong if the standard library or `getrandom` stopped calling the C library: the test below
//! fails then.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::time::Duration;

thread_local! {
    /// The state of the generator; `None` on a thread that is not simulated.
    static RANDOM: Cell<Option<u64>> = const { Cell::new(None) };
    static CLOCK: Cell<Option<fn() -> Duration>> = const { Cell::new(None) };
}

/// Makes this thread repeatable: random numbers follow from `seed`, and `clock` returns the time since 1970.
///
/// Must be called before the thread draws its first random number: generators that are seeded already stay as they are.
pub fn simulate(seed: u64, clock: fn() -> Duration) {
    RANDOM.set(Some(seed));
    CLOCK.set(Some(clock));
}

/// Returns the next eight random bits (Knuth's MMIX generator, whose upper bits are the better ones).
fn next(state: u64) -> (u64, u8) {
    let state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (state, state.to_be_bytes()[0])
}

/// Replaces the function of the C library.
///
/// # Safety
/// `buffer` must be valid for writes of `length` bytes.
#[expect(unsafe_code, reason = "it replaces a function of the C library")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, flags: c_uint) -> isize {
    let Some(mut state) = RANDOM.get() else {
        // SAFETY: the caller's promise is what the system call needs.
        let read = unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) };
        return read as isize;
    };
    for at in 0..length {
        let byte;
        (state, byte) = next(state);
        // SAFETY: `at` is less than `length`.
        unsafe { buffer.cast::<u8>().add(at).write(byte) };
    }
    RANDOM.set(Some(state));
    length.cast_signed()
}

/// Replaces the function of the C library.
///
/// # Safety
/// `time` must be valid for writes.
#[expect(unsafe_code, reason = "it replaces a function of the C library")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> c_int {
    match CLOCK.get() {
        Some(simulated) if clock == libc::CLOCK_REALTIME => {
            let now = simulated();
            let now = libc::timespec {
                tv_sec: now.as_secs().cast_signed(),
                tv_nsec: now.subsec_nanos().into(),
            };
            // SAFETY: the caller's promise.
            unsafe { time.write(now) };
            0
        }
        // SAFETY: the caller's promise is what the system call needs.
        _ => unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    /// Returns what a new thread draws from the standard library's source of randomness, and its wall clock.
    fn drawn(seed: Option<u64>) -> (Vec<u32>, Duration) {
        let draw = move || {
            if let Some(seed) = seed {
                simulate(seed, || Duration::from_secs(7));
            }
            let order = HashSet::<u32>::from_iter(0..64).into_iter().collect();
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            (order, now.unwrap_or_default())
        };
        thread::spawn(draw).join().expect("it does not panic")
    }

    #[test]
    fn a_simulated_thread_is_repeatable_and_others_are_not() {
        assert_eq!(drawn(Some(1)), drawn(Some(1)));
        assert_ne!(drawn(Some(1)).0, drawn(Some(2)).0);
        assert_eq!(drawn(Some(1)).1, Duration::from_secs(7));
        assert_ne!(drawn(None).0, drawn(None).0);
        assert!(drawn(None).1 > Duration::from_secs(1_700_000_000));
    }
}
