//! The choice of an endpoint: one after the other, or the one that the client had.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::table::Table;

/// The state of a port of a Service between its connections.
#[derive(Debug)]
pub struct Balancer {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    turn: usize,
    clients: Table<Ipv4Addr, SocketAddrV4>,
}

impl Balancer {
    /// Returns one that remembers the endpoints of at most `clients` clients.
    pub fn new(clients: usize) -> Self {
        let clients = Table::new(clients);
        Self {
            state: Mutex::new(State { turn: 0, clients }),
        }
    }

    /// Returns the endpoint of a pool for a connection of a client, other than those that were tried; `None` if there
    /// is no other one.
    ///
    /// With `affinity`, a number of seconds, it is the one that the client had within that time, if it is in the pool.
    pub fn choose(
        &self,
        pool: &[SocketAddrV4],
        tried: &[SocketAddrV4],
        client: Ipv4Addr,
        affinity: Option<u32>,
        now: Instant,
    ) -> Option<SocketAddrV4> {
        let mut state = self.state.lock();
        let usable = |one: &SocketAddrV4| pool.contains(one) && !tried.contains(one);
        let Some(seconds) = affinity else {
            state.clients.remove(&client);
            return state.next(pool, tried);
        };
        let recent = |used: Instant| now.duration_since(used) < Duration::from_secs(seconds.into());
        let known = state.clients.peek(&client);
        let known = known.filter(|(one, used)| usable(one) && recent(*used));
        if let Some(one) = known.map(|(one, _)| *one) {
            state.clients.touch(&client, now);
            return Some(one);
        }
        let one = state.next(pool, tried)?;
        state.clients.insert(client, one, now);
        Some(one)
    }
}

impl State {
    fn next(&mut self, pool: &[SocketAddrV4], tried: &[SocketAddrV4]) -> Option<SocketAddrV4> {
        let first = self.turn.checked_rem(pool.len())?;
        let (before, after) = pool.split_at(first);
        let mut turns = after.iter().chain(before).enumerate();
        let (skipped, one) = turns.find(|(_, one)| !tried.contains(one))?;
        self.turn = first.wrapping_add(skipped).wrapping_add(1);
        Some(*one)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pool(numbers: &[u8]) -> Vec<SocketAddrV4> {
        let one = |number: &u8| SocketAddrV4::new(Ipv4Addr::new(127, 1, 0, *number), 80);
        numbers.iter().map(one).collect()
    }

    const CLIENT: Ipv4Addr = Ipv4Addr::LOCALHOST;

    #[test]
    fn a_client_stays_for_the_time_of_the_affinity_after_its_last_connection() {
        let (balancer, all, start) = (Balancer::new(8), pool(&[1, 2, 3]), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let choose = |affinity, now| {
            balancer
                .choose(&all, &[], CLIENT, affinity, at(now))
                .unwrap()
        };
        let first = choose(Some(10), 0);
        assert_eq!(choose(Some(10), 9), first);
        assert_eq!(choose(Some(10), 18), first, "the time begins anew");
        assert_ne!(choose(Some(10), 28), first);
        let kept = choose(Some(10), 29);
        assert_ne!(choose(None, 30), kept, "it has ended");
    }

    #[test]
    fn a_client_moves_when_its_endpoint_is_gone_or_does_not_answer() {
        let (balancer, all, now) = (Balancer::new(8), pool(&[1, 2]), Instant::now());
        let choose =
            |pool: &[_], tried: &[_]| balancer.choose(pool, tried, CLIENT, Some(60), now).unwrap();
        let first = choose(&all, &[]);
        let second = choose(&all, &[first]);
        assert_ne!(first, second);
        assert_eq!(choose(&all, &[]), second);
        assert_eq!(choose(&[first], &[]), first);
    }

    proptest! {
        #[test]
        fn every_endpoint_has_its_turn_and_none_is_tried_twice(count in 1u8..20, start in 0usize..40) {
            let (balancer, now) = (Balancer::new(1), Instant::now());
            let all = pool(&(1..=count).collect::<Vec<_>>());
            let next = |tried: &[_]| balancer.choose(&all, tried, CLIENT, None, now);
            for _ in 0..start {
                prop_assert!(next(&[]).is_some());
            }
            let mut turns: Vec<_> = all.iter().filter_map(|_| next(&[])).collect();
            turns.sort();
            prop_assert_eq!(&turns, &all);
            let mut tried = Vec::new();
            while let Some(one) = next(&tried) {
                prop_assert!(!tried.contains(&one));
                tried.push(one);
            }
            prop_assert_eq!(tried.len(), all.len());
        }
    }
}
