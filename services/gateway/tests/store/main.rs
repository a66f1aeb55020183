//! The store's contract, held against each of its implementations; and etcd's own trouble.
#![allow(
    clippy::unwrap_used,
    reason = "what is not as it should be is a failure"
)]

mod check;
mod differential;
mod faulty;
mod panics;
mod subjects;
mod trouble;

mod memory {
    use setpoint_testkit::{Memory, store_contract};

    async fn subject() -> Memory {
        Memory::default()
    }
    store_contract! { subject() }
}

mod etcd {
    use setpoint_testkit::store_contract;

    use super::subjects::OnEtcd;

    store_contract! { OnEtcd::start() }
}

mod cached_memory {
    use setpoint_testkit::{Memory, cache_contract};

    async fn subject() -> Memory {
        Memory::default()
    }
    cache_contract! { subject() }
}

mod cached_etcd {
    use setpoint_testkit::cache_contract;

    use super::subjects::OnEtcd;

    cache_contract! { OnEtcd::start() }
}
