//! The HTML of the Templates for new machines.

use maud::{Markup, html};

use super::actions::{CREATE, NAME, NODES};
use super::favourites;
use super::model::{Course, Home, Offer};
use crate::api::shown::shown;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::ui::{field, parts};

/// The number of Templates above which the page has a search.
const SEARCHED: usize = 10;

/// The section with all Templates.
pub fn section(view: &View<'_>, home: &Home) -> Markup {
    let texts = view.texts();
    let count: usize = home.courses.iter().map(|course| course.offers.len()).sum();
    let found =
        |course: &Course| course.offers.iter().filter(|offer| is_found(view.search, course, offer)).count();
    let total: usize = home.courses.iter().map(found).sum();
    let is_searched = !view.search.is_empty();
    html! {
        section aria-labelledby="new" {
            h2 #new { (texts.new_machine) }
            @if home.courses.is_empty() { p.empty { (texts.no_courses) " " a href="/courses" { (texts.courses) } } }
            @if count > SEARCHED || is_searched { (search(view)) }
            @if is_searched { p { (texts.found.of(&total.to_string())) " " a href="/#new" { (texts.show_all) } } }
            @for (number, of) in home.courses.iter().enumerate() {
                @if !is_searched || found(of) > 0 { (course(view, number, of)) }
            }
            @if home.has_personal { p { a href=(paths::OWN_TEMPLATES) { (texts.templates.own) } } }
        }
    }
}

/// The search, a form that requests the page again.
fn search(view: &View<'_>) -> Markup {
    let texts = view.texts();
    html! {
        form.search role="search" method="get" action={ (paths::HOME) "#new" } {
            label for="search" { (texts.search_label) }
            input type="search" id="search" name="q" value=(view.search) maxlength="100" hx-morph-skip hx-nonce=(view.nonce);
            button type="submit" { (texts.search) }
        }
    }
}

/// Whether a Template has all words of a search in its texts or in those of its course.
fn is_found(search: &str, course: &Course, offer: &Offer) -> bool {
    let texts =
        [&offer.title, &offer.description, &offer.name, &course.title].map(|text| text.to_lowercase());
    let is_in = |word: &str| texts.iter().any(|text| text.contains(word));
    search.to_lowercase().split_whitespace().all(is_in)
}

fn course(view: &View<'_>, number: usize, course: &Course) -> Markup {
    let texts = view.texts();
    let offers = course.offers.iter().enumerate().filter(|(_, offer)| is_found(view.search, course, offer));
    html! {
        h3 { (shown(&course.title)) }
        @if course.offers.is_empty() { p.empty { (texts.no_templates_here) } }
        ul.cards {
            @for (at, of) in offers { li { (offer(view, &format!("{number}-{at}"), of)) } }
        }
    }
}

/// A Template.
fn offer(view: &View<'_>, number: &str, offer: &Offer) -> Markup {
    let title = parts::id("offer", number);
    html! {
        article aria-labelledby=(title) {
            div.titled { h4 id=(title) { (shown(&offer.title)) } (favourites::button(view, offer)) }
            (description(view, offer))
            (start(view, number, offer, false))
        }
    }
}

/// The description of a Template and the size of its machines.
pub fn description(view: &View<'_>, offer: &Offer) -> Markup {
    let texts = view.texts();
    html! {
        @if !offer.description.trim().is_empty() { p.description { (parts::description(&offer.description)) } }
        ul.size {
            @for share in &offer.size { li { (shown(&texts.named(&share.measure, &share.used))) } }
        }
        p.soft { @if offer.is_persistent { (texts.keeps_disk) } @else { (texts.loses_disk) } "." }
    }
}

/// The button that creates a machine, with its options, which are folded unless the page is about this machine alone.
/// `number` distinguishes its ids.
pub fn start(view: &View<'_>, number: &str, offer: &Offer, is_open: bool) -> Markup {
    let fields = [
        ("name", offer.instance.as_str()),
        ("templateNamespace", offer.namespace.as_str()),
        ("template", offer.name.as_str()),
    ];
    let start = parts::Button {
        action: &CREATE,
        path: CREATE.path,
        about: &offer.title,
        key: number,
        fields: &fields,
        warning: offer.warning.as_ref(),
    };
    html! {
        div.actions {
            @match &offer.blocked {
                None => { (parts::main_button(view, &start, &options(view, number, offer, is_open))) },
                Some(blocked) => { (parts::refused(view, &start, blocked)) },
            }
        }
    }
}

/// The options of a new machine: its name, and its nodes if the Template leaves them to the user.
fn options(view: &View<'_>, number: &str, offer: &Offer, is_open: bool) -> Markup {
    let of_form = |field| view.typed_in(CREATE.path, field).unwrap_or_default();
    let is_typed = of_form("templateNamespace") == offer.namespace && of_form("template") == offer.name;
    let key = (number, is_typed);
    html! {
        details.options id=(parts::id("options", number)) open[is_open || is_typed] hx-nonce=(view.nonce) {
            summary { (view.texts().options) (parts::unseen(&offer.title)) }
            (field::optional(view, &CREATE, &NAME, key, &[]))
            @if !offer.nodes.is_empty() { (field::optional(view, &CREATE, &NODES, key, &offer.nodes)) }
        }
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn a_search_finds_templates_by_all_of_its_words_in_any_text() {
        let offer = Offer {
            namespace: "workspace-net".to_owned(),
            name: "desktop-24".to_owned(),
            key: String::new(),
            is_favourite: false,
            title: "Router Desktop".to_owned(),
            description: "With Wireshark.".to_owned(),
            size: Vec::new(),
            is_persistent: true,
            blocked: None,
            warning: None,
            last_used: None,
            nodes: Vec::new(),
            instance: String::new(),
        };
        let course =
            Course { title: "Computer Networks".to_owned(), amounts: Vec::new(), offers: Vec::new() };
        for (search, expected) in [
            ("", true),
            ("router", true),
            ("WIRESHARK networks", true),
            (" desktop-24 ", true),
            ("router databases", false),
        ] {
            assert_eq!(is_found(search, &course, &offer), expected, "{search:?}");
        }
    }
}
