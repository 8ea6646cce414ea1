//! The virtual mail server.

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::clients::mail::{Mail, MailError, Subject, Wording};
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
            Wording::Templates if self.has_filter => Some(Subject::Mail),
            Wording::Templates | Wording::Plain if self.is_unknown => Some(Subject::Recipient),
            _ => None,
        };
        match is_refused {
            _ if self.is_away => Err(MailError::Unavailable { server, subject: Subject::Client, said }),
            Some(subject) => Err(MailError::Refused { server, subject, said }),
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
