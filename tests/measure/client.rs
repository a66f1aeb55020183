//! Who talks to the gateway for the bench.

use setpoint_machinery::gateway::{Gateway, Settings};

/// Speaks to the gateway at this address.
pub fn connect(address: String) -> anyhow::Result<Gateway> {
    let settings = Settings {
        address,
        ..Default::default()
    };
    Ok(Gateway::connect(&settings, "bench")?)
}
