//! The contract suites on each implementation, and failures of etcd.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod check;
mod custom_kinds;
mod differential;
mod failures;
mod panics;
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
