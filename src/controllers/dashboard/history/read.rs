//! The read of the events about an object, with the token of the user.

use crate::api::why::Event;
use crate::controllers::dashboard::user::users::{User, Users};
use crate::runtime::client::Rules;
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

/// The kind of events.
pub const EVENTS: KindInfo = KindInfo { group: "", version: "v1", kind: "Event", plural: "events" };
/// The namespace of the events about objects without a namespace.
const OF_CLUSTER: &str = "default";

/// Reads the events about an object of the cluster; empty if the user may not list events. `rules` are the rights of the
/// user in any namespace: without the right there, the user does not have it in the whole cluster.
///
/// # Errors
/// The message of the API server's error.
pub async fn events_of_cluster(
    users: &Users,
    user: &User,
    rules: &Rules,
    uid: &str,
) -> Result<Vec<Event>, String> {
    if !may_list(rules) {
        return Ok(Vec::new());
    }
    events(users, user, OF_CLUSTER, uid).await.map_err(|error| error.to_string())
}

/// Whether these rights in a namespace include the list of events.
pub fn may_list(rules: &Rules) -> bool {
    rules.allow("list", EVENTS.group, EVENTS.plural, "")
}

/// Reads the events about the object of a namespace that has this uid; empty if the user may not list events there.
///
/// # Errors
/// The error of the API server.
pub async fn events(users: &Users, user: &User, namespace: &str, uid: &str) -> Result<Vec<Event>, ApiError> {
    // A request that is refused costs a probe.
    let rules = users.rules(user, namespace).await?;
    if !may_list(&rules) {
        return Ok(Vec::new());
    }
    let query = format!("&fieldSelector=involvedObject.uid%3D{uid}");
    users.client.list_as(&user.credential, EVENTS, namespace, &query).await
}
