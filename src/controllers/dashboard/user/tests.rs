//! Tests of the users of sessions, with a fake issuer and a fake API server.

use futures::future::join_all;
use serde_json::{Value, json};

use super::*;
use crate::clients::oidc::tests::{Issuer, Reply, signed_token};
use crate::runtime::api_server::{ApiServer, Asked, refused};

/// An issuer, an API server, and the users.
struct Setup {
    issuer: Issuer,
    api: ApiServer,
    users: Users,
}

async fn setup(answer: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static) -> Setup {
    setup_of(Identity::Token, answer).await
}

async fn setup_of(
    identity: Identity,
    answer: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static,
) -> Setup {
    let (issuer, api) = (Issuer::start().await, ApiServer::start(answer).await);
    let client = UserClient::new(&api.config).expect("a client");
    let client = client.impersonating(api.config.clone()).expect("a client");
    let users = Users::new(client, issuer.provider.clone(), identity);
    Setup { issuer, api, users }
}

/// Identifies every user as `ada`, without any rights.
fn accepts(_: &Asked) -> (u16, Value) {
    (201, json!({"status": {"userInfo": {"username": "ada"}, "resourceRules": []}}))
}

impl Setup {
    /// Makes further tokens last for this number of seconds, and come with this refresh token.
    fn gives(&self, seconds: i64, refresh_token: &str) {
        let claims = json!({"nonce": null, "exp": clock::now().as_second() + seconds});
        let mut tokens = self.issuer.tokens(&claims);
        tokens["refresh_token"] = refresh_token.into();
        self.issuer.answers(Reply::Json(200, tokens));
    }

    fn refreshes(&self) -> usize {
        self.issuer.paths().iter().filter(|path| *path == "/token").count()
    }

    async fn error(&self) -> NoUser {
        self.users.of(&session("one")).await.err().expect("no user")
    }
}

fn session(id: &str) -> Session {
    Session { id: id.to_owned(), refresh_token: Secret::from("first".to_owned()), visited: clock::now() }
}

#[tokio::test]
async fn one_refresh_at_a_time_serves_all_requests_of_a_session() {
    let setup = setup(accepts).await;
    setup.gives(300, "first");
    let one = session("one");
    for found in join_all((0..8).map(|_| setup.users.of(&one))).await {
        let Ok(found) = found else { panic!("no user") };
        assert_eq!((&*found.user.name, found.next.is_some()), ("ada", false));
    }
    assert_eq!((setup.refreshes(), setup.api.lines().len()), (1, 1), "one request for the name of the user");
    // Another session has another token.
    assert!(setup.users.of(&session("two")).await.is_ok());
    assert_eq!(setup.refreshes(), 2);
}

/// The Tenant of the user, as the watch shows it.
fn tenant(version: &str, annotations: &Value) -> crate::api::Object<TenantSignal> {
    let metadata = json!({"name": "ada", "resourceVersion": version, "annotations": annotations});
    serde_json::from_value(json!({"metadata": metadata})).expect("a Tenant")
}

#[tokio::test]
async fn a_logout_ends_the_session_at_every_replica_although_they_have_its_token() {
    let (here, there) = (setup(accepts).await, setup(accepts).await);
    let tenants = Arc::new(Store::new(true));
    let there = Setup { users: there.users.with_tenants(Arc::clone(&tenants)), ..there };
    let one = session("one");
    for replica in [&here, &there] {
        replica.gives(300, "first");
        assert!(replica.users.of(&one).await.is_ok());
    }
    here.api.lines();
    let logout = here.users.log_out(&one).await;
    assert_eq!(logout, Logout { is_everywhere: true, is_at_issuer: true });
    assert_eq!(here.issuer.paths().last().map(String::as_str), Some("/logout"));
    let asked = here.api.asked();
    let lines: Vec<&str> = asked.iter().map(|asked| asked.line.as_str()).collect();
    assert_eq!(lines, ["PATCH /apis/crownlabs.polito.it/v1alpha2/tenants/ada"]);
    assert!(matches!(here.error().await, NoUser::LoggedOut));
    // The watch of the other replica shows the change.
    assert!(there.users.of(&one).await.is_ok());
    tenants.apply_event(tenant("2", &asked[0].body["metadata"]["annotations"]));
    for _ in 0..2 {
        assert!(matches!(there.error().await, NoUser::LoggedOut));
    }
    assert!(there.users.of(&session("two")).await.is_ok(), "another session of the user");
    assert_eq!(there.refreshes(), 2, "the ended session requests no token");
}

