//! Tests of faults that begin after the start of the daemon, with a server that answers like Keycloak.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

use super::*;
use crate::config::{ConfigDuration, KeycloakConfig};
use crate::controllers::accounts::work::AccountWork;
use crate::runtime::gate::Gate;
use crate::runtime::outages::System;
use crate::runtime::queue::Queue;
use crate::runtime::reconciler::Effect;

/// The statuses of the server's responses.
#[derive(Clone, Copy)]
struct Statuses {
    token: u16,
    users: u16,
}

const OK: Statuses = Statuses { token: 200, users: 200 };

/// An effect that finds a user.
#[derive(Debug, Clone, PartialEq)]
struct Find;

impl Effect for Find {
    type Result = ();
}

/// A realm, and the work of a loop in it.
struct Realm {
    accounts: Accounts,
    outages: Outages,
    work: AccountWork<Find>,
    statuses: Arc<Mutex<Statuses>>,
    folder: TempDir,
}

impl Realm {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = KeycloakConfig {
            url: format!("http://{}", listener.local_addr().unwrap()),
            realm: "r".to_owned(),
            client_id: "operator".to_owned(),
            client_secret_file: folder.path().join("secret").display().to_string(),
            roles_client_id: "api".to_owned(),
            timeout: ConfigDuration::from_secs(10),
            ..KeycloakConfig::default()
        };
        let statuses = Arc::new(Mutex::new(OK));
        tokio::spawn(serve(listener, Arc::clone(&statuses)));
        let outages = Outages::default();
        let keycloak = Keycloak::new(&config, Gate::open()).unwrap();
        let accounts = Accounts::new(keycloak).reporting_to(&outages);
        tokio::spawn(accounts.clone().watch_outage());
        let work = AccountWork::new(&accounts.outage, &Arc::new(Queue::new("test")));
        let realm = Self { accounts, outages, work, statuses, folder };
        realm.set_secret(true);
        realm
    }

    /// Creates or removes the file with the secret of the client.
    fn set_secret(&self, has_it: bool) {
        let file = self.folder.path().join("secret");
        if has_it { std::fs::write(file, "s3cret").unwrap() } else { std::fs::remove_file(file).unwrap() }
    }

    /// Sends the request of the monitor, and returns the reason of its error.
    async fn monitor(&self) -> Option<&'static str> {
        let result = self.accounts.ask().await;
        self.outages.record(System::Keycloak, self.accounts.url(), &result);
        result.err().map(|error| error.reason().as_str())
    }

    /// Finds a user, as the work of the loop.
    async fn work(&self) {
        let tenant: Tenant =
            serde_json::from_value(json!({"metadata": {"name": "ada", "uid": "u1"}})).unwrap();
        let keycloak = self.accounts.keycloak.clone();
        let find = async move {
            match keycloak.find_user("ada").await {
                Ok(_) => (Some(()), None),
                Err(error) => (None, Some(error)),
            }
        };
        self.work.perform(&tenant, &Find, false, find).await;
    }

    /// Works until the number of outages is this one.
    async fn work_until(&self, count: usize) {
        let begin = Instant::now();
        while self.outages.lines().lines().count() != count {
            assert!(begin.elapsed() < Duration::from_mins(1), "{}", self.outages.lines());
            self.work().await;
            if count == 0 {
                self.monitor().await;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn serve(listener: TcpListener, statuses: Arc<Mutex<Statuses>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let statuses = Arc::clone(&statuses);
        let service = service_fn(move |request: Request<Incoming>| {
            let statuses = *statuses.lock();
            async move {
                let (head, body) = request.into_parts();
                let _body = body.collect().await.unwrap();
                let (status, body) = answer(head.uri.path(), statuses);
                let body = Full::new(Bytes::from(body.to_string()));
                Ok::<_, Infallible>(Response::builder().status(status).body(body).unwrap())
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

fn answer(path: &str, statuses: Statuses) -> (u16, Value) {
    match path.rsplit('/').next().unwrap_or_default() {
        // It is used for one call.
        "token" => (statuses.token, json!({"access_token": "t", "expires_in": 0, "token_type": "Bearer"})),
        "users" => (statuses.users, json!([])),
        _ => (200, json!([{"id": "c", "clientId": "api"}])),
    }
}

#[tokio::test]
async fn each_fault_is_one_outage_until_the_failed_request_succeeds() {
    for (statuses, has_secret, reason) in [
        (Statuses { token: 401, ..OK }, true, "KeycloakUnauthorized"),
        (OK, false, "KeycloakSecretUnreadable"),
        (Statuses { token: 500, ..OK }, true, "KeycloakUnavailable"),
        (Statuses { users: 403, ..OK }, true, "KeycloakForbidden"),
        (Statuses { users: 500, ..OK }, true, "KeycloakUnavailable"),
    ] {
        let realm = Realm::start().await;
        assert_eq!(realm.monitor().await, None);
        realm.work().await;
        assert_eq!(realm.outages.lines(), "");
        *realm.statuses.lock() = statuses;
        if !has_secret {
            realm.set_secret(false);
        }
        realm.work_until(1).await;
        for _ in 0..3 {
            realm.work().await;
            assert_eq!(realm.monitor().await, Some(reason));
            assert_eq!(realm.outages.lines().lines().count(), 1, "{}", realm.outages.lines());
        }
        *realm.statuses.lock() = OK;
        realm.set_secret(true);
        if statuses.users != 200 {
            // The request of the monitor succeeds, but no user was found yet.
            assert_eq!(realm.monitor().await, Some(reason));
        }
        realm.work_until(0).await;
    }
}
