//! Why an action failed.

use super::template::table_key;
use crate::api::public_key::PublicKeyError;

table_key! {
    /// Why an action failed.
    #[derive(serde::Serialize)]
    pub enum Problem {
        /// The session expired.
        SessionOver,
        /// The object has changed.
        Changed,
        /// The object does not exist.
        Gone,
        /// The name is in use.
        Taken,
        /// The user could not be determined, or too many other forms were processed, so nothing was tried.
        NotNow,
        /// The API server did not confirm the change: a write that timed out may be done.
        Unknown,
        /// The API server or a webhook rejected the change; its message follows.
        Refused,
        /// A field that the page itself writes is missing or invalid.
        Form,
        /// The text is not an SSH public key.
        Key,
        /// The text has more than one line.
        KeyLineBreak,
        /// The text is longer than any key.
        KeyTooLong,
        /// The type of the key is not supported.
        KeyUnsupported,
        /// The key already exists.
        KnownKey,
        /// A port is not a number from 1 to 65535.
        Port,
        /// The name of a port is invalid.
        PortName,
        /// A display name is too long.
        Name,
        /// Only managers enrol users in the course.
        Closed,
    }
}

impl From<PublicKeyError> for Problem {
    fn from(error: PublicKeyError) -> Self {
        match error {
            PublicKeyError::Unreadable => Self::Key,
            PublicKeyError::LineBreak => Self::KeyLineBreak,
            PublicKeyError::TooLong => Self::KeyTooLong,
            PublicKeyError::Unsupported => Self::KeyUnsupported,
        }
    }
}
