//! The annotation of a Tenant that names a session of the dashboard which the user has ended.

use ring::digest;

use crate::api::labels::ENDED_SESSION_PREFIX;

/// Returns the annotation that names a session: a digest, because only the browser of the user has the session.
pub fn annotation(session: &str) -> String {
    let digest = digest::digest(&digest::SHA256, session.as_bytes());
    let bytes = digest.as_ref().iter().take(16);
    let hash = bytes.map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    format!("{ENDED_SESSION_PREFIX}{hash}")
}
