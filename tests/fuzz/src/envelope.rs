//! Envelopes and keys of the store.

use bytes::Bytes;
use setpoint_codec::custom::CustomKinds;
use setpoint_codec::{envelope, kinds};
use setpoint_store::keys;

/// Reads the input as an envelope, with and without the prefix. A valid one must round-trip.
pub fn run(input: &[u8]) {
    check(&Bytes::copy_from_slice(input));
    check(&Bytes::from([envelope::MAGIC, input].concat()));
    if let Ok(path) = std::str::from_utf8(input) {
        keys::parse(&CustomKinds::default(), path);
    }
}

fn check(value: &Bytes) {
    let Ok(read) = envelope::read(value) else {
        return;
    };
    let written = envelope::write(
        &read.api_version,
        &read.kind,
        &read.raw,
        read.cause.as_ref(),
    );
    let again = envelope::read(&written).expect("a written envelope can be read");
    assert_eq!(again, read);
    let Some(kind) = kinds().by_kind(&read.api_version, &read.kind) else {
        return;
    };
    if kind.decode(&read.raw).is_ok() {
        let raw = envelope::with_revision(&read.raw, "7");
        let object = kind
            .decode(&raw)
            .expect("a second metadata field is merged");
        let revision = &object.meta().resource_version;
        assert!(!kind.is_stored() || revision == "7", "{revision}");
    }
}
