//! How much a frozen relay holds back: bytes that have reached its machine, and nobody has read.

use std::fs;
use std::net::Ipv4Addr;

/// Of all connections that were made to `ip`.
pub fn held(ip: Ipv4Addr) -> usize {
    let sockets = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    sum(&sockets, ip)
}

fn sum(sockets: &str, ip: Ipv4Addr) -> usize {
    let sockets = sockets.lines().filter_map(socket);
    let ours = sockets.filter(|(local, _)| *local == ip);
    ours.map(|(_, bytes)| bytes).sum()
}

/// The local address of a socket, and what waits in it to be read.
fn socket(line: &str) -> Option<(Ipv4Addr, usize)> {
    let mut words = line.split_whitespace().skip(1);
    let (ip, _) = words.next()?.split_once(':')?;
    let (_, waiting) = words.nth(2)?.split_once(':')?;
    // The kernel writes down the four bytes as the number that they are to this machine.
    let ip = u32::from_str_radix(ip, 16).ok()?.to_ne_bytes();
    Some((ip.into(), usize::from_str_radix(waiting, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn only_what_was_sent_to_the_relay_counts() {
        let sockets = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0165007F:4423 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0165007F:4423 0100007F:B286 01 00000000:00000559 00:00000000 00000000     0        0 2 1
   2: 0100007F:B286 0165007F:4423 01 00000000:00000011 00:00000000 00000000     0        0 3 1
";
        assert_eq!(sum(sockets, [127, 0, 101, 1].into()), 0x559);
        assert_eq!(sum(sockets, [127, 0, 101, 2].into()), 0);
    }
}
