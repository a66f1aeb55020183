//! The resources of sandboxes and containers.

use k8s_cri::v1::LinuxContainerResources;

use crate::Limits;

/// The period of CPU quotas, and the least quota, in microseconds (the kubelet's).
const PERIOD: i64 = 100_000;
const MIN_QUOTA: i64 = 1000;
/// The range of CPU shares.
const MIN_SHARES: i64 = 2;
const MAX_SHARES: i64 = 262_144;

/// Returns the limits of a container or a Pod.
pub fn resources(limits: Limits, oom_score_adj: Option<i64>) -> LinuxContainerResources {
    let shares = limits.millicpu_share.saturating_mul(1024) / 1000;
    let quota = limits.millicpu.saturating_mul(PERIOD) / 1000;
    LinuxContainerResources {
        cpu_period: PERIOD,
        cpu_quota: match limits.millicpu {
            ..=0 => -1,
            _ => quota.max(MIN_QUOTA),
        },
        cpu_shares: shares.clamp(MIN_SHARES, MAX_SHARES),
        memory_limit_in_bytes: limits.memory,
        // As much as without swap.
        memory_swap_limit_in_bytes: limits.memory,
        oom_score_adj: oom_score_adj.unwrap_or_default(),
        ..LinuxContainerResources::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of upstream's `calculateLinuxResources`.
    #[test]
    fn limits_are_those_of_the_kubelet() {
        let of = |millicpu_share, millicpu, memory| {
            let limits = Limits {
                millicpu_share,
                millicpu,
                memory,
            };
            let made = resources(limits, None);
            (made.cpu_shares, made.cpu_quota, made.memory_limit_in_bytes)
        };
        assert_eq!(of(500, 250, 64 << 20), (512, 25_000, 64 << 20));
        assert_eq!(of(0, 0, 0), (2, -1, 0));
        assert_eq!(of(1, 1, 0), (2, 1000, 0));
    }
}
