//! The favourite Templates: their place on the page, their buttons, and the form that the buttons send.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::header::{COOKIE, LOCATION, SET_COOKIE};
use http::{HeaderValue, Request, StatusCode};
use tower::ServiceExt as _;

use super::fixtures::{Everything, favourites, known, settings, view};
use super::rules::elements;
use super::site::app;
use crate::clients::oidc::tests::Issuer;
use crate::config::Language;
use crate::controllers::dashboard::app::App;
use crate::controllers::dashboard::home::{model::Home, view::home};
use crate::controllers::dashboard::router::router;
use crate::controllers::dashboard::session::Favourites;
use crate::controllers::dashboard::student::Student;
use crate::controllers::dashboard::ui::view::View;
use crate::runtime::api_server::{ApiServer, Asked, refused};

const DESKTOP: (&str, &str) = ("workspace-net", "desktop");
const WEB: (&str, &str) = ("workspace-net", "web");

/// Returns the first course of a home page with these favourites: the titles of its Templates, and whether their buttons are
/// pressed.
fn first_course(favourites: &Favourites) -> Vec<(String, String)> {
    let (known, settings, all) = (known(), settings(), Everything(true));
    let student = Student::new(&known, &settings, &all, None);
    let view = View { favourites, ..view(Language::ENGLISH, "/") };
    let model = Home::of(&view, &student);
    let page = home(&view, &model).into_string();
    let elements = elements(&page);
    let pressed = elements.iter().filter(|element| element.has("aria-pressed"));
    let titles = model.courses[0].offers.iter().map(|offer| offer.title.clone());
    titles.zip(pressed.map(|button| button.of("aria-pressed").to_owned())).collect()
}

#[test]
fn favourites_come_first_and_among_them_the_last_used_template() {
    let of = |course: &[(&str, &str)]| {
        let pair = |(title, pressed): &(&str, &str)| ((*title).to_owned(), (*pressed).to_owned());
        course.iter().map(pair).collect::<Vec<_>>()
    };
    // The user has machines of the network desktop.
    let none: &[(&str, &str)] = &[];
    let [desktop, routers, web] = ["Network desktop", "Three routers", "Web server"];
    for (marked, expected) in [
        (none, of(&[(desktop, "false"), (routers, "false"), (web, "false")])),
        (&[WEB], of(&[(web, "true"), (desktop, "false"), (routers, "false")])),
        (&[WEB, DESKTOP], of(&[(desktop, "true"), (web, "true"), (routers, "false")])),
        // A Template of another course with the same name.
        (&[("workspace-data", "web")], of(&[(desktop, "false"), (routers, "false"), (web, "false")])),
    ] {
        assert_eq!(first_course(&favourites(marked)), expected, "{marked:?}");
    }
}

/// Sends the form of a button with a cookie.
async fn send(app: &Arc<App>, site: &'static str, form: String, cookie: &str) -> Response {
    let pair = cookie.split(';').next().unwrap_or_default();
    let request = Request::post("/favourites")
        .header("sec-fetch-site", site)
        .header(COOKIE, pair)
        .body(Body::from(form))
        .expect("a request");
    let Ok(answer) = router(Arc::clone(app)).oneshot(request).await;
    answer
}

#[tokio::test]
async fn a_form_changes_the_cookie_and_returns_to_its_button_without_a_request_to_the_api_server() {
    let api = ApiServer::start(|_: &Asked| refused(500, "InternalError", "no")).await;
    let issuer = Issuer::start().await;
    let (app, _) = app(&api, &issuer);
    let [desktop, web] = [DESKTOP, WEB].map(|(namespace, name)| Favourites::key(namespace, name));
    let (one, both) = (favourites(&[DESKTOP]), favourites(&[DESKTOP, WEB]));
    for (before, key, on, after) in [
        (&Favourites::default(), &desktop, "true", &one),
        (&one, &desktop, "true", &one),
        (&one, &web, "true", &both),
        (&both, &web, "false", &one),
        (&one, &desktop, "false", &Favourites::default()),
    ] {
        let answer = send(&app, "same-origin", format!("key={key}&on={on}"), &before.cookie()).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        assert_eq!(answer.headers()[LOCATION], format!("/#favourite-{key}"));
        assert_eq!(answer.headers()[SET_COOKIE], after.cookie(), "{before:?} {key} {on}");
    }
    let answer = send(&app, "same-origin", "key=%0d%0ax&on=true".to_owned(), &one.cookie()).await;
    assert_eq!(answer.headers().get(LOCATION), Some(&HeaderValue::from_static("/")), "an invalid key");
    assert_eq!(answer.headers().get(SET_COOKIE), None);
    let answer = send(&app, "cross-site", format!("key={web}&on=true"), &one.cookie()).await;
    assert_eq!((answer.status(), answer.headers().get(SET_COOKIE)), (StatusCode::FORBIDDEN, None));
    assert_eq!(api.lines(), Vec::<String>::new());
}
