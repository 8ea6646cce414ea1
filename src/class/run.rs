//! Sends the changes of an action.

use std::future::Future;

use futures::{StreamExt, stream};
use tokio::time::Instant;

use super::cluster::Cluster;
use super::model::{Change, Refusal, Row, State, Unchanged, Verb};
use super::plan::Action;
use crate::api::Instance;
use crate::api::instance::InstanceKind;
use crate::runtime::error::ApiError;

/// The maximum number of requests at the same time.
pub const AT_ONCE: usize = 32;
/// The maximum number of tries while other clients change the same machine.
const TRIES: usize = 5;

/// Sends the changes of the rows that are to do, and returns the rows with their new states. No request begins after
/// `until`; the remaining rows stay as they are.
pub async fn run<C: Cluster>(cluster: &C, action: &Action<'_>, rows: Vec<Row>, until: Instant) -> Vec<Row> {
    let rows = rows.into_iter().enumerate();
    in_order(rows.map(|(at, row)| async move { (at, changed(cluster, action, row, until).await) })).await
}

/// Asks the API server which of the first `most` changes it refuses, and returns the rows with these refusals. Nothing is
/// changed, and no request begins after `until`.
pub async fn check<C: Cluster>(cluster: &C, rows: Vec<Row>, most: usize, until: Instant) -> Vec<Row> {
    let mut left = most;
    let numbered = rows.into_iter().enumerate().map(|(at, row)| {
        let is_checked = left > 0 && matches!(row.state, State::ToDo(_));
        left -= usize::from(is_checked);
        async move { (at, if is_checked { checked(cluster, row, until).await } else { row }) }
    });
    in_order(numbered).await
}

/// Completes rows, [`AT_ONCE`] at a time, and returns them in their order.
async fn in_order(rows: impl Iterator<Item = impl Future<Output = (usize, Row)>>) -> Vec<Row> {
    let mut rows: Vec<(usize, Row)> = stream::iter(rows).buffer_unordered(AT_ONCE).collect().await;
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

async fn changed<C: Cluster>(cluster: &C, action: &Action<'_>, mut row: Row, until: Instant) -> Row {
    for _ in 0..TRIES {
        let State::ToDo(change) = &row.state else { break };
        if Instant::now() >= until {
            break;
        }
        let change = change.clone();
        row.state = match send(cluster, &change, false).await {
            // The upload begins once the machine is off.
            Ok(()) if action.verb == Verb::Collect => State::Running,
            Ok(()) => State::Done,
            Err(error) => match after(&change, error) {
                Some(State::Refused(refusal)) => unless_created(cluster, &change, refusal).await,
                Some(state) => state,
                None => again(cluster, action, &change).await,
            },
        };
    }
    row
}

async fn checked<C: Cluster>(cluster: &C, mut row: Row, until: Instant) -> Row {
    let State::ToDo(change) = &row.state else { return row };
    if Instant::now() >= until {
        return row;
    }
    match send(cluster, change, true).await {
        Err(error) if !error.is_away() => {
            if let Some(state) = after(change, error) {
                row.state = state;
            }
        }
        Ok(()) | Err(_) => {}
    }
    row
}

async fn send<C: Cluster>(cluster: &C, change: &Change, is_dry: bool) -> Result<(), ApiError> {
    let call = change.call()?;
    cluster.call(if is_dry { call.dry() } else { call }).await
}

/// Returns the state after the API server has not accepted a change; `None` if the machine has changed meanwhile.
fn after(change: &Change, error: ApiError) -> Option<State> {
    Some(match (change, error) {
        (Change::Create(..), ApiError::AlreadyExists(_)) | (Change::Delete(..), ApiError::NotFound(_)) => {
            State::Done
        }
        (Change::Create(..), ApiError::NotFound(_)) => State::Refused(Refusal::NoNamespace),
        (Change::Patch(..), ApiError::NotFound(_)) => State::Unchanged(Unchanged::NoMachine),
        // Another machine has the name now.
        (Change::Delete(..), ApiError::Conflict(_)) => State::Unchanged(Unchanged::Later),
        (Change::Patch(..), ApiError::Conflict(_)) => return None,
        (_, error) => State::Refused(Refusal::Api(error)),
    })
}

/// Returns the state after a refusal. If the same action was sent twice, the machine may exist, and use the quota that the
/// second change lacks.
async fn unless_created<C: Cluster>(cluster: &C, change: &Change, refusal: Refusal) -> State {
    if let Change::Create(key, _) = change
        && refusal != Refusal::Api(ApiError::Silent)
        && cluster.get::<InstanceKind>(key).await.is_ok()
    {
        return State::Done;
    }
    State::Refused(refusal)
}

/// Returns the state of a machine that has changed since it was read.
async fn again<C: Cluster>(cluster: &C, action: &Action<'_>, change: &Change) -> State {
    let found: Result<Instance, ApiError> = cluster.get::<InstanceKind>(change.key()).await;
    match found {
        Ok(machine) if is_another(&machine, change) => State::Unchanged(Unchanged::Later),
        Ok(machine) => action.of_machine(&machine),
        Err(ApiError::NotFound(_)) => State::Unchanged(Unchanged::NoMachine),
        Err(error) => State::Refused(Refusal::Api(error)),
    }
}

/// Whether a machine has the name of the machine that a patch was made for, and is another one.
fn is_another(machine: &Instance, change: &Change) -> bool {
    matches!(change, Change::Patch(_, body) if body["metadata"]["uid"] != machine.uid())
}
