//! The state of a dashboard with real clients, for the tests of responses.

use std::sync::Arc;

use tokio::sync::watch;

use crate::clients::oidc::tests::Issuer;
use crate::config::{DashboardConfig, Identity};
use crate::controllers::dashboard::app::App;
use crate::controllers::dashboard::live::broadcast::Broadcast;
use crate::controllers::dashboard::session::Keys;
use crate::controllers::dashboard::student::Settings;
use crate::controllers::dashboard::user::users::Users;
use crate::runtime::api_server::ApiServer;
use crate::runtime::client::UserClient;

/// Creates the state for an API server and an issuer. Also returns the keys of its cookies.
pub fn app(api: &ApiServer, issuer: &Issuer) -> (Arc<App>, Arc<Keys>) {
    let key = b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let keys = Arc::new(Keys::parse(key).expect("a key"));
    let client = UserClient::new(&api.config).expect("a client");
    let users = Users::new(client, issuer.provider.clone(), Identity::Token);
    let (_, receiver) = watch::channel(Some(Arc::clone(&keys)));
    let config = DashboardConfig::default();
    let settings = Settings { machines: "machines.example.org".to_owned(), ..Settings::default() };
    (Arc::new(App::new(config, settings, users, receiver, Broadcast::new(1))), keys)
}
