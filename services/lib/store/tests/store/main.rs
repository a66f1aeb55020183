//! The contract suites on each implementation, and failures of etcd.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod backup;
mod check;
mod custom_kinds;
mod differential;
mod encryption;
mod failures;
mod mtls;
mod panics;
mod stalls;
mod subjects;

mod memory {
    use setpoint_store::{Memory, store_contract};

    async fn subject() -> Memory {
        Memory::default()
    }
    store_contract! { subject() }
}

mod etcd {
    use setpoint_store::store_contract;

    use super::subjects::OnEtcd;

    store_contract! { OnEtcd::start() }
}

mod bumped_memory {
    use setpoint_store::{Memory, store_contract};

    use super::subjects::bumped;

    store_contract! { bumped(Memory::default()) }
}

/// All values are encrypted below the suite.
mod encrypted_memory {
    use setpoint_store::{Memory, store_contract};

    use super::subjects::encrypted;

    store_contract! { async { encrypted(Memory::default()) } }
}

mod encrypted_etcd {
    use setpoint_store::store_contract;

    use super::subjects::{OnEtcd, encrypted};

    store_contract! { async { encrypted(OnEtcd::start().await) } }
}

/// Checks DG1: as `encrypted_memory`, with answers that are lost, late, or to the second of two identical calls.
mod encrypted_memory_with_faults {
    use setpoint_store::{Memory, store_contract};

    use super::subjects::{encrypted, faulty};

    store_contract! { async { encrypted(faulty(Memory::default())) } }
}

mod cached_encrypted_memory {
    use setpoint_store::{Memory, cache_contract};

    use super::subjects::encrypted;

    cache_contract! { async { encrypted(Memory::default()) } }
}

/// Checks DG1: as `memory`, with answers that are lost, late, or to the second of two identical calls.
mod memory_with_faults {
    use setpoint_store::{Memory, store_contract};

    use super::subjects::faulty;

    store_contract! { async { faulty(Memory::default()) } }
}

/// Checks DG1: as `etcd`, with answers that are lost, late, or to the second of two identical calls.
mod etcd_with_faults {
    use setpoint_store::store_contract;

    use super::subjects::{OnEtcd, faulty};

    store_contract! { async { faulty(OnEtcd::start().await) } }
}

/// Checks DG1: as `cached_memory`, with answers that are lost, late, or to the second of two identical calls.
mod cached_memory_with_faults {
    use setpoint_store::{Memory, cache_contract};

    use super::subjects::faulty;

    cache_contract! { async { faulty(Memory::default()) } }
}

mod cached_memory {
    use setpoint_store::{Memory, cache_contract};

    async fn subject() -> Memory {
        Memory::default()
    }
    cache_contract! { subject() }
}

mod cached_etcd {
    use setpoint_store::cache_contract;

    use super::subjects::OnEtcd;

    cache_contract! { OnEtcd::start() }
}
