//! The changes of a list: each person is read, and changed with the credential of the user. A list can be sent again: the
//! changes that were made are then none.

use std::time::Duration;

use futures::future::join_all;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::list::Line;
use crate::controllers::dashboard::action::result::Failure;
use crate::controllers::dashboard::people::actions::KIND;
use crate::controllers::dashboard::people::person::{Change, Person};
use crate::controllers::dashboard::people::step::Step;
use crate::controllers::dashboard::texts::Problem;
use crate::controllers::dashboard::user::users::User;
use crate::runtime::ObjectKey;
use crate::runtime::client::{Credential, Patch, Preconditions, UserClient};
use crate::runtime::error::ApiError;
use crate::runtime::merge;

/// The maximum number of people at the same time.
const AT_ONCE: usize = 32;
/// The time limit of a request. The page offers to continue with the others.
const LIMIT: Duration = Duration::from_secs(8);
/// The maximum number of tries while other clients change the same Tenant.
const TRIES: usize = 5;

/// The result for a line.
#[derive(Debug)]
pub struct Row {
    /// The number of the line.
    pub line: usize,
    /// The user name, as it is written.
    pub user: String,
    /// The first and the last name; empty if they are not known.
    pub name: String,
    /// The role that the line asks for; `None` for none, or if it is not known.
    pub role: Option<&'static str>,
    /// What happens to the person, or the problem.
    pub result: Result<Done, Failure>,
}

/// A result without a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// This happens, or has happened.
    Step(Step),
    /// The time was over before.
    Late,
}

/// The requests of a list.
pub struct Requests<'a> {
    /// The API server.
    pub client: &'a UserClient,
    /// The user.
    pub user: &'a User,
    /// The name of the course.
    pub course: &'a str,
    /// Whether the changes are made, not only shown.
    pub is_made: bool,
}

