//! The virtual mail server.

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::clients::mail::{Mail, MailError, Refused, Wording};
use crate::controllers::cleanup::delivery::Post;

/// The mail server.
pub struct Server {
    pub is_away: bool,
    pub has_filter: bool,
    pub is_unknown: bool,
    pub now: Timestamp,
    pub accepted: Mutex<Vec<Mail>>,
}

impl Post for Server {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let (server, said) = (String::new(), String::new());
        let is_refused = match mail.wording {
            Wording::Templates if self.has_filter => Some(Refused::Mail),
            Wording::Templates | Wording::Plain if self.is_unknown => Some(Refused::Recipient),
            _ => None,
        };
        match is_refused {
            _ if self.is_away => Err(MailError::Unavailable { server, said }),
            Some(what) => Err(MailError::Refused { server, what, said }),
            None => {
                self.accepted.lock().push(mail.clone());
                Ok(())
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}
