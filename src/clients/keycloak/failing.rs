//! The operations that fail for every object.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::error::KeycloakError;
use super::operation::Operation;

/// A failure that is not repeated for this long is forgotten. Failed objects are retried within 5 minutes.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(15);

/// The last error of each operation that fails for every object, and its time. Only a success of the same
/// operation shows its end.
#[derive(Debug, Default)]
pub(super) struct Failing(Mutex<Vec<(Operation, KeycloakError, Instant)>>);

impl Failing {
    /// Records the result of an operation. An error about its object changes nothing.
    pub fn record<T>(&self, operation: Operation, result: &Result<T, KeycloakError>) {
        let error = result.as_ref().err();
        if error.is_some_and(|error| !error.is_of_the_operation()) {
            return;
        }
        let mut failing = self.0.lock();
        failing.retain(|(known, ..)| *known != operation);
        failing.extend(error.map(|error| (operation, error.clone(), Instant::now())));
    }

    /// Returns the first error; `None` if no operation fails.
    pub fn error(&self) -> Option<KeycloakError> {
        let mut failing = self.0.lock();
        failing.retain(|(_, _, since)| since.elapsed() < FORGOTTEN_AFTER);
        failing.first().map(|(_, error, _)| error.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Account;
    use super::*;

    fn forbidden(operation: Operation) -> KeycloakError {
        KeycloakError::Forbidden { account: Account::Client("operator".to_owned()), operation }
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_success_of_the_same_operation_ends_a_failure() {
        let (failing, create) = (Failing::default(), Operation::CreateUser);
        failing.record::<()>(create, &Err(KeycloakError::MailNotSent));
        assert_eq!(failing.error(), None, "it is about one object");
        failing.record::<()>(create, &Err(forbidden(create)));
        failing.record(Operation::FindUser, &Ok(()));
        failing.record::<()>(create, &Err(KeycloakError::MailNotSent));
        assert_eq!(failing.error(), Some(forbidden(create)));
        failing.record(create, &Ok(()));
        assert_eq!(failing.error(), None);
        failing.record::<()>(create, &Err(forbidden(create)));
        tokio::time::advance(FORGOTTEN_AFTER).await;
        assert_eq!(failing.error(), None, "no object needs it any more");
    }
}
