//! Rules that all pages follow.

use std::collections::{BTreeMap, BTreeSet};

use super::fixtures::view;
use super::pages::{pages, states};
use crate::config::Language;
use crate::controllers::dashboard::texts::texts;
use crate::controllers::dashboard::ui::state::{State, state};
use crate::controllers::dashboard::ui::view::View;

/// An element of a page: its name and its attributes.
pub struct Element<'p> {
    pub name: &'p str,
    pub attributes: BTreeMap<&'p str, &'p str>,
}

impl Element<'_> {
    pub fn has(&self, name: &str) -> bool {
        self.attributes.contains_key(name)
    }
    pub fn of(&self, name: &str) -> &str {
        self.attributes.get(name).copied().unwrap_or_default()
    }
}

/// Returns the elements of a page, as `maud` writes them: with attributes in double quotes.
pub fn elements(page: &str) -> Vec<Element<'_>> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.starts_with(['/', '!']) {
            continue;
        }
        let end = rest.find([' ', '>']).expect("an element ends");
        let (name, mut inside) = rest.split_at(end);
        let mut attributes = BTreeMap::new();
        while let Some(after) = inside.strip_prefix(' ') {
            let end = after.find(['=', ' ', '>']).expect("an attribute ends");
            let (key, value) = after.split_at(end);
            let (value, next) = match value.strip_prefix("=\"") {
                Some(value) => value.split_once('"').expect("a value ends"),
                None => ("", value),
            };
            assert!(attributes.insert(key, value).is_none(), "{key} twice in <{name}>");
            inside = next;
        }
        assert!(inside.starts_with('>'), "<{name}> ends: {}", inside.chars().take(40).collect::<String>());
        found.push(Element { name, attributes });
        rest = inside;
    }
    found
}

/// Returns the rules that a page violates.
fn faults(page: &str) -> Vec<String> {
    let all = elements(page);
    let mut faults = Vec::new();
    let mut fault = |is_fault: bool, text: String| faults.extend(is_fault.then_some(text));
    let count = |name: &str| all.iter().filter(|element| element.name == name).count();
    for (name, number) in [("h1", 1), ("main", 1), ("header", 1), ("footer", 1), ("title", 1)] {
        fault(count(name) != number, format!("{} times <{name}>", count(name)));
    }
    let ids: Vec<&str> = all.iter().filter(|one| one.has("id")).map(|one| one.of("id")).collect();
    let known: BTreeSet<&str> = ids.iter().copied().collect();
    fault(known.len() != ids.len(), format!("an id twice: {ids:?}"));
    let labels: BTreeSet<&str> =
        all.iter().filter(|one| one.name == "label").map(|one| one.of("for")).collect();
    for element in &all {
        let Element { name, attributes } = element;
        let is_field = matches!(*name, "input" | "select" | "textarea") && element.of("type") != "hidden";
        fault(
            is_field && !labels.contains(element.of("id")),
            format!("<{name}> {} without a label", element.of("name")),
        );
        fault(is_field && !element.has("hx-morph-skip"), format!("<{name}> loses what is typed"));
        fault(*name == "button" && !element.has("type"), "a button without a type".to_owned());
        // A search, or the selected rows of a table, which lead to a question.
        let is_read = element.of("role") == "search" || element.of("class") == "selection";
        fault(
            *name == "form" && element.of("method") != "post" && !(is_read && element.of("method") == "get"),
            "a form that is not posted".to_owned(),
        );
        fault(
            element.of("aria-invalid") == "true" && !element.has("aria-describedby"),
            "an invalid field without a reason".to_owned(),
        );
        fault(*name == "script" && !element.has("nonce"), "a script without nonce".to_owned());
        fault(*name == "style" || element.has("style"), format!("<{name}> with a style"));
        for key in attributes.keys() {
            fault(key.starts_with("on"), format!("<{name}> with {key}"));
            fault(
                key.starts_with("hx-") && !element.has("hx-nonce"),
                format!("<{name}> {key} without nonce"),
            );
        }
        for key in ["aria-labelledby", "aria-describedby", "for"] {
            let missing = element.of(key).split_whitespace().find(|id| !known.contains(id));
            fault(missing.is_some(), format!("<{name}> {key}={missing:?} leads nowhere"));
        }
        let leaves = element.of("href").starts_with("http");
        fault(
            leaves && element.of("rel") != "noopener noreferrer",
            format!("a link to {}", element.of("href")),
        );
        let target = element.of("href");
        let is_mail = target.starts_with("mailto:");
        let is_link = target.starts_with(['/', '#']) || leaves || is_mail || *name == "link";
        fault(element.has("href") && !is_link, format!("a link to {target:?}"));
    }
    let levels: Vec<u32> = all.iter().filter_map(|one| one.name.strip_prefix('h')?.parse().ok()).collect();
    fault(levels.windows(2).any(|pair| pair[1] > pair[0] + 1), format!("headings {levels:?}"));
    faults
}