impl Requests<'_> {
    /// Returns the results of the lines, in their order.
    pub async fn of(&self, lines: Vec<Line>) -> Vec<Row> {
        let end = Instant::now() + LIMIT;
        let (mut rows, mut lines) = (Vec::with_capacity(lines.len()), lines.into_iter());
        loop {
            let some: Vec<Line> = lines.by_ref().take(AT_ONCE).collect();
            if some.is_empty() {
                return rows;
            }
            rows.extend(Box::pin(join_all(some.into_iter().map(|line| self.row(line, end)))).await);
        }
    }

    async fn row(&self, line: Line, end: Instant) -> Row {
        let Line { number, user, person } = line;
        let role = person.as_ref().ok().and_then(|person| person.role);
        let (name, result) = match person {
            Err(problem) => (String::new(), Err(problem.into())),
            Ok(_) if Instant::now() >= end => (String::new(), Ok(Done::Late)),
            Ok(person) => match timeout_at(end, self.change(&person)).await {
                Ok(Ok((step, name))) => (name, Ok(Done::Step(step))),
                Ok(Err(failure)) => (format!("{} {}", person.first, person.last), Err(failure)),
                Err(_) => (String::new(), Ok(Done::Late)),
            },
        };
        Row { line: number, user, name, role, result }
    }

    /// Changes a person, or plans it. Returns the name of the person, too.
    async fn change(&self, person: &Person) -> Result<(Step, String), Failure> {
        let key = ObjectKey::new("", person.user.as_str());
        let mut retries = 1..TRIES;
        loop {
            let found = match self.client.get_as::<Value>(self.credential(), KIND, &key).await {
                Ok(found) => Some(found),
                Err(ApiError::NotFound(_)) => None,
                Err(error) if error.is_away() => return Err(Problem::NotNow.into()),
                Err(error) => return Err(error.into()),
            };
            let (step, change) = person.plan(self.course, &self.user.name, found.as_ref())?;
            let done = (step, name(person, found.as_ref()));
            let sent = match change {
                Some(change) if self.is_made => self.send(&key, change, found.as_ref()).await,
                Some(_) | None => return Ok(done),
            };
            match sent {
                Ok(()) => return Ok(done),
                Err(ApiError::Conflict(_) | ApiError::AlreadyExists(_)) if retries.next().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn send(&self, key: &ObjectKey, change: Change, found: Option<&Value>) -> Result<(), ApiError> {
        match change {
            Change::Create(mut body) => {
                merge::apply(&mut body, &json!({"metadata": {"name": &*key.name}}));
                self.client.create_as::<IgnoredAny>(self.credential(), KIND, "", &body).await.map(drop)
            }
            Change::Patch(operations) => {
                let version = Preconditions::of_json(found.unwrap_or(&Value::Null));
                let body = version.json(operations);
                let patch = Patch::Json(&body);
                self.client.patch_as::<IgnoredAny>(self.credential(), KIND, key, patch).await.map(drop)
            }
        }
    }

    fn credential(&self) -> &Credential {
        &self.user.credential
    }
}

/// Returns the name of a person: that of the Tenant, if it exists.
fn name(person: &Person, found: Option<&Value>) -> String {
    let Some(tenant) = found else { return format!("{} {}", person.first, person.last) };
    let text = |member: &str| tenant["spec"][member].as_str().unwrap_or_default();
    format!("{} {}", text("firstName"), text("lastName"))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::list::read;
    use super::*;
    use crate::controllers::dashboard::action::result::Outcome;
    use crate::runtime::api_server::{ApiServer, Asked, refused};

    /// The Tenants `bob`, a student of another course, and `eva`, a candidate.
    fn answer(asked: &Asked) -> (u16, Value) {
        let tenant = |name: &str, course: &str, role: &str| {
            let entries = json!([{"name": course, "role": role}]);
            json!({"metadata": {"name": name, "uid": "u1", "resourceVersion": "7"},
                "spec": {"firstName": name, "lastName": "Rossi", "email": format!("{name}@x.org"), "workspaces": entries}})
        };
        match (asked.is("POST "), asked.name()) {
            (true, _) => (201, json!({"metadata": {"name": "new"}})),
            (false, "bob") => (200, tenant("bob", "net", "user")),
            (false, "eva") => (200, tenant("eva", "tea", "candidate")),
            (false, "readyz") => (200, json!("ok")),
            (false, "tim") => refused(403, "Forbidden", "not this one"),
            _ => refused(404, "NotFound", "it is not there"),
        }
    }

    const LIST: &str = "user,first,last,email,role\nbob,,,,\nnew,New,One,new@x.org,manager\neva,,,,reject\n\
        tim,,,,\nBad,,,,\nunknown,,,,\n";

    /// Sends a list. Returns the results, and the requests that change something.
    async fn sent(is_made: bool) -> (Vec<Row>, Vec<(String, Value)>) {
        let api = ApiServer::start(answer).await;
        let client = UserClient::new(&api.config).expect("a client");
        let credential = Credential::token("token").expect("a token");
        let user = User::new(credential, "ada".to_owned(), Timestamp::MAX);
        let requests = Requests { client: &client, user: &user, course: "tea", is_made };
        let rows = requests.of(read(LIST).expect("a list")).await;
        let asked = api.asked().into_iter().filter(|asked| !asked.is("GET "));
        let mut asked: Vec<_> = asked.map(|asked| (asked.line, asked.body)).collect();
        asked.sort_by_key(|(line, _)| line.clone());
        (rows, asked)
    }

    #[tokio::test]
    async fn a_list_is_shown_without_a_change() {
        let (rows, asked) = sent(false).await;
        assert_eq!(asked, vec![]);
        let seen: Vec<(usize, &str, Option<Done>)> =
            rows.iter().map(|row| (row.line, row.name.as_str(), row.result.as_ref().ok().copied())).collect();
        assert_eq!(
            seen,
            [
                (2, "bob Rossi", Some(Done::Step(Step::Enrolled))),
                (3, "New One", Some(Done::Step(Step::New))),
                (4, "eva Rossi", Some(Done::Step(Step::Rejected))),
                (5, " ", None),
                (6, "", None),
                (7, " ", None),
            ]
        );
        let problems =
            rows.iter().filter_map(|row| row.result.as_ref().err()).map(|failure| failure.outcome().0);
        let expected = [Problem::Refused, Problem::PersonUser, Problem::PersonNoName];
        assert_eq!(problems.collect::<Vec<_>>(), expected.map(Outcome::Failed));
    }

    #[tokio::test]
    async fn each_change_of_a_list_is_made_once_and_only_for_its_course() {
        let (rows, asked) = sent(true).await;
        let done = rows.iter().filter(|row| matches!(row.result, Ok(Done::Step(_)))).count();
        assert_eq!((done, rows.len()), (3, 6));
        let tenants = "/apis/crownlabs.polito.it/v1alpha2/tenants";
        let is = |member: &str, value: &str| json!({"op": "replace", "path": format!("/metadata/{member}"), "value": value});
        let version = [is("resourceVersion", "7"), is("uid", "u1")];
        let patch = |operation: Value| Value::from([&version[..], &[operation]].concat());
        let entry = json!({"name": "tea", "role": "user"});
        assert_eq!(
            asked,
            [
                (
                    format!("PATCH {tenants}/bob"),
                    patch(json!({"op": "add", "path": "/spec/workspaces/-", "value": entry}))
                ),
                (
                    format!("PATCH {tenants}/eva"),
                    patch(json!({"op": "remove", "path": "/spec/workspaces/0"}))
                ),
                (
                    format!("POST {tenants}"),
                    json!({
                        "spec": {"firstName": "New", "lastName": "One", "email": "new@x.org",
                            "workspaces": [{"name": "tea", "role": "manager"}]},
                        "metadata": {"name": "new"}, "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Tenant",
                    })
                ),
            ]
        );
    }
}
