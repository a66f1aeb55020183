//! Measures the backlog of a frozen relay: bytes that the kernel has received and the relay has not read.

use std::fs;
use std::net::Ipv4Addr;

/// Returns the number of unread bytes of all connections to `ip`; 0 if the kernel's table cannot be read.
pub fn backlog(ip: Ipv4Addr) -> usize {
    let sockets = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    sum(&sockets, ip)
}

fn sum(sockets: &str, ip: Ipv4Addr) -> usize {
    let sockets = sockets.lines().filter_map(socket);
    let ours = sockets.filter(|(local, _)| *local == ip);
    ours.map(|(_, bytes)| bytes).sum()
}

/// Parses the local address and the receive queue of a line of `/proc/net/tcp`.
fn socket(line: &str) -> Option<(Ipv4Addr, usize)> {
    let mut words = line.split_whitespace().skip(1);
    let (ip, _) = words.next()?.split_once(':')?;
    let (_, waiting) = words.nth(2)?.split_once(':')?;
    // The kernel prints the four bytes as a number in the byte order of this machine.
    let ip = u32::from_str_radix(ip, 16).ok()?.to_ne_bytes();
    Some((ip.into(), usize::from_str_radix(waiting, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_backlog_counts_only_bytes_sent_to_the_relay() {
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
