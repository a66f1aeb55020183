//! The libFuzzer binary of the target `FUZZ_TARGET`. Built with coverage and run by `tests/fuzz/run`.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use setpoint_fuzz::Target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let target = setpoint_fuzz::target(&name);
    target.unwrap_or_else(|| {
        panic!(
            "FUZZ_TARGET={name} is not one of {:?}",
            setpoint_fuzz::names()
        )
    })
});

fuzz_target!(|input: &[u8]| TARGET.run_bounded(input));
