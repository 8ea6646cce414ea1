//! The favourites: the button of a Template, and the handler of its form. The form is no action: it needs neither a right
//! nor the API server, and its outcome is a cookie.

use axum::body::Bytes;
use axum::response::Response;
use maud::{Markup, html};

use super::model::Offer;
use crate::controllers::dashboard::http::context::Context;
use crate::controllers::dashboard::http::csrf::SameOrigin;
use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::http::response::{see_other, with_cookie};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::parts;
use crate::controllers::dashboard::ui::view::View;

/// The field with the key of the Template.
const KEY: &str = "key";
/// The field with the new state. A form that is sent twice, or from an older page, does what its button says.
const ON: &str = "on";

/// Adds a Template to the favourites of the browser, or removes it. The redirect leads to the button, which gets the
/// focus.
pub async fn change(_: SameOrigin, context: Context, body: Bytes) -> Response {
    let form = Fields::parse(&body);
    let key = form.get(KEY);
    let Some(favourites) = context.favourites.changed(key, form.get(ON) == "true") else {
        return see_other(paths::HOME);
    };
    with_cookie(see_other(&format!("{}#{}", paths::HOME, id(key))), &favourites.cookie())
}

/// The button of a Template.
pub fn button(view: &View<'_>, offer: &Offer) -> Markup {
    let Offer { key, is_favourite, title, .. } = offer;
    let (sign, next, pressed) =
        if *is_favourite { ("\u{2605}", "false", "true") } else { ("\u{2606}", "true", "false") };
    html! {
        form method="post" action=(paths::FAVOURITES) {
            (parts::hidden(&[(KEY, key.as_str()), (ON, next)]))
            button.plain.star id=(id(key)) type="submit" aria-pressed=(pressed) {
                span aria-hidden="true" { (sign) }
                (parts::unseen(&format!("{} {title}", view.texts().favourite)))
            }
        }
    }
}

/// Returns the id of the button of a Template.
fn id(key: &str) -> String {
    format!("favourite-{key}")
}