#[tokio::test]
async fn a_logout_reports_the_servers_that_did_not_confirm_it() {
    for (code, issuer, expected) in [
        (201, 200, Logout { is_everywhere: true, is_at_issuer: true }),
        (404, 200, Logout { is_everywhere: false, is_at_issuer: true }),
        (201, 503, Logout { is_everywhere: true, is_at_issuer: false }),
        (503, 503, Logout { is_everywhere: false, is_at_issuer: false }),
    ] {
        let setup = setup(move |asked| match code {
            201 => accepts(asked),
            _ if asked.is("PATCH ") => refused(code, "Failure", "no"),
            _ => accepts(asked),
        })
        .await;
        setup.gives(300, "first");
        assert!(setup.users.of(&session("one")).await.is_ok());
        setup.issuer.answers(Reply::Text(issuer, String::new()));
        assert_eq!(setup.users.log_out(&session("one")).await, expected, "{code} {issuer}");
        // The session has ended here in any case, and a second logout reports the same.
        assert!(matches!(setup.error().await, NoUser::LoggedOut));
        assert_eq!(setup.users.log_out(&session("one")).await, expected, "{code} {issuer}, again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_logout_waits_at_most_five_seconds_for_each_silent_server() {
    let setup = setup(accepts).await;
    setup.issuer.answers(Reply::Silence);
    let begin = Instant::now();
    let logout = setup.users.log_out(&session("one")).await;
    assert_eq!(logout, Logout { is_everywhere: false, is_at_issuer: false });
    assert!(begin.elapsed() <= 2 * LOGOUT_LIMIT, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_token_is_replaced_before_it_expires() {
    let setup = setup(accepts).await;
    for (seconds, refreshes) in [(5, 1), (5, 2), (300, 3), (300, 3)] {
        setup.gives(seconds, "first");
        assert!(setup.users.of(&session("one")).await.is_ok());
        assert_eq!(setup.refreshes(), refreshes, "{seconds}");
    }
}

#[tokio::test]
async fn a_new_refresh_token_is_returned_once() {
    let setup = setup(accepts).await;
    setup.gives(300, "second");
    let (one, mut found) = (session("one"), Vec::new());
    for _ in 0..2 {
        let Ok(Found { next, .. }) = setup.users.of(&one).await else { panic!("no user") };
        found.push(next.map(|next| next.expose().to_owned()));
    }
    assert_eq!(found, [Some("second".to_owned()), None]);
}

#[tokio::test]
async fn errors_of_the_issuer_are_reported_and_not_cached() {
    let setup = setup(accepts).await;
    let refusal = |code: u16, error: &str| Reply::Json(code, json!({"error": error}));
    setup.issuer.answers(refusal(400, "invalid_grant"));
    assert!(matches!(setup.error().await, NoUser::Ended(_)));
    setup.issuer.answers(refusal(401, "invalid_client"));
    assert!(matches!(setup.error().await, NoUser::NotSetUp(_)));
    setup.issuer.answers(Reply::Text(503, "closed".to_owned()));
    assert!(matches!(setup.error().await, NoUser::IssuerAway(_)));
    assert_eq!(setup.api.lines(), Vec::<String>::new(), "without a token, the API server gets no request");
    // The error is not cached.
    setup.gives(300, "first");
    assert!(setup.users.of(&session("one")).await.is_ok());
    // Until the token expires, the issuer is not needed.
    setup.issuer.answers(Reply::Text(503, "closed".to_owned()));
    assert!(setup.users.of(&session("one")).await.is_ok());
}

#[tokio::test]
async fn the_api_server_determines_the_user() {
    let nobody = setup(|_| refused(401, "Unauthorized", "invalid bearer token")).await;
    nobody.gives(300, "first");
    assert!(matches!(nobody.error().await, NoUser::Refused(why) if why.contains("invalid bearer token")));
    let away = setup(|_| refused(503, "ServiceUnavailable", "wait")).await;
    away.gives(300, "first");
    assert!(matches!(away.error().await, NoUser::ApiAway(ApiError::Transient { .. })));
}

#[tokio::test]
async fn only_users_in_verified_tokens_are_impersonated() {
    let setup = setup_of(Identity::Impersonate, accepts).await;
    let comes = |name: &str| {
        let claims =
            json!({"nonce": null, "exp": clock::now().as_second() + 300, "preferred_username": name});
        let (token, keys) = signed_token(&setup.issuer.claims(&claims));
        setup.issuer.answers(Reply::Json(200, json!({"id_token": token.expose()})));
        keys
    };
    let stranger = comes("ada");
    setup.issuer.has_keys(comes("ada"));
    assert!(setup.users.of(&session("one")).await.is_ok());
    setup.issuer.has_keys(stranger);
    comes("ada");
    let error = setup.users.of(&session("two")).await.err().expect("no user");
    assert!(matches!(&error, NoUser::NotSetUp(why) if why.contains("none of its keys")), "{error}");
    setup.api.lines();
    setup.issuer.has_keys(comes("system:admin"));
    let error = setup.users.of(&session("three")).await.err().expect("no user");
    assert!(matches!(&error, NoUser::NotSetUp(why) if why.contains("system:admin")), "{error}");
    assert_eq!(setup.api.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn rules_are_cached_for_five_minutes_and_for_a_limited_number_of_namespaces() {
    let api = ApiServer::start(accepts).await;
    let client = UserClient::new(&api.config).expect("a client");
    let (provider, _file) = Provider::new(oidc::Settings {
        issuer: "https://auth.example.com".to_owned(),
        client_id: "dashboard".to_owned(),
        client_secret_file: String::new(),
        ca_file: String::new(),
        redirect_uri: String::new(),
    })
    .expect("a provider");
    let users = Users::new(client, provider, Identity::Token);
    let user = User::new(Credential::token("token").expect("a token"), "ada".to_owned(), Timestamp::MAX);
    let asked = async |namespace: &str| {
        users.rules(&user, namespace).await.expect("rules");
        api.lines().len()
    };
    assert_eq!([asked("a").await, asked("a").await, asked("b").await], [1, 0, 1]);
    for (since, _) in user.rules.lock().values_mut() {
        *since -= RULES_FOR;
    }
    assert_eq!(asked("a").await, 1);
    for number in 1..MOST_NAMESPACES {
        assert_eq!(asked(&format!("n{number}")).await, 1);
    }
    assert_eq!([asked("more").await, asked("more").await, asked("a").await], [1, 1, 0]);
}
