//! Who talks to the gateway for the bench.

use setpoint_controller::client::{Client, Settings};

/// Speaks to the gateway at this address.
pub fn connect(address: String) -> anyhow::Result<Client> {
    let settings = Settings {
        address,
        ..Default::default()
    };
    Ok(Client::connect(&settings, "bench")?)
}