#[test]
fn every_page_follows_the_rules() {
    for language in Language::all() {
        for (name, page) in pages(language) {
            assert_eq!(faults(&page), Vec::<String>::new(), "{name} {}", language.code());
            assert!(page.contains(&format!("<html lang=\"{}\">", language.code())));
        }
    }
}

#[test]
fn a_violation_of_each_rule_is_found() {
    let (_, good) = pages(Language::ENGLISH).remove(0);
    for (from, to) in [
        ("<h1>", "<h2>"),
        ("id=\"content\"", "id=\"new\""),
        ("<button type=\"submit\"", "<button"),
        ("<main ", "<main onclick=\"x\" "),
        ("<main ", "<main style=\"x\" "),
        ("rel=\"noopener noreferrer\"", "rel=\"opener\""),
        ("href=\"/courses\"", "href=\"javascript:x\""),
        ("<script src=\"htmx.js\" nonce=\"bm9uY2U\"", "<script src=\"htmx.js\""),
        ("hx-swap=\"outerMorph\" hx-nonce=\"bm9uY2U\"", "hx-swap=\"outerMorph\""),
        ("id=\"new\"", ""),
        ("</main>", "<input type=\"text\" id=\"x\"></main>"),
    ] {
        assert!(good.contains(from), "{from}");
        assert!(!faults(&good.replace(from, to)).is_empty(), "{from} -> {to}");
    }
}

#[test]
fn every_state_has_its_own_text_and_one_action() {
    for language in Language::all() {
        let of = view(language, "/");
        let mut seen = BTreeSet::new();
        for of_state in states() {
            let page = state(&of, &of_state).into_string();
            let (_, content) = page.split_once("<div class=\"state\">").expect("the state");
            let (content, _) = content.split_once("</main>").expect("its end");
            assert!(!content.contains("{}") && !content.contains("<p></p>"), "{content}");
            assert_eq!(content.matches("<a ").count(), 1, "one action: {content}");
            assert!(seen.insert(content.to_owned()), "each text is different: {content}");
        }
    }
}

#[test]
fn every_page_about_a_state_has_the_contact() {
    for language in Language::all() {
        for of_state in states() {
            let page = state(&view(language, "/"), &of_state).into_string();
            assert!(page.contains("href=\"mailto:labs@example.org\""), "{of_state:?}: {page}");
        }
    }
}

#[test]
fn only_administrators_have_the_link_to_their_pages() {
    for (is_administrator, path, current) in [
        (true, "/", " href=\"/admin\">"),
        (true, "/admin", " href=\"/admin\" aria-current=\"page\">"),
        (true, "/admin/people", " href=\"/admin\" aria-current=\"true\">"),
        (true, "/administration", " href=\"/admin\">"),
        (false, "/courses", ""),
    ] {
        let view = View { is_administrator, ..view(Language::ENGLISH, path) };
        let page = state(&view, &State::NotFound).into_string();
        let link = page.find("href=\"/admin\"").map(|at| &page[at - 1..]);
        assert_eq!(link.is_some(), is_administrator, "{path}");
        assert!(link.unwrap_or_default().starts_with(current), "{path}: {link:?}");
    }
}

#[test]
fn a_template_that_is_not_ready_has_a_warning_and_an_enabled_button() {
    for language in Language::all() {
        let words = texts(language);
        let (_, home) = pages(language).into_iter().find(|(name, _)| name == "home").expect("a page");
        let start = home.find("<div class=\"warned\">").expect("a warning");
        let shown = &home[start..start + home[start..].find("</article>").expect("its end")];
        assert!(shown.contains("<button type=\"submit\"") && !shown.contains("disabled"), "{shown}");
        assert!(shown.contains(words.may_wait.as_str()), "{shown}");
        assert!(shown.contains(texts(language).reason("NoNode").expect("a sentence")), "{shown}");
    }
}
