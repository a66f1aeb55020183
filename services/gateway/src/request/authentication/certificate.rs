//! The users of client certificates.

use setpoint_kinds::Identity;
use setpoint_tls::PeerIdentity;

/// The attribute that names the credential of a user.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// Returns the user that a verified certificate identifies (upstream: `CommonNameUserConversion`).
pub(super) fn user(peer: &PeerIdentity) -> Identity {
    let id = format!("X509SHA256={}", peer.fingerprint);
    Identity {
        name: peer.name.clone(),
        uid: peer.uid.clone(),
        groups: peer.groups.clone(),
        extra: [(CREDENTIAL.to_owned(), vec![id])].into(),
    }
}
